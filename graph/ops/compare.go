package ops

import (
	"cmp"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Comparisons are of numbers of one element type, any, and give truth values: bool. Operations
// on truth values take u8 as well, of which all but 0 is true. Operands broadcast, and nothing
// here has a gradient. Comparisons with NaN are false, but NotEqual is true.

// Equal is where a = b.
func Equal(a, b graph.Value) graph.Value { return compared(equal, a, b) }

// NotEqual is where a ≠ b.
func NotEqual(a, b graph.Value) graph.Value { return compared(notEqual, a, b) }

// Less is where a < b.
func Less(a, b graph.Value) graph.Value { return compared(less, a, b) }

// LessEqual is where a ≤ b.
func LessEqual(a, b graph.Value) graph.Value { return compared(lessEqual, a, b) }

// Greater is where a > b.
func Greater(a, b graph.Value) graph.Value { return compared(less, b, a) }

// GreaterEqual is where a ≥ b.
func GreaterEqual(a, b graph.Value) graph.Value { return compared(lessEqual, b, a) }

// IsNaN is where x is NaN.
func IsNaN(x graph.Value) graph.Value { return NotEqual(x, x) }

// compared applies a comparison; to 16-bit numbers as f32, which has them exactly.
func compared(k compareKind, a, b graph.Value) graph.Value {
	if a.Valid() && b.Valid() && small(a.Type().DType) && a.Type().DType == b.Type().DType {
		a, b = Cast(a, graph.F32), Cast(b, graph.F32)
	}
	return apply(compare{k}, a, b)
}

// small reports whether elements are 16-bit floating-point numbers.
func small(d graph.DType) bool { return d == graph.BF16 || d == graph.F16 }

// And is where both of two truth values are true.
func And(a, b graph.Value) graph.Value { return apply(logic{and}, a, b) }

// Or is where one of two truth values, or both, are true.
func Or(a, b graph.Value) graph.Value { return apply(logic{or}, a, b) }

// Xor is where exactly one of two truth values is true.
func Xor(a, b graph.Value) graph.Value { return apply(logic{xor}, a, b) }

// Not is where a truth value is not true.
func Not(a graph.Value) graph.Value { return apply(not{}, a) }

type compareKind uint8

const (
	equal compareKind = iota
	notEqual
	less
	lessEqual
	numCompare
)

type compare struct{ Kind compareKind }

func (o compare) Name() string {
	return [...]string{"equal", "not-equal", "less", "less-equal"}[o.Kind]
}

func (o compare) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 2); err != nil {
		return nil, err
	}
	if o.Kind >= numCompare {
		return nil, fmt.Errorf("unknown comparison %d", o.Kind)
	}
	if in[0].DType != in[1].DType {
		return nil, fmt.Errorf("%s is compared with %s: convert one of them with Cast", in[0],
			in[1])
	}
	if comparisons(in[0].DType) == nil {
		return nil, fmt.Errorf("%s is not compared: convert it with Cast", in[0])
	}
	return truths(in...)
}

// truth reports whether elements are truth values.
func truth(d graph.DType) bool { return d == graph.Bool || d == graph.U8 }

// wantTruths checks the number of operands, and that they are truth values.
func wantTruths(in []graph.Type, operands int) error {
	if err := arity(in, operands); err != nil {
		return err
	}
	for i, t := range in {
		if !truth(t.DType) {
			return fmt.Errorf("operand %d is %s, want bool: NotEqual makes it of numbers, and Cast",
				i, t)
		}
	}
	return nil
}

// truths is the type of truth values of operands that broadcast.
func truths(in ...graph.Type) ([]graph.Type, error) {
	t := in[0]
	for _, u := range in[1:] {
		var err error
		if t, err = jointShape(t, u); err != nil {
			return nil, err
		}
	}
	return []graph.Type{{DType: graph.Bool, Shape: t.Shape}}, nil
}

func (compare) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

func (compare) VJP(*graph.Node, []graph.Value) []graph.Value { return none(2) }

// Cut is between any elements.
func (compare) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutAny(in, out) }

// cutAny is cutElements of operations that have no seeds.
func cutAny(in, out []graph.Type) (graph.Cut, bool) {
	return cutBroadcast(in, out, out[0].Rank(), func(graph.Type) bool { return false })
}

// Part is the operation itself.
func (o compare) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// comparisons are the kernels for an element type, nil if there are none.
func comparisons(d graph.DType) func(k compareKind, c *kernel.Call) {
	switch d {
	case graph.F32:
		return comparing(tensor.View.F32)
	case graph.I32:
		return comparing(tensor.View.I32)
	case graph.U8, graph.Bool:
		return comparing(tensor.View.U8)
	case graph.I8:
		return comparing(tensor.View.I8)
	case graph.I16:
		return comparing(tensor.View.I16)
	case graph.I64:
		return comparing(tensor.View.I64)
	case graph.U16:
		return comparing(tensor.View.U16)
	case graph.U32:
		return comparing(tensor.View.U32)
	case graph.U64:
		return comparing(tensor.View.U64)
	case graph.F64:
		return comparing(tensor.View.F64)
	}
	return nil
}

