package ops

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Take is what is at some places along an axis: x [a… n c…] of any element type, and
// indices i32[i…] in [0, n) → [a… i… c…]. Its gradient adds up what comes from one
// place.
func Take(x, indices graph.Value, along int) graph.Value {
	return apply(take{Axis: axis(along, x.Type().Rank())}, x, indices)
}

// Gather is PyTorch's: indices i32, with as many axes as x and not longer along any but
// one; element (i, j, k) of the result is x(i, indices(i, j, k), k), if the axis is the
// second. Its gradient adds up what comes from one element.
func Gather(x, indices graph.Value, along int) graph.Value {
	return apply(gather{Axis: axis(along, x.Type().Rank())}, x, indices)
}

// ScatterAdd is x with elements of rows added where Gather would take them from; rows are
// as long as the indices along every axis. What is added to one element is added up
// first, in the order of the indices.
func ScatterAdd(x, indices, rows graph.Value, along int) graph.Value {
	if !x.Valid() {
		return x
	}
	i := axis(along, x.Type().Rank())
	if i < 0 {
		x.Graph().Fail(fmt.Errorf("%s has no axis %d", x.Type(), along))
		return graph.Value{}
	}
	return Add(x, apply(scatter{Axis: i, Shape: newDims(x.Type().Shape)}, indices, rows))
}

// take has operands x and indices.
type take struct{ Axis int }

func (take) Name() string { return "take" }

func (o take) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 2); err != nil {
		return nil, err
	}
	if in[1].DType != graph.I32 {
		return nil, fmt.Errorf("indices are %s, want i32: convert them with Cast", in[1])
	}
	if o.Axis < 0 || o.Axis >= in[0].Rank() {
		return nil, fmt.Errorf("%s has no axis %d", in[0], o.Axis)
	}
	shape := slices.Concat(in[0].Shape[:o.Axis], in[1].Shape)
	for _, d := range in[0].Shape[o.Axis+1:] {
		shape = extended(shape, d)
	}
	for i, d := range shape { // names of the indices' axes give way
		if i < o.Axis+in[1].Rank() && slices.ContainsFunc(shape[:i], func(e graph.Dim) bool {
			return e.Name == d.Name
		}) {
			shape[i].Name = ""
		}
	}
	return []graph.Type{{DType: in[0].DType, Shape: shape}}, nil
}

func (take) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: 2*out[0].Bytes() + in[1].Bytes()}
}

// CheckData wants places along the axis.
func (o take) CheckData(in []tensor.View) error {
	return checkIDs(known(in[1]), in[0].Type.Size(o.Axis))
}

func (o take) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x := n.In[0].Type()
	outer := graph.Type{Shape: x.Shape[:o.Axis]}.Elems()
	inner := graph.Type{Shape: x.Shape[o.Axis+1:]}.Elems()
	d := ReshapeSizes(dout[0], outer, n.In[1].Type().Elems(), inner)
	dx := apply(takeGrad{Size: x.Size(o.Axis)}, n.In[1], d)
	return []graph.Value{Reshape(dx, x.Shape...), {}}
}

func takeCPU(o take, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	x, indices, out := c.In[0], c.In[1].I32(), c.Out[0]
	outer, step := blocks(x.Type, o.Axis)
	size := x.Type.Size(o.Axis)
	c.Pool.For(outer*len(indices), max(1, grain/max(8, step)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := i/len(indices)*size + int(indices[i%len(indices)])
			copy(out.Data[i*step:(i+1)*step], x.Data[row*step:])
		}
	})
	return nil
}

// takeGrad adds up: indices i32[…] of k in all, d f32[outer k inner] →
// f32[outer Size inner].
type takeGrad struct{ Size int }

func (takeGrad) Name() string { return "take-grad" }

func (o takeGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32, graph.F32); err != nil {
		return nil, err
	}
	if in[1].Rank() != 3 || in[1].Size(1) != in[0].Elems() || o.Size < 0 {
		return nil, fmt.Errorf("gradient %s of elements %s of %d", in[1], in[0], o.Size)
	}
	t := tensor.Of(graph.F32, in[1].Size(0), o.Size, in[1].Size(2))
	return []graph.Type{t}, t.Check()
}

