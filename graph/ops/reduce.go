package ops

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/tensor"
)

// Sum adds up x over some axes, all of them if none are given, and drops them. A
// negative axis counts from the end.
func Sum(x graph.Value, axes ...int) graph.Value { return reduceAxes(x, axes, false) }

// SumKeep is Sum that keeps the axes with size 1.
func SumKeep(x graph.Value, axes ...int) graph.Value { return reduceAxes(x, axes, true) }

// Mean is Sum divided by the number of elements summed.
func Mean(x graph.Value, axes ...int) graph.Value {
	s := Sum(x, axes...)
	if !s.Valid() {
		return s
	}
	return Scale(s, float32(s.Type().Elems())/float32(x.Type().Elems()))
}

// reduceAxes sums over runs of neighbouring axes, the last first.
func reduceAxes(x graph.Value, axes []int, keep bool) graph.Value {
	if !x.Valid() {
		return x
	}
	rank := x.Type().Rank()
	chosen := make([]bool, rank)
	for _, a := range axes {
		i := axis(a, rank)
		if i < 0 {
			x.Graph().Fail(fmt.Errorf("sum over axis %d of %s", a, x.Type()))
			return graph.Value{}
		}
		chosen[i] = true
	}
	if len(axes) == 0 {
		for i := range chosen {
			chosen[i] = true
		}
	}
	for hi := rank; hi > 0; hi-- {
		lo := hi
		for lo > 0 && chosen[lo-1] {
			lo--
		}
		if lo < hi {
			x = apply(sum{Lo: lo, Hi: hi, Keep: keep}, x)
			hi = lo + 1
		}
	}
	return x
}

// sum adds up over axes Lo to Hi-1.
type sum struct {
	Lo, Hi int
	Keep   bool
}

func (sum) Name() string { return "sum" }

func (s sum) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	t := in[0]
	if s.Lo < 0 || s.Hi > t.Rank() || s.Lo >= s.Hi {
		return nil, fmt.Errorf("sum over axes %d to %d of %s", s.Lo, s.Hi-1, t)
	}
	shape := slices.Clone(t.Shape[:s.Lo])
	if s.Keep {
		shape = append(shape, make([]graph.Dim, s.Hi-s.Lo)...)
		for i := s.Lo; i < s.Hi; i++ {
			shape[i].Size = 1
		}
	}
	return []graph.Type{{DType: graph.F32, Shape: append(shape, t.Shape[s.Hi:]...)}}, nil
}

func (sum) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[0].Elems()), Bytes: bytes(in, out)}
}

func (s sum) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x := n.In[0].Type()
	kept := slices.Clone(x.Shape)
	for i := s.Lo; i < s.Hi; i++ {
		kept[i] = graph.Dim{Size: 1}
	}
	return []graph.Value{BroadcastTo(Reshape(dout[0], kept...), x.Sizes()...)}
}

// sumCPU splits over results only: over the outer axes, or over the inner ones.
func sumCPU(s sum, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	t := c.In[0].Type
	inner := graph.Type{Shape: t.Shape[s.Hi:]}.Elems()
	n := graph.Type{Shape: t.Shape[s.Lo:s.Hi]}.Elems()
	outer := len(out) / inner
	if inner == 1 {
		c.Pool.For(outer, max(1, grain/n), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				out[i] = vec.Sum(x[i*n : (i+1)*n])
			}
		})
		return nil
	}
	c.Pool.For(outer*inner, max(16, grain/n), func(lo, hi int) {
		for lo < hi { // one outer index at a time
			o, at := lo/inner, lo%inner
			end := min(inner, at+hi-lo)
			dst := out[o*inner+at : o*inner+end]
			copy(dst, x[o*n*inner+at:])
			for k := 1; k < n; k++ {
				vec.Add(dst, dst, x[(o*n+k)*inner+at:(o*n+k)*inner+end])
			}
			lo += end - at
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, sumCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: sum{Lo: 0, Hi: 2}, In: []graph.Type{f(3, 5)}, Second: true},
		Sample{Op: sum{Lo: 1, Hi: 2}, In: []graph.Type{f(3, 17)}, Second: true},
		Sample{Op: sum{Lo: 0, Hi: 1}, In: []graph.Type{f(3, 17)}, Second: true},
		Sample{Op: sum{Lo: 1, Hi: 2, Keep: true}, In: []graph.Type{f(2, 3, 5)}, Second: true},
		Sample{Op: sum{Lo: 1, Hi: 3}, In: []graph.Type{f(2, 3, 5, 4)}, Second: true},
	)
}
