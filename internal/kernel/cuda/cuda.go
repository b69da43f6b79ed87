// Package cuda is what an operation is on an NVIDIA GPU: for the Go type of an operation,
// the commands that compute it. It knows no driver and no device.
//
// A kernel of the CPU is a function that computes. Here it is a function that says what is
// to be launched, once, when a plan is opened; a device packs that into its queue, and
// repeats it every step. So what an operation does on a GPU can be read and tested without
// one, and a step costs no more than its launches.
package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/conv"
)

// Operand is where a value is on the device.
type Operand struct {
	Addr uint64 // of its first byte
	Type tensor.Type
}

// Call is the operands and results of an operation, in the order of the node; what an
// update writes is in In. Scratch is the address of as many bytes as were declared for it: of
// Room, where a library works in it.
type Call struct {
	In, Out []Operand
	Scratch uint64
	Room    int64
	TF32    bool // matrix products may round their operands: see [Gemm]
	// Library is what computes the operation, as a plan has it: "" is our own kernels, and [DNN]
	// what can be asked for an operation that has a [Convolution].
	Library string
}

// DNN is the name of cuDNN in plans.
const DNN = "cudnn"

// Command is one thing that a stream is to do: a [Kernel], a [Gemm], a [Conv], a [Copy], a
// [Fill], a [Clear] or a [Branch]. Commands of an operation run one after the other.
type Command interface{ command() }

// Kernel is a launch of one of the functions of [Source].
type Kernel struct {
	Name        string
	Grid, Block [3]uint32
	Shared      uint32 // bytes of dynamic shared memory
	Args        []byte // packed as [Args]
	// Written is a kernel that does the same and is quicker, once it is compiled; nil: there is
	// none.
	Written *Written
}

// Gemm is C = Alpha·op(A)·op(B) + Beta·C for matrices in rows: C is M×N, op(A) M×K and
// op(B) K×N, of f32 unless HalfIn and HalfOut say bfloat16, for each of Batch matrices. A
// leading dimension is the elements from one row to the next, a stride those from one matrix to
// the next; 0 repeats the matrix.
type Gemm struct {
	A, B, C                   uint64
	TransA, TransB            bool
	M, N, K                   int
	LdA, LdB, LdC             int
	Batch                     int
	StrideA, StrideB, StrideC int64
	Alpha, Beta               float32
	TF32                      bool // operands are rounded to 10 bits behind the point
	HalfIn, HalfOut           bool // A and B, and C, are of bfloat16; sums are of f32
}

// Pass is which of a convolution's values is computed of the other two.
type Pass int

// The passes.
const (
	Forward   Pass = iota // results, of images and filters
	ToImages              // the gradient of images, of filters and that of results
	ToFilters             // the gradient of filters, of images and that of results
)

// Conv is a convolution of f32, or of bfloat16 with sums of f32, by cuDNN, of images [Batch, InC,
// InH, InW] by filters [OutC, InC/Groups, KH, KW], with as many zeros below as above and right as
// left.
type Conv struct {
	Pass                     Pass
	Shape                    conv.Shape
	Images, Filters, Results uint64 // addresses
	Scratch                  uint64 // of Room bytes, which the library works in
	Room                     int64
	TF32                     bool // operands may be rounded to 10 bits behind the point
	Half                     bool // images, filters and results are of bfloat16
}

// Copy copies bytes that follow each other, to where they do not overlap.
type Copy struct {
	To, From uint64
	Bytes    int64
}

// Fill sets 32-bit words.
type Fill struct {
	Addr  uint64
	Words int64
	Word  uint32
}

func (Kernel) command() {}
func (Gemm) command()   {}
func (Conv) command()   {}
func (Copy) command()   {}
func (Fill) command()   {}

// Func says what computes an operation.
type Func func(op any, c *Call) ([]Command, error)

// Scratch is how many bytes of workspace the commands of an operation need.
type Scratch func(op any, in, out []tensor.Type) int64

type entry struct {
	run     Func
	scratch Scratch
}

var registry = map[reflect.Type]entry{}

// Register enters the commands of operations of type O, and the scratch that they need, nil
// for none. It is called from init functions and panics on a second registration.
func Register[O any](run func(O, *Call) ([]Command, error),
	scratch func(op O, in, out []tensor.Type) int64) {
	id := reflect.TypeFor[O]()
	if _, ok := registry[id]; ok {
		panic(fmt.Sprintf("cuda: %v registered twice", id))
	}
	e := entry{run: func(op any, c *Call) ([]Command, error) { return run(op.(O), c) }}
	if scratch != nil {
		e.scratch = func(op any, in, out []tensor.Type) int64 {
			return scratch(op.(O), in, out)
		}
	}
	registry[id] = e
}