func (takeGrad) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[1].Elems()), Bytes: bytes(in, out) + 2*in[1].Bytes()}
}

// CheckData wants places along the axis.
func (o takeGrad) CheckData(in []tensor.View) error { return checkIDs(known(in[0]), o.Size) }

func (takeGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{{}, Reshape(Take(dout[0], n.In[0], 1), n.In[1].Type().Shape...)}
}

// takeGradCPU splits over rows of the result, as the embedding's gradient does.
func takeGradCPU(o takeGrad, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	indices, d, out := c.In[0].I32(), c.In[1].F32(), c.Out[0].F32()
	outer, inner := c.Out[0].Type.Size(0), c.Out[0].Type.Size(2)
	c.Pool.For(outer*o.Size, max(1, grain/max(1, inner)), func(lo, hi int) {
		clear(out[lo*inner : hi*inner])
		for a := lo / o.Size; a*o.Size < hi; a++ {
			for i, k := range indices {
				if row := a*o.Size + int(k); row >= lo && row < hi {
					to := out[row*inner : (row+1)*inner]
					vec.Add(to, to, d[(a*len(indices)+i)*inner:])
				}
			}
		}
	})
	return nil
}

// gather has operands x and indices.
type gather struct{ Axis int }

func (gather) Name() string { return "gather" }

// checkGather wants indices that are not longer than x along any axis but one.
func checkGather(x, indices graph.Type, axis int) error {
	if indices.DType != graph.I32 {
		return fmt.Errorf("indices are %s, want i32: convert them with Cast", indices)
	}
	if axis < 0 || axis >= x.Rank() || indices.Rank() != x.Rank() || x.Rank() > maxRank {
		return fmt.Errorf("elements %s of %s along axis %d", indices, x, axis)
	}
	for i, d := range indices.Shape {
		if i != axis && d.Size > x.Size(i) {
			return fmt.Errorf("elements %s of %s along axis %d", indices, x, axis)
		}
	}
	return nil
}

func (o gather) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 2); err != nil {
		return nil, err
	}
	if err := checkGather(in[0], in[1], o.Axis); err != nil {
		return nil, err
	}
	return []graph.Type{{DType: in[0].DType, Shape: in[1].Shape}}, nil
}

func (gather) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: 2*out[0].Bytes() + in[1].Bytes()}
}

// CheckData wants places along the axis.
func (o gather) CheckData(in []tensor.View) error {
	return checkIDs(known(in[1]), in[0].Type.Size(o.Axis))
}

func (o gather) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	shape := newDims(n.In[0].Type().Shape)
	return []graph.Value{apply(scatter{o.Axis, shape}, n.In[1], dout[0]), {}}
}

// gatherCPU moves elements of any type by their size.
func gatherCPU(o gather, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	x, out := c.In[0], c.Out[0]
	size := int(x.Type.DType.Size())
	p := placesOf(x.Type, c.In[1], o.Axis)
	c.Pool.For(c.In[1].Type.Elems(), grain/4, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			at := p.place(i) * size
			copy(out.Data[i*size:(i+1)*size], x.Data[at:at+size])
		}
	})
	return nil
}

// places says where Gather's elements are.
type places struct {
	indices []int32
	size    []graph.Dim // of the axes of indices
	stride  [maxRank]int
	axis    int
}

func placesOf(x tensor.Type, indices tensor.View, axis int) places {
	p := places{indices: indices.I32(), size: indices.Type.Shape, axis: axis}
	step := 1
	for k := x.Rank() - 1; k >= 0; k-- {
		p.stride[k] = step
		step *= x.Size(k)
	}
	return p
}

// place is the element that index i names.
func (p *places) place(i int) int {
	at, rest := int(p.indices[i])*p.stride[p.axis], i
	for k := len(p.size) - 1; k >= 0; k-- {
		if k != p.axis {
			at += rest % p.size[k].Size * p.stride[k]
		}
		rest /= p.size[k].Size
	}
	return at
}

// scatter adds elements up where gather takes them from, among zeros: indices, d →
// Shape.
type scatter struct {
	Axis  int
	Shape dims
}

