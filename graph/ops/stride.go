package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// SliceStep is every step-th element of x along an axis, from lo to hi-1: Python's
// x[lo:hi:step], but without negative numbers; what is beyond the end is the end, and a hi
// that is not beyond lo leaves no elements.
func SliceStep(x graph.Value, along, lo, hi, step int) graph.Value {
	if !x.Valid() {
		return x
	}
	t := x.Type()
	i := axis(along, t.Rank())
	if i < 0 || lo < 0 || hi < 0 || step < 1 {
		x.Graph().Fail(fmt.Errorf("%s has no elements %d to %d, by %d, along axis %d", t, lo, hi-1,
			step, along))
		return graph.Value{}
	}
	lo = min(lo, t.Size(i))
	hi = max(lo, min(hi, t.Size(i)))
	if step == 1 || lo == hi {
		return Slice(x, i, lo, hi)
	}
	return apply(stride{Axis: i, First: lo, Step: step, Count: (hi-lo-1)/step + 1}, x)
}

// Reverse is x with the elements of some axes, all of them if none are given, in the
// opposite order.
func Reverse(x graph.Value, axes ...int) graph.Value {
	if !x.Valid() {
		return x
	}
	t := x.Type()
	if len(axes) == 0 {
		axes = axesFrom(0, t.Rank())
	}
	for _, a := range axes {
		i := axis(a, t.Rank())
		if i < 0 {
			x.Graph().Fail(fmt.Errorf("%s has no axis %d to reverse", t, a))
			return graph.Value{}
		}
		if t.Size(i) == 0 {
			continue
		}
		x = apply(stride{Axis: i, First: t.Size(i) - 1, Step: -1, Count: t.Size(i)}, x)
	}
	return x
}

// stride takes Count elements along an axis: First, First+Step, and so on.
type stride struct{ Axis, First, Step, Count int }

func (stride) Name() string { return "slice-step" }

// inside reports whether an axis of so many elements has the ones that are taken.
func (o stride) inside(size int) bool {
	const most = 1 << 40
	if o.Count < 1 || o.Count > size || o.First < 0 || o.First >= size || o.Step == 0 ||
		o.Step > most || o.Step < -most {
		return false
	}
	last := o.First + (o.Count-1)*o.Step
	return last >= 0 && last < size
}

func (o stride) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	if o.Axis < 0 || o.Axis >= in[0].Rank() || !o.inside(in[0].Size(o.Axis)) {
		return nil, fmt.Errorf("%s has no %d elements from %d on, by %d, along axis %d", in[0],
			o.Count, o.First, o.Step, o.Axis)
	}
	return []graph.Type{resized(in[0], o.Axis, o.Count)}, nil
}

func (stride) Cost(_, out []graph.Type) graph.Cost { return graph.Cost{Bytes: 2 * out[0].Bytes()} }

func (o stride) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(unstride{o, n.In[0].Type().Size(o.Axis)}, dout[0])}
}

func strideCPU(o stride, c *kernel.Call) error {
	x, out := c.In[0], c.Out[0]
	o.eachRow(c, x.Type, func(at, row, step int) { copy(out.Data[at:at+step], x.Data[row:]) })
	return nil
}

// eachRow visits what is taken, in parallel: f gets where it is among the elements that
// are taken, where it is among all, and how long it is, in bytes.
func (o stride) eachRow(c *kernel.Call, all tensor.Type, f func(at, row, step int)) {
	outer, step := blocks(all, o.Axis)
	size := all.Size(o.Axis)
	c.Pool.For(outer*o.Count, max(1, grain/max(8, step)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i*step, (i/o.Count*size+o.First+i%o.Count*o.Step)*step, step)
		}
	})
}

// unstride puts elements where stride takes them from, among zeros.
type unstride struct {
	Stride stride
	Size   int
}

func (unstride) Name() string { return "pad-step" }

func (o unstride) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	s := o.Stride
	if s.Axis < 0 || s.Axis >= in[0].Rank() || in[0].Size(s.Axis) != s.Count || !s.inside(o.Size) {
		return nil, fmt.Errorf("%s cannot be spread from %d on, by %d, along axis %d of %d", in[0],
			s.First, s.Step, s.Axis, o.Size)
	}
	return []graph.Type{resized(in[0], s.Axis, o.Size)}, nil
}

func (unstride) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (o unstride) VJP(_ *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(o.Stride, dout[0])}
}

func unstrideCPU(o unstride, c *kernel.Call) error {
	x, out := c.In[0], c.Out[0]
	c.Pool.For(len(out.Data), 4*grain, func(lo, hi int) { clear(out.Data[lo:hi]) })
	o.Stride.eachRow(c, out.Type, func(at, row, step int) {
		copy(out.Data[row:row+step], x.Data[at:])
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, strideCPU)
	kernel.Register(kernel.CPU, unstrideCPU)
	f := func(sizes ...int) []graph.Type { return []graph.Type{tensor.Of(graph.F32, sizes...)} }
	register(
		Sample{Op: stride{0, 1, 2, 3}, In: f(7, 5), Second: true},
		Sample{Op: stride{1, 0, 3, 6}, In: f(3, 17), Second: true},
		Sample{Op: stride{1, 2, -1, 3}, In: f(2, 3, 4), Second: true},
		Sample{Op: stride{1, 1, 2, 2}, In: []graph.Type{tensor.Of(graph.U8, 3, 5)},
			NoGrad: []int{0}},
		Sample{Op: unstride{stride{1, 1, 3, 4}, 12}, In: f(3, 4), Second: true},
	)
}
