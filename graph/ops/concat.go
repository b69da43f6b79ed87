package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Concat joins values along an axis; they agree in all other axes.
func Concat(along int, xs ...graph.Value) graph.Value {
	if len(xs) > 0 && xs[0].Valid() {
		along = axis(along, xs[0].Type().Rank())
	}
	return apply(concat{along}, xs...)
}

// Slice is elements lo to hi-1 of x along an axis. Along the first axis it costs
// nothing.
func Slice(x graph.Value, along, lo, hi int) graph.Value {
	along = axis(along, x.Type().Rank())
	if along == 0 {
		return apply(head{lo, hi}, x)
	}
	return apply(cut{along, lo, hi}, x)
}

// Pad puts zeros before and after x along an axis.
func Pad(x graph.Value, along, before, after int) graph.Value {
	if before == 0 && after == 0 {
		return x
	}
	return apply(pad{axis(along, x.Type().Rank()), before, after}, x)
}

type concat struct{ Axis int }

func (concat) Name() string { return "concat" }

func (o concat) Infer(in []graph.Type) ([]graph.Type, error) {
	if len(in) == 0 {
		return nil, fmt.Errorf("nothing to join")
	}
	first := in[0]
	if o.Axis < 0 || o.Axis >= first.Rank() {
		return nil, fmt.Errorf("%s has no axis %d", first, o.Axis)
	}
	size := 0
	for _, t := range in {
		if t.Rank() != first.Rank() || !resized(t, o.Axis, 1).Equal(resized(first, o.Axis, 1)) {
			return nil, fmt.Errorf("%s and %s differ in more than axis %d%s", first, t, o.Axis,
				convertible(t, first.DType))
		}
		size += t.Size(o.Axis)
	}
	return []graph.Type{resized(first, o.Axis, size)}, nil
}

func (concat) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (o concat) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	out := make([]graph.Value, len(n.In))
	at := 0
	for i, v := range n.In {
		size := v.Type().Size(o.Axis)
		out[i] = Slice(dout[0], o.Axis, at, at+size)
		at += size
	}
	return out
}

// blocks is the geometry of an axis: the outer count, and the bytes of one step
// along the axis.
func blocks(t tensor.Type, axis int) (outer int, step int) {
	outer = graph.Type{Shape: t.Shape[:axis]}.Elems()
	step = graph.Type{Shape: t.Shape[axis+1:]}.Elems() * int(t.DType.Size())
	return outer, step
}

func concatCPU(o concat, c *kernel.Call) error {
	out := c.Out[0]
	outer, step := blocks(out.Type, o.Axis)
	row := out.Type.Size(o.Axis) * step
	at := 0
	for _, x := range c.In {
		n := x.Type.Size(o.Axis) * step
		if n == 0 {
			continue
		}
		c.Pool.For(outer, max(1, grain/n), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				copy(out.Data[i*row+at:i*row+at+n], x.Data[i*n:])
			}
		})
		at += n
	}
	return nil
}

// cut is Slice along an axis that is not the first.
type cut struct{ Axis, Lo, Hi int }

func (cut) Name() string { return "slice" }

func (o cut) Infer(in []graph.Type) ([]graph.Type, error) { return cutAxis(in, o.Axis, o.Lo, o.Hi) }

func (cut) Cost(_, out []graph.Type) graph.Cost { return graph.Cost{Bytes: 2 * out[0].Bytes()} }

func (o cut) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{Pad(dout[0], o.Axis, o.Lo, n.In[0].Type().Size(o.Axis)-o.Hi)}
}

func cutCPU(o cut, c *kernel.Call) error {
	x, out := c.In[0], c.Out[0]
	outer, step := blocks(x.Type, o.Axis)
	row, n := x.Type.Size(o.Axis)*step, (o.Hi-o.Lo)*step
	c.Pool.For(outer, max(1, grain/n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(out.Data[i*n:(i+1)*n], x.Data[i*row+o.Lo*step:])
		}
	})
	return nil
}

type pad struct{ Axis, Before, After int }

func (pad) Name() string { return "pad" }

func (o pad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	const most = 1 << 30
	if o.Axis < 0 || o.Axis >= in[0].Rank() || o.Before < 0 || o.After < 0 || o.Before > most ||
		o.After > most {
		return nil, fmt.Errorf("%s cannot be padded by %d and %d along axis %d", in[0], o.Before,
			o.After, o.Axis)
	}
	return []graph.Type{resized(in[0], o.Axis, o.Before+in[0].Size(o.Axis)+o.After)}, nil
}

func (pad) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (o pad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{Slice(dout[0], o.Axis, o.Before, o.Before+n.In[0].Type().Size(o.Axis))}
}

func padCPU(o pad, c *kernel.Call) error {
	x, out := c.In[0], c.Out[0]
	outer, step := blocks(x.Type, o.Axis)
	row, n, at := out.Type.Size(o.Axis)*step, x.Type.Size(o.Axis)*step, o.Before*step
	c.Pool.For(outer, max(1, grain/row), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			dst := out.Data[i*row : (i+1)*row]
			clear(dst[:at])
			copy(dst[at:at+n], x.Data[i*n:])
			clear(dst[at+n:])
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, concatCPU)
	kernel.Register(kernel.CPU, cutCPU)
	kernel.Register(kernel.CPU, padCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: concat{0}, In: []graph.Type{f(2, 5), f(1, 5), f(3, 5)}, Second: true},
		Sample{Op: concat{1}, In: []graph.Type{f(3, 2), f(3, 5)}, Second: true},
		Sample{Op: concat{1}, In: []graph.Type{f(3, 2, 4), f(3, 1, 4)}, Second: true},
		Sample{Op: cut{1, 1, 3}, In: []graph.Type{f(3, 5)}, Second: true},
		Sample{Op: cut{1, 0, 2}, In: []graph.Type{f(2, 3, 4)}, Second: true},
		Sample{Op: pad{0, 1, 2}, In: []graph.Type{f(3, 5)}, Second: true},
		Sample{Op: pad{1, 2, 0}, In: []graph.Type{f(2, 3, 4)}, Second: true},
	)
}