// exact says of operations by their types whether they are exact.
var exact = map[reflect.Type]func(op any) bool{}

// Exact says of operations of type O that their results have the host's bits: of all of them
// if when is nil. It is called from init functions.
func Exact[O any](when func(O) bool) {
	exact[reflect.TypeFor[O]()] = func(op any) bool { return when == nil || when(op.(O)) }
}

// IsExact reports whether an operation's results have the host's bits, so that it makes no
// difference where it is computed.
func IsExact(op any) bool {
	is, ok := exact[reflect.TypeOf(op)]
	return ok && is(op)
}

// convolutions say of operations by their types what cuDNN would compute.
var convolutions = map[reflect.Type]func(op any, in, out []tensor.Type) (Conv, bool){}

// Convolves says of operations of type O which convolution, without addresses, their commands are
// where Library is [DNN]; it is false of those that are none for it. It is called from init
// functions.
func Convolves[O any](is func(op O, in, out []tensor.Type) (Conv, bool)) {
	convolutions[reflect.TypeFor[O]()] = func(op any, in, out []tensor.Type) (Conv, bool) {
		return is(op.(O), in, out)
	}
}

// Convolution is the convolution, without addresses, that cuDNN is to be asked for: whether it
// computes it, if there is a cuDNN at all. It is false of operations that are none, and where a
// value has no elements.
func Convolution(op any, in, out []tensor.Type) (c Conv, ok bool) {
	is, ok := convolutions[reflect.TypeOf(op)]
	if !ok || slices.ContainsFunc(slices.Concat(in, out), func(t tensor.Type) bool {
		return t.Elems() == 0
	}) {
		return Conv{}, false
	}
	return is(op, in, out)
}

// Supports reports whether an operation has commands.
func Supports(op any) bool {
	_, ok := registry[reflect.TypeOf(op)]
	return ok
}

// ScratchOf is the workspace in bytes that an operation's commands need.
func ScratchOf(op any, in, out []tensor.Type) int64 {
	e, ok := registry[reflect.TypeOf(op)]
	if !ok || e.scratch == nil {
		return 0
	}
	return e.scratch(op, in, out)
}

// Commands are what computes an operation: none where it has results, but none of them an
// element.
func Commands(op any, c *Call) ([]Command, error) {
	e, ok := registry[reflect.TypeOf(op)]
	if !ok {
		return nil, fmt.Errorf("no cuda kernel for %T", op)
	}
	if c.empty() {
		return nil, nil
	}
	if c.Library != "" {
		if err := c.asked(op); err != nil {
			return nil, err
		}
	}
	list, err := e.run(op, c)
	for i := range list {
		switch g := list[i].(type) {
		case Gemm:
			g.TF32 = c.TF32 && !g.HalfIn
			list[i] = g
		case Conv:
			g.TF32 = c.TF32 && !g.Half
			list[i] = g
		}
	}
	return list, err
}

// asked reports a library that does not have the operation, or that nobody knows.
func (c *Call) asked(op any) error {
	if c.Library != DNN {
		return fmt.Errorf("%.60q is no library that is known", c.Library)
	}
	types := func(list []Operand) (all []tensor.Type) {
		for _, o := range list {
			all = append(all, o.Type)
		}
		return all
	}
	if _, ok := Convolution(op, types(c.In), types(c.Out)); !ok {
		return fmt.Errorf("%s does not compute %T of %v", c.Library, op, types(c.In))
	}
	return nil
}

// empty reports whether a call has results, but none of them an element. Operands may be empty
// where a result is not.
func (c *Call) empty() bool {
	for _, o := range c.Out {
		if o.Type.Elems() > 0 {
			return false
		}
	}
	return len(c.Out) > 0
}

// Arg is an argument of a kernel: uint64 is an address.
type Arg interface {
	uint64 | int64 | uint32 | int32 | float32
}

// Args packs arguments of a kernel as its parameter buffer wants them: each aligned to its
// size.
type Args []byte

// Add appends an argument.
func Add[T Arg](a Args, x T) Args {
	switch v := any(x).(type) {
	case uint64:
		return binary.LittleEndian.AppendUint64(a.align(8), v)
	case int64:
		return binary.LittleEndian.AppendUint64(a.align(8), uint64(v))
	case uint32:
		return binary.LittleEndian.AppendUint32(a.align(4), v)
	case int32:
		return binary.LittleEndian.AppendUint32(a.align(4), uint32(v))
	case float32:
		return binary.LittleEndian.AppendUint32(a.align(4), math.Float32bits(v))
	}
	return a
}

func (a Args) align(n int) Args {
	for len(a)%n != 0 {
		a = append(a, 0)
	}
	return a
}