// comparing is the kernel on elements that view gives.
func comparing[T cmp.Ordered](view func(tensor.View) []T) func(k compareKind, c *kernel.Call) {
	return func(k compareKind, c *kernel.Call) {
		a, b := view(c.In[0]), view(c.In[1])
		pairwise(c, func(dst []uint8, from, step each) { compareRun(k, dst, a, b, from, step) })
	}
}

// compareRun compares runs of elements that start at from and are step apart.
func compareRun[T cmp.Ordered](k compareKind, dst []uint8, a, b []T, from, step each) {
	i, j := from[0], from[1]
	switch k {
	case equal:
		for p := range dst {
			dst[p] = bit(a[i] == b[j])
			i, j = i+step[0], j+step[1]
		}
	case notEqual:
		for p := range dst {
			dst[p] = bit(a[i] != b[j])
			i, j = i+step[0], j+step[1]
		}
	case less:
		for p := range dst {
			dst[p] = bit(a[i] < b[j])
			i, j = i+step[0], j+step[1]
		}
	case lessEqual:
		for p := range dst {
			dst[p] = bit(a[i] <= b[j])
			i, j = i+step[0], j+step[1]
		}
	}
}

// bit is 1 for true.
func bit(v bool) uint8 {
	if v {
		return 1
	}
	return 0
}

// pairwise computes truth values of two operands, run by run.
func pairwise(c *kernel.Call, run func(dst []uint8, from, step each)) {
	out := c.Out[0].U8()
	walk(c, c.Out[0].Type, []tensor.Type{c.In[0].Type, c.In[1].Type},
		func(at, n int, from, step each) { run(out[at:at+n], from, step) })
}

func compareCPU(o compare, c *kernel.Call) error {
	comparisons(c.In[0].Type.DType)(o.Kind, c)
	return nil
}

type logicKind uint8

const (
	and logicKind = iota
	or
	xor
	numLogic
)

type logic struct{ Kind logicKind }

func (o logic) Name() string { return [...]string{"and", "or", "xor"}[o.Kind] }

func (o logic) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := wantTruths(in, 2); err != nil {
		return nil, err
	}
	if o.Kind >= numLogic {
		return nil, fmt.Errorf("unknown logic %d", o.Kind)
	}
	return truths(in...)
}

func (logic) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

func (logic) VJP(*graph.Node, []graph.Value) []graph.Value { return none(2) }

// Cut is between any elements.
func (logic) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutAny(in, out) }

// Part is the operation itself.
func (o logic) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

func logicCPU(o logic, c *kernel.Call) error {
	a, b := c.In[0].U8(), c.In[1].U8()
	f := [...]func(a, b bool) bool{
		and: func(a, b bool) bool { return a && b },
		or:  func(a, b bool) bool { return a || b },
		xor: func(a, b bool) bool { return a != b },
	}[o.Kind]
	pairwise(c, func(dst []uint8, from, step each) {
		i, j := from[0], from[1]
		for p := range dst {
			dst[p] = bit(f(a[i] != 0, b[j] != 0))
			i, j = i+step[0], j+step[1]
		}
	})
	return nil
}

type not struct{}

func (not) Name() string { return "not" }

func (not) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := wantTruths(in, 1); err != nil {
		return nil, err
	}
	return truths(in...)
}

func (not) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

// InPlace: every element depends on its own operand alone.
func (not) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (not) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

// Cut is between any elements.
func (not) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutAny(in, out) }

// Part is the operation itself.
func (o not) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

func notCPU(_ not, c *kernel.Call) error {
	x, out := c.In[0].U8(), c.Out[0].U8()
	c.Pool.For(len(out), grain, func(lo, hi int) {
		for i, v := range x[lo:hi] {
			out[lo+i] = bit(v == 0)
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, compareCPU)
	kernel.Register(kernel.CPU, logicCPU)
	kernel.Register(kernel.CPU, notCPU)
	t := func(d graph.DType, sizes ...int) graph.Type { return tensor.Of(d, sizes...) }
	for k := range numCompare {
		register(
			Sample{Op: compare{k}, In: []graph.Type{t(graph.F32, 3, 5), t(graph.F32, 5)},
				NoGrad: []int{0, 1}},
			Sample{Op: compare{k}, In: []graph.Type{t(graph.I32, 2, 1, 5), t(graph.I32, 3, 1)},
				NoGrad: []int{0, 1}},
		)
	}
	for _, d := range tensor.DTypes() {
		if comparisons(d) == nil {
			continue
		}
		register(Sample{Op: compare{lessEqual}, In: []graph.Type{t(d, 3, 5), t(d, 5)},
			NoGrad: []int{0, 1}})
	}
	for _, d := range []graph.DType{graph.U8, graph.Bool} {
		pair := []graph.Type{t(d, 3, 17), t(d, 17)}
		for _, op := range []graph.Op{logic{and}, logic{or}, logic{xor}} {
			register(Sample{Op: op, In: pair, Fill: fills{0: bits}, NoGrad: []int{0, 1}})
		}
		register(Sample{Op: not{}, In: pair[:1], Fill: fills{0: bits}, NoGrad: []int{0}})
	}
}