func (scatter) Name() string { return "scatter-add" }

func (o scatter) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32, graph.F32); err != nil {
		return nil, err
	}
	if err := o.Shape.check(); err != nil {
		return nil, err
	}
	out := o.Shape.typ(graph.F32)
	if !in[0].SameShape(in[1]) {
		return nil, fmt.Errorf("elements %s where indices %s say", in[1], in[0])
	}
	return []graph.Type{out}, checkGather(out, in[0], o.Axis)
}

func (scatter) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[1].Elems()), Bytes: bytes(in, out) + 2*in[1].Bytes()}
}

// CheckData wants places along the axis.
func (o scatter) CheckData(in []tensor.View) error {
	return checkIDs(known(in[0]), o.Shape.D[o.Axis].Size)
}

func (o scatter) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{{}, apply(gather{o.Axis}, dout[0], n.In[0])}
}

// scatterCPU splits over ranges of the result before the axis, or, if there is one only,
// of the axis: every thread adds up what is its own, in the order of the indices.
func scatterCPU(o scatter, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	d, out := c.In[1].F32(), c.Out[0].F32()
	p := placesOf(c.Out[0].Type, c.In[0], o.Axis)
	outer, inner := 1, p.stride[o.Axis] // a part of the result, and one of the indices
	part, from := len(out), len(d)
	if o.Axis > 0 && len(out) > 0 {
		outer = c.Out[0].Type.Size(0)
		part, from = len(out)/outer, len(d)/max(1, c.In[0].Type.Size(0))
	}
	if outer > 1 {
		c.Pool.For(outer, max(1, grain/max(1, part)), func(lo, hi int) {
			clear(out[lo*part : hi*part])
			for i := lo * from; i < min(len(d), hi*from); i++ {
				out[p.place(i)] += d[i]
			}
		})
		return nil
	}
	c.Pool.For(len(out)/max(1, inner), max(1, grain/max(1, inner)), func(lo, hi int) {
		lo, hi = lo*inner, hi*inner
		clear(out[lo:hi])
		for i, v := range d {
			if at := p.place(i); at >= lo && at < hi {
				out[at] += v
			}
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, takeCPU)
	kernel.Register(kernel.CPU, takeGradCPU)
	kernel.Register(kernel.CPU, gatherCPU)
	kernel.Register(kernel.CPU, scatterCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	x := func(op graph.Op, n int32, in ...graph.Type) Sample {
		return Sample{Op: op, In: in, Fill: fills{1: below(int(n))}, NoGrad: []int{1}, Second: true}
	}
	d := func(op graph.Op, n int, in ...graph.Type) Sample {
		return Sample{Op: op, In: in, Fill: fills{0: below(n)}, NoGrad: []int{0}, Second: true}
	}
	register(
		x(take{0}, 5, f(5, 3), ids(7)), x(take{1}, 4, f(3, 4, 5), ids(2, 3)),
		x(take{1}, 4, f(3, 4), ids()),
		Sample{Op: take{1}, In: []graph.Type{tensor.Of(graph.U8, 2, 3), ids(5)},
			NoGrad: []int{0, 1}},
		d(takeGrad{4}, 4, ids(6), f(2, 6, 3)), d(takeGrad{3}, 3, ids(2, 2), f(1, 4, 70)),
		d(takeGrad{3}, 3, ids(300), f(1, 300, 2)), // more indices than a block of a GPU has threads
		x(gather{1}, 4, f(3, 4), ids(3, 6)), x(gather{0}, 4, f(4, 5), ids(3, 4)),
		x(gather{1}, 3, f(2, 3, 4), ids(2, 5, 3)),
		Sample{Op: gather{0}, In: []graph.Type{tensor.Of(graph.BF16, 3), ids(5)},
			NoGrad: []int{0, 1}},
		d(scatter{1, sized([]int{3, 4})}, 4, ids(3, 6), f(3, 6)),
		d(scatter{0, sized([]int{4, 5})}, 4, ids(3, 4), f(3, 4)),
		d(scatter{1, sized([]int{2, 3, 4})}, 3, ids(2, 5, 3), f(2, 5, 3)),
	)
}
