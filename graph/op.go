package graph

import "github.com/gomem/gomem/graph/tensor"

// The vocabulary of package tensor, under the names that models use.
type (
	// Type is the element type and shape of a value: see package tensor for its methods.
	Type = tensor.Type
	// Dim is one axis of a shape: see package tensor.
	Dim = tensor.Dim
	// DType is the type of one element: see package tensor.
	DType = tensor.DType
)

// The element types.
const (
	F32  = tensor.F32
	I32  = tensor.I32
	U8   = tensor.U8
	BF16 = tensor.BF16
	F16  = tensor.F16
	I64  = tensor.I64
	F64  = tensor.F64
	Bool = tensor.Bool
	I8   = tensor.I8
	I16  = tensor.I16
	U16  = tensor.U16
	U32  = tensor.U32
	U64  = tensor.U64
)

// Of makes a type with unnamed axes: Of(F32, 32, 10) is f32[32 10], Of(F32) a scalar.
func Of(d DType, sizes ...int) Type { return tensor.Of(d, sizes...) }

// Named makes a type from axes, of which some have names:
// Named(F32, Dim{"batch", 32}, Dim{Size: 10}).
func Named(d DType, dims ...Dim) Type { return tensor.Named(d, dims...) }

// ParseDType reads an element type's short name, such as "f32".
func ParseDType(name string) (DType, error) { return tensor.ParseDType(name) }

// ParseType reads a type as it is printed: "f32[batch:32 10]".
func ParseType(text string) (Type, error) { return tensor.ParseType(text) }

// Op is an operation: a small comparable struct whose fields are the
// attributes. Kernels are not here; they depend on devices, graphs must not.
type Op interface {
	// Name is the short name: "matmul".
	Name() string
	// Infer returns the types of the results. It is the only place where
	// operands are rejected.
	Infer(in []Type) ([]Type, error)
	// Cost says what computing the operation takes.
	Cost(in, out []Type) Cost
	// VJP appends the nodes that compute the gradient of each operand of n from
	// dout, the gradients of its results; a zero Value in dout means that a
	// result does not matter, a zero Value returned that an operand has no
	// gradient.
	VJP(n *Node, dout []Value) []Value
}

// Cost is what one execution of an operation takes.
type Cost struct {
	FLOPs   int64 // floating-point operations; a multiply-add counts as two
	Bytes   int64 // bytes of operands read and results written
	Scratch int64 // bytes of workspace, planned like any other slot
}

// Viewer is implemented by operations whose results are the bytes of operand 0
// under another type. They are never executed: lowering resolves them to
// addresses.
type Viewer interface {
	// View returns, for every result, the offset in bytes at which its
	// contiguous bytes start inside operand 0.
	View(in, out []Type) []int64
}

// InPlacer is implemented by operations whose kernel works when result 0 has
// the very bytes of one of its operands.
type InPlacer interface {
	// InPlace lists those operands, best first. Each is as large as result 0.
	InPlace(in, out []Type) []int
}

// Checker is implemented by operations whose kernels refuse some data, such as an
// index outside a table. A kernel's error ends a step half-way; so what is known
// before a step, because it is fed, is checked before it.
type Checker interface {
	// CheckData reports operands that the kernel would refuse. in has every
	// operand's type, and its data if that is known: if not, Data is nil.
	CheckData(in []tensor.View) error
}

// Init says how a variable starts. The zero Init is all zeros.
type Init struct {
	Dist  Dist
	Scale float64 // the constant, the standard deviation, or the (half) width
	// Each, if not nil, is how each part along the first axis starts, instead:
	// variables that are packed into one.
	Each []Init
}

// Dist is the distribution of a variable's initial elements.
type Dist uint8

// The distributions.
const (
	Constant Dist = iota // every element is Scale
	Normal               // normal with mean 0 and standard deviation Scale
	Uniform              // uniform in [-Scale, Scale)
	// normal with mean 0 and standard deviation Scale, drawn again beyond 2·Scale
	Truncated
	Positive // uniform in [0, Scale)
)
