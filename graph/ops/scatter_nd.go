package ops

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// ScatterND is x with updates put where a vector of indices along its first axes says: x
// [n1 … nk c…], indices i32[i… k] and updates [i… c…], as ONNX has them. Element types and
// gradients are those of [Scatter].
func ScatterND(x, indices, updates graph.Value, how ScatterHow) graph.Value {
	return apply(scatterND{How: how}, x, indices, updates)
}

// GatherND is what is where a vector of indices says, along the axes after so many that are a
// batch: x [b… n1 … nk c…] of any element type and indices i32[b… i… k] → [b… i… c…]. Its
// gradient adds up what comes from one place.
func GatherND(x, indices graph.Value, batch int) graph.Value {
	return apply(gatherND{Batch: batch}, x, indices)
}

// vectors is the geometry of indices that are vectors: for each of outer parts, count of them
// name elements, of inner numbers each, of so many places.
type vectors struct {
	lead, behind         int // axes of x before and behind the places'
	sizes                []graph.Dim
	outer, count, places int
	inner                int
}

// vectorsOf checks x and indices.
func vectorsOf(x, indices graph.Type, batch int) (v vectors, err error) {
	if indices.DType != graph.I32 {
		return v, fmt.Errorf("indices are %s, want i32: convert them with Cast", indices)
	}
	last := indices.Rank() - 1
	if x.Rank() > maxRank || batch < 0 || last < batch || batch+indices.Size(-1) > x.Rank() {
		return v, fmt.Errorf("indices %s along the axes of %s after %d", indices, x, batch)
	}
	for i := range batch {
		if x.Size(i) != indices.Size(i) {
			return v, fmt.Errorf("axis %d of %s is another batch than that of %s", i, indices, x)
		}
	}
	end := batch + indices.Size(-1)
	elems := func(shape []graph.Dim) int { return graph.Type{Shape: shape}.Elems() }
	return vectors{lead: batch, behind: end, sizes: x.Shape[batch:end],
		outer: elems(x.Shape[:batch]), count: elems(indices.Shape[batch:last]),
		places: elems(x.Shape[batch:end]), inner: elems(x.Shape[end:])}, nil
}

// named is the shape of what indices name in x.
func (v vectors) named(x, indices graph.Type) []graph.Dim {
	shape := slices.Clone(indices.Shape[:indices.Rank()-1])
	for _, d := range x.Shape[v.behind:] {
		shape = extended(shape, d)
	}
	return shape
}

// check reports an index outside its axis.
func (v vectors) check(indices []int32) error {
	for i, k := range indices {
		if axis := i % len(v.sizes); k < 0 || int(k) >= v.sizes[axis].Size {
			return fmt.Errorf("index %d at position %d is outside the %d elements of axis %d", k, i,
				v.sizes[axis].Size, v.lead+axis)
		}
	}
	return nil
}

// place is where vector i says.
func (v vectors) place(indices []int32, i int) int {
	at := 0
	for j, d := range v.sizes {
		at = at*d.Size + int(indices[i*len(v.sizes)+j])
	}
	return i/v.count*v.places + at
}

// scatterND has operands x, indices and updates, of a batch of so many axes.
type scatterND struct {
	Batch int
	How   ScatterHow
}

func (o scatterND) Name() string { return "scatter-nd-" + o.How.String() }

func (o scatterND) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 3); err != nil {
		return nil, err
	}
	v, err := vectorsOf(in[0], in[1], o.Batch)
	if err != nil {
		return nil, err
	}
	if !in[2].SameShape(graph.Type{Shape: v.named(in[0], in[1])}) {
		return nil, fmt.Errorf("updates %s of %s where indices %s say", in[2], in[0], in[1])
	}
	return in[:1:1], o.How.check(in[0], in[2])
}

func (scatterND) Cost(in, out []graph.Type) graph.Cost { return scatterAt{}.Cost(in, out) }

// InPlace: updates are put into the result, which is x before.
func (scatterND) InPlace(_, _ []graph.Type) []int { return []int{0} }

// CheckData wants places along the axes.
func (o scatterND) CheckData(in []tensor.View) error {
	return gatherND{o.Batch}.CheckData(in[:2])
}

func (o scatterND) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return scatterGrads(o, o.How, n, dout[0])
}

func (o scatterND) with(how ScatterHow) graph.Op { return scatterND{o.Batch, how} }

func (o scatterND) from(x, indices graph.Value) graph.Value { return GatherND(x, indices, o.Batch) }

