package ops

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// ArgMax is where the largest element along an axis is, the first of equals: i32, with
// the axis dropped. NaN is larger than all numbers. x is of any type. There is no
// gradient.
func ArgMax(x graph.Value, along int) graph.Value {
	return apply(arg{Axis: axis(along, x.Type().Rank())}, comparable32(x))
}

// comparable32 is 16-bit numbers in f32, which has them exactly, and others as they are.
func comparable32(x graph.Value) graph.Value {
	if x.Valid() && small(x.Type().DType) {
		return Cast(x, graph.F32)
	}
	return x
}

// ArgMin is where the smallest element is, or the first NaN; see ArgMax.
func ArgMin(x graph.Value, along int) graph.Value {
	return apply(arg{Axis: axis(along, x.Type().Rank()), Least: true}, comparable32(x))
}

type arg struct {
	Axis  int
	Least bool
}

func (o arg) Name() string {
	if o.Least {
		return "arg-min"
	}
	return "arg-max"
}

func (o arg) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	if small(in[0].DType) {
		return nil, fmt.Errorf("operand is %s: convert it to f32 with Cast", in[0])
	}
	out, err := dropped(in[0], o.Axis, o.Axis+1)
	if err == nil && in[0].Size(o.Axis) == 0 {
		err = fmt.Errorf("%s has no elements along axis %d", in[0], o.Axis)
	}
	return []graph.Type{{DType: graph.I32, Shape: out.Shape}}, err
}

func (arg) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[0].Elems()), Bytes: bytes(in, out)}
}

func (arg) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

func argCPU(o arg, c *kernel.Call) error {
	switch c.In[0].Type.DType {
	case graph.F32:
		if o.Axis == c.In[0].Type.Rank()-1 && !o.Least {
			argRows(c)
		} else {
			args(o, c, c.In[0].F32())
		}
	case graph.F64:
		args(o, c, c.In[0].F64())
	case graph.I8:
		args(o, c, c.In[0].I8())
	case graph.I16:
		args(o, c, c.In[0].I16())
	case graph.I32:
		args(o, c, c.In[0].I32())
	case graph.I64:
		args(o, c, c.In[0].I64())
	case graph.U16:
		args(o, c, c.In[0].U16())
	case graph.U32:
		args(o, c, c.In[0].U32())
	case graph.U64:
		args(o, c, c.In[0].U64())
	default:
		args(o, c, c.In[0].U8())
	}
	return nil
}

// argRows looks for the largest of a row, and then for where it is.
func argRows(c *kernel.Call) {
	x, out := c.In[0].F32(), c.Out[0].I32()
	n := c.In[0].Type.Size(-1)
	rows(c, len(x), n, func(lo, hi int) {
		out[lo/n] = int32(firstLargest(x[lo:hi]))
	})
}

// firstLargest is where the largest element of a row is, the first of equals, or the first
// NaN.
func firstLargest(row []float32) int {
	most := vec.MaxOf(row)
	return slices.IndexFunc(row, func(v float32) bool { return v == most || v != v })
}

// args goes through the rows of an axis for some columns at a time.
func args[T cmp.Ordered](o arg, c *kernel.Call, x []T) {
	t, out := c.In[0].Type, c.Out[0].I32()
	n, inner := t.Size(o.Axis), graph.Type{Shape: t.Shape[o.Axis+1:]}.Elems()
	ahead := func(a, b T) bool { return a > b || a != a && b == b }
	if o.Least {
		ahead = func(a, b T) bool { return a < b || a != a && b == b }
	}
	c.Pool.For(len(out), max(1, grain/n), func(lo, hi int) {
		for lo < hi { // columns of one outer index at a time
			at := lo % inner
			end := min(inner, at+hi-lo, at+narrow)
			argColumns(out[lo:lo+end-at], x[lo/inner*n*inner+at:], n, inner, ahead)
			lo += end - at
		}
	})
}

// argColumns finds the best of n rows of x, which are stride apart, in every column.
func argColumns[T any](out []int32, x []T, n, stride int, ahead func(a, b T) bool) {
	var room [narrow]T
	best := room[:copy(room[:len(out)], x)]
	clear(out)
	for k := 1; k < n; k++ {
		for i, v := range x[k*stride : k*stride+len(out)] {
			if ahead(v, best[i]) {
				best[i], out[i] = v, int32(k)
			}
		}
	}
}

func init() {
	kernel.Register(kernel.CPU, argCPU)
	for _, least := range []bool{false, true} {
		over := func(axis int, t graph.Type) Sample {
			return Sample{Op: arg{axis, least}, In: []graph.Type{t}, NoGrad: []int{0}}
		}
		register(
			over(1, tensor.Of(graph.F32, 3, 17)), over(0, tensor.Of(graph.F32, 5, 300)),
			over(1, tensor.Of(graph.I32, 2, 5, 3)), over(0, tensor.Of(graph.U8, 9)),
			over(1, tensor.Of(graph.F32, 2, 1500)), // a block of a GPU takes a row
		)
		for _, d := range tensor.DTypes() {
			if !small(d) {
				register(over(1, tensor.Of(d, 2, 9, 2)))
			}
		}
	}
}
