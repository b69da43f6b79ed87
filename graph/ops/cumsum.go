package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// CumSum is, along an axis, the sum of the elements up to each, itself included. x is
// f32, added up in 64 bits, f64, or of integers of 32 bits or 64, whose sums wrap.
func CumSum(x graph.Value, along int) graph.Value {
	return apply(cumSum{Axis: axis(along, x.Type().Rank())}, x)
}

// CumSumExclusive is CumSum without the element itself: the first is 0.
func CumSumExclusive(x graph.Value, along int) graph.Value {
	return apply(cumSum{Axis: axis(along, x.Type().Rank()), Exclusive: true}, x)
}

// cumSum adds up from the first element on, or from the last.
type cumSum struct {
	Axis               int
	Reverse, Exclusive bool
}

func (cumSum) Name() string { return "cumsum" }

func (o cumSum) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	switch in[0].DType {
	case graph.F32, graph.F64, graph.I32, graph.I64, graph.U32, graph.U64:
	default:
		return nil, fmt.Errorf("operand is %s, want f32 or f64, or integers of 32 bits or 64: "+
			"convert it with Cast", in[0])
	}
	if o.Axis < 0 || o.Axis >= in[0].Rank() {
		return nil, fmt.Errorf("%s has no axis %d", in[0], o.Axis)
	}
	return in[:1:1], nil
}

func (cumSum) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

// InPlace: an element is read before it is overwritten.
func (cumSum) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP adds up from the other end.
func (o cumSum) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if !n.In[0].Type().DType.Floating() || !dout[0].Valid() {
		return none(1)
	}
	o.Reverse = !o.Reverse
	return []graph.Value{apply(o, dout[0])}
}

func cumSumCPU(o cumSum, c *kernel.Call) error {
	switch c.In[0].Type.DType {
	case graph.I32, graph.U32: // which wrap alike
		cumulate[int32, int32](o, c, raw[int32](c.Out[0]), raw[int32](c.In[0]))
	case graph.I64, graph.U64:
		cumulate[int64, int64](o, c, raw[int64](c.Out[0]), raw[int64](c.In[0]))
	case graph.F64:
		cumulate[float64, float64](o, c, c.Out[0].F64(), c.In[0].F64())
	default:
		cumulate[float32, float64](o, c, c.Out[0].F32(), c.In[0].F32())
	}
	return nil
}

// cumulate goes through the rows of an axis for some columns at a time, with sums of
// type S.
func cumulate[T, S int32 | int64 | float32 | float64](o cumSum, c *kernel.Call, out, x []T) {
	t := c.In[0].Type
	n, inner := t.Size(o.Axis), graph.Type{Shape: t.Shape[o.Axis+1:]}.Elems()
	c.Pool.For(len(x)/max(1, n), max(1, grain/max(1, n)), func(lo, hi int) {
		for lo < hi { // columns of one outer index at a time
			at := lo % inner
			end := min(inner, at+hi-lo, at+narrow)
			first := lo/inner*n*inner + at
			cumulateColumns[T, S](o, out[first:], x[first:], n, inner, end-at)
			lo += end - at
		}
	})
}

// cumulateColumns adds up so many columns of n rows, which are stride apart.
func cumulateColumns[T, S int32 | int64 | float32 | float64](o cumSum, out, x []T, n, stride,
	columns int) {
	var room [narrow]S
	sums := room[:columns]
	for k := range n {
		if o.Reverse {
			k = n - 1 - k
		}
		dst := out[k*stride : k*stride+columns]
		for i, v := range x[k*stride : k*stride+columns] {
			before := sums[i]
			if sums[i] += S(v); o.Exclusive {
				dst[i] = T(before)
			} else {
				dst[i] = T(sums[i])
			}
		}
	}
}

func init() {
	kernel.Register(kernel.CPU, cumSumCPU)
	f := func(sizes ...int) []graph.Type { return []graph.Type{tensor.Of(graph.F32, sizes...)} }
	register(
		Sample{Op: cumSum{Axis: 1}, In: f(3, 17), Second: true},
		Sample{Op: cumSum{Axis: 0, Reverse: true}, In: f(5, 300), Second: true},
		Sample{Op: cumSum{Axis: 1, Exclusive: true}, In: f(2, 5, 3), Second: true},
		Sample{Op: cumSum{Axis: 0, Reverse: true, Exclusive: true}, In: f(7), Second: true},
	)
	for _, d := range []graph.DType{graph.I32, graph.I64, graph.U32, graph.U64, graph.F64} {
		register(Sample{Op: cumSum{Axis: 1}, In: []graph.Type{tensor.Of(d, 3, 17)},
			NoGrad: []int{0}})
	}
}
