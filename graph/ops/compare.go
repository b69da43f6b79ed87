package ops

import (
	"cmp"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/tensor"
)

// Comparisons are of numbers of one element type, and truth values are u8, 1 or 0.
// Operands broadcast, and nothing here has a gradient. Comparisons with NaN are false,
// but NotEqual is true.

// Equal is where a = b.
func Equal(a, b graph.Value) graph.Value { return apply(compare{equal}, a, b) }

// NotEqual is where a ≠ b.
func NotEqual(a, b graph.Value) graph.Value { return apply(compare{notEqual}, a, b) }

// Less is where a < b.
func Less(a, b graph.Value) graph.Value { return apply(compare{less}, a, b) }

// LessEqual is where a ≤ b.
func LessEqual(a, b graph.Value) graph.Value { return apply(compare{lessEqual}, a, b) }

// Greater is where a > b.
func Greater(a, b graph.Value) graph.Value { return apply(compare{less}, b, a) }

// GreaterEqual is where a ≥ b.
func GreaterEqual(a, b graph.Value) graph.Value { return apply(compare{lessEqual}, b, a) }

// IsNaN is where x is NaN.
func IsNaN(x graph.Value) graph.Value { return NotEqual(x, x) }

// And is where both of two truth values are not 0.
func And(a, b graph.Value) graph.Value { return apply(logic{and}, a, b) }

// Or is where one of two truth values, or both, are not 0.
func Or(a, b graph.Value) graph.Value { return apply(logic{or}, a, b) }

// Xor is where exactly one of two truth values is not 0.
func Xor(a, b graph.Value) graph.Value { return apply(logic{xor}, a, b) }

// Not is where a truth value is 0.
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

// truths is the type of truth values of operands that broadcast.
func truths(in ...graph.Type) ([]graph.Type, error) {
	t := in[0]
	for _, u := range in[1:] {
		var err error
		if t, err = jointShape(t, u); err != nil {
			return nil, err
		}
	}
	return []graph.Type{{DType: graph.U8, Shape: t.Shape}}, nil
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
func comparisons(d graph.DType) func(o compare, c *kernel.Call) {
	switch d {
	case graph.F32:
		return func(o compare, c *kernel.Call) { pairwise(c, view32, comparing[float32](o.Kind)) }
	case graph.I32:
		return func(o compare, c *kernel.Call) { pairwise(c, viewI32, comparing[int32](o.Kind)) }
	case graph.U8:
		return func(o compare, c *kernel.Call) { pairwise(c, viewU8, comparing[uint8](o.Kind)) }
	}
	return nil
}

func view32(v tensor.View) []float32 { return v.F32() }
func viewI32(v tensor.View) []int32  { return v.I32() }
func viewU8(v tensor.View) []uint8   { return v.U8() }

func comparing[T cmp.Ordered](k compareKind) func(a, b T) bool {
	switch k {
	case equal:
		return func(a, b T) bool { return a == b }
	case notEqual:
		return func(a, b T) bool { return a != b }
	case less:
		return func(a, b T) bool { return a < b }
	}
	return func(a, b T) bool { return a <= b }
}

// pairwise computes truth values of pairs of elements that view gives.
func pairwise[T any](c *kernel.Call, view func(tensor.View) []T, f func(a, b T) bool) {
	a, b, out := view(c.In[0]), view(c.In[1]), c.Out[0].U8()
	walk(c, c.Out[0].Type, []tensor.Type{c.In[0].Type, c.In[1].Type},
		func(at, n int, from, step each) {
			dst := out[at : at+n]
			i, j := from[0], from[1]
			for k := range dst {
				dst[k] = 0
				if f(a[i], b[j]) {
					dst[k] = 1
				}
				i, j = i+step[0], j+step[1]
			}
		})
}

func compareCPU(o compare, c *kernel.Call) error {
	comparisons(c.In[0].Type.DType)(o, c)
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
	if err := want(in, graph.U8, graph.U8); err != nil {
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
	pairwise(c, viewU8, [...]func(a, b uint8) bool{
		and: func(a, b uint8) bool { return a != 0 && b != 0 },
		or:  func(a, b uint8) bool { return a != 0 || b != 0 },
		xor: func(a, b uint8) bool { return (a != 0) != (b != 0) },
	}[o.Kind])
	return nil
}

type not struct{}

func (not) Name() string { return "not" }

func (not) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.U8); err != nil {
		return nil, err
	}
	return in[:1:1], nil
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
			out[lo+i] = 0
			if v == 0 {
				out[lo+i] = 1
			}
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
	pair := []graph.Type{t(graph.U8, 3, 17), t(graph.U8, 17)}
	register(
		Sample{Op: compare{equal}, In: pair, Fill: fills{0: bits}, NoGrad: []int{0, 1}},
		Sample{Op: logic{and}, In: pair, Fill: fills{0: bits}, NoGrad: []int{0, 1}},
		Sample{Op: logic{or}, In: pair, Fill: fills{0: bits}, NoGrad: []int{0, 1}},
		Sample{Op: logic{xor}, In: pair, Fill: fills{0: bits}, NoGrad: []int{0, 1}},
		Sample{Op: not{}, In: pair[:1], Fill: fills{0: bits}, NoGrad: []int{0}},
	)
}
