package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Where is a where a truth value, bool or u8, is true, and b elsewhere. a and b are of one
// element type, and the three broadcast. The gradient goes to what was taken; what was
// not may be anything, NaN too.
func Where(condition, a, b graph.Value) graph.Value { return apply(where{}, condition, a, b) }

type where struct{}

func (where) Name() string { return "where" }

func (where) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 3); err != nil {
		return nil, err
	}
	if !truth(in[0].DType) {
		return nil, fmt.Errorf("the condition is %s, want bool, as comparisons make: NotEqual "+
			"makes it of numbers, and Cast", in[0])
	}
	if in[1].DType != in[2].DType {
		return nil, fmt.Errorf("a choice of %s and %s: convert one of them with Cast", in[1], in[2])
	}
	out, err := truths(in...)
	if err != nil {
		return nil, err
	}
	return []graph.Type{{DType: in[1].DType, Shape: out[0].Shape}}, nil
}

func (where) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

// InPlace: an operand as large as the result is read just before it is overwritten.
func (where) InPlace(in, out []graph.Type) []int {
	var list []int
	for i, t := range in[1:] {
		if t.SameShape(out[0]) {
			list = append(list, 1+i)
		}
	}
	return list
}

func (where) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if !dout[0].Valid() || !n.Out[0].DType.Floating() {
		return none(3)
	}
	condition, zero := n.In[0], scalar(dout[0], 0)
	return []graph.Value{{}, reduceTo(Where(condition, dout[0], zero), n.In[1].Type()),
		reduceTo(Where(condition, zero, dout[0]), n.In[2].Type())}
}

// Cut is between any elements.
func (where) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutAny(in, out) }

// Part is the operation itself.
func (o where) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// whereCPU moves elements of any type by their size.
func whereCPU(_ where, c *kernel.Call) error {
	switch c.Out[0].Type.DType.Size() {
	case 1:
		choose[uint8](c)
	case 2:
		choose[uint16](c)
	case 4:
		choose[uint32](c)
	default:
		choose[uint64](c)
	}
	return nil
}

func choose[T any](c *kernel.Call) {
	condition, a, b, out := c.In[0].U8(), raw[T](c.In[1]), raw[T](c.In[2]), raw[T](c.Out[0])
	in := []tensor.Type{c.In[0].Type, c.In[1].Type, c.In[2].Type}
	walk(c, c.Out[0].Type, in, func(at, n int, from, step each) {
		dst := out[at : at+n]
		if step == (each{1, 1, 1}) {
			yes, no := a[from[1]:from[1]+n], b[from[2]:from[2]+n]
			for i, v := range condition[from[0] : from[0]+n] {
				x := no[i]
				if v != 0 {
					x = yes[i]
				}
				dst[i] = x
			}
			return
		}
		i, j, k := from[0], from[1], from[2]
		for p := range dst {
			if condition[i] != 0 {
				dst[p] = a[j]
			} else {
				dst[p] = b[k]
			}
			i, j, k = i+step[0], j+step[1], k+step[2]
		}
	})
}

func init() {
	kernel.Register(kernel.CPU, whereCPU)
	t := func(d graph.DType, sizes ...int) graph.Type { return tensor.Of(d, sizes...) }
	float := func(condition, a, b graph.Type) Sample {
		return Sample{Op: where{}, In: []graph.Type{condition, a, b}, Fill: fills{0: bits},
			NoGrad: []int{0}, Second: true}
	}
	register(
		float(t(graph.Bool, 3, 17), t(graph.F32, 3, 17), t(graph.F32, 3, 17)),
		float(t(graph.U8, 17), t(graph.F32, 3, 1), t(graph.F32)),
		float(t(graph.U8, 2, 1, 3), t(graph.F32, 4, 1), t(graph.F32, 2, 4, 3)),
		Sample{Op: where{}, In: []graph.Type{t(graph.U8, 5), t(graph.I32, 3, 5), t(graph.I32)},
			Fill: fills{0: bits}, NoGrad: []int{0, 1, 2}},
		Sample{Op: where{}, In: []graph.Type{t(graph.U8, 5), t(graph.U8, 3, 5), t(graph.U8)},
			Fill: fills{0: bits}, NoGrad: []int{0, 1, 2}},
		Sample{Op: where{}, In: []graph.Type{t(graph.U8, 5), t(graph.BF16, 5), t(graph.BF16)},
			Fill: fills{0: bits}, NoGrad: []int{0, 1, 2}},
	)
}