func (o scatterND) last(n *graph.Node) graph.Value {
	x, indices := n.In[0].Type(), n.In[1]
	t := indices.Type()
	rows := t.Rank() - 1
	order := ordinals(n.Graph(), sizesOf(t.Shape[:rows])...)
	none := zeroI32(n.Graph(), sizesOf(x.Shape[:o.Batch+t.Size(-1)])...)
	is := Equal(order, o.from(apply(o.with(ScatterSet), none, indices, order), indices))
	for range n.In[2].Type().Rank() - rows {
		is = ExpandDims(is, -1)
	}
	return is
}

func scatterNDCPU(o scatterND, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	v, err := vectorsOf(c.In[0].Type, c.In[1].Type, o.Batch)
	if err != nil {
		return err
	}
	indices := c.In[1].I32()
	scattering{places: v.outer * v.places, updates: v.outer * v.count, outer: max(1, v.outer),
		inner: v.inner, place: func(i int) int { return v.place(indices, i) }}.run(o.How, c)
	return nil
}

// gatherND has operands x and indices.
type gatherND struct{ Batch int }

func (gatherND) Name() string { return "gather-nd" }

func (o gatherND) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 2); err != nil {
		return nil, err
	}
	v, err := vectorsOf(in[0], in[1], o.Batch)
	if err != nil {
		return nil, err
	}
	return []graph.Type{{DType: in[0].DType, Shape: v.named(in[0], in[1])}}, nil
}

func (gatherND) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: 2*out[0].Bytes() + in[1].Bytes()}
}

// CheckData wants places along the axes.
func (o gatherND) CheckData(in []tensor.View) error {
	v, err := vectorsOf(in[0].Type, in[1].Type, o.Batch)
	if err != nil {
		return err
	}
	return v.check(known(in[1]))
}

func (o gatherND) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	none := Zeros(n.Graph(), n.In[0].Type())
	return []graph.Value{apply(scatterND{o.Batch, ScatterSum}, none, n.In[1], dout[0]), {}}
}

func gatherNDCPU(o gatherND, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	v, err := vectorsOf(c.In[0].Type, c.In[1].Type, o.Batch)
	if err != nil {
		return err
	}
	indices, x, out := c.In[1].I32(), c.In[0].Data, c.Out[0].Data
	step := v.inner * int(c.Out[0].Type.DType.Size())
	c.Pool.For(v.outer*v.count, max(1, grain/max(8, step)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(out[i*step:(i+1)*step], x[v.place(indices, i)*step:])
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, scatterNDCPU)
	kernel.Register(kernel.CPU, gatherNDCPU)
	t := func(d graph.DType, sizes ...int) graph.Type { return tensor.Of(d, sizes...) }
	f := func(sizes ...int) graph.Type { return t(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return t(graph.I32, sizes...) }
	for how := range numScatter {
		float := func(batch, n int, in ...graph.Type) Sample {
			return Sample{Op: scatterND{batch, how}, In: in, NoGrad: []int{1}, Second: true,
				Fill: fills{0: spaced(0.3), 1: below(n), 2: spaced(0.6)}, Eps: 1e-3}
		}
		whole := func(d graph.DType) Sample {
			return Sample{Op: scatterND{0, how}, In: []graph.Type{t(d, 3, 3, 2), ids(7, 2),
				t(d, 7, 2)}, NoGrad: []int{0, 1, 2}}
		}
		register(float(0, 3, f(3, 5), ids(6, 1), f(6, 5)),
			float(0, 2, f(2, 3), ids(2, 4, 2), f(2, 4)),
			float(1, 3, f(2, 3, 4), ids(2, 5, 1), f(2, 5, 4)), whole(graph.I32), whole(graph.I64))
		if how == ScatterSet {
			register(whole(graph.Bool), whole(graph.F16))
		}
	}
	gathered := func(batch, n int, in ...graph.Type) Sample {
		return Sample{Op: gatherND{batch}, In: in, Fill: fills{1: below(n)}, NoGrad: []int{1},
			Second: true}
	}
	register(gathered(0, 2, f(2, 3, 4), ids(5, 2)), gathered(0, 2, f(2, 3), ids(2, 4, 2)),
		gathered(1, 2, f(2, 3, 2, 5), ids(2, 5, 2)),
		Sample{Op: gatherND{0}, In: []graph.Type{t(graph.U8, 3), ids(3, 1)}, NoGrad: []int{0, 1}})
}
