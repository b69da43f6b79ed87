package ops

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// ScatterHow is what becomes of an element and the update that is put where it is.
type ScatterHow uint8

// What several updates of one element come to is taken in the order of the indices, from the
// element on; of those that are set, the last remains.
const (
	ScatterSet ScatterHow = iota
	ScatterSum
	ScatterProduct
	ScatterMax // NaN if one is
	ScatterMin // NaN if one is
	numScatter
)

// String is the name of an operation's variant.
func (h ScatterHow) String() string {
	return [...]string{"set", "sum", "product", "max", "min"}[min(h, numScatter-1)]
}

// Scatter is x with updates put where [Gather] would take them from: indices i32 and updates
// have as many axes as x, and are as long as each other along every one. Elements that are set
// are of any type; f32, i32 and i64 are also added, multiplied and compared.
//
// Gradients are those of PyTorch's scatter_reduce: an element that was set has none, nor has an
// update that another one replaced, and what is equally large shares its gradient.
func Scatter(x, indices, updates graph.Value, along int, how ScatterHow) graph.Value {
	return apply(scatterAt{Axis: axis(along, x.Type().Rank()), How: how}, x, indices, updates)
}

// scatterAt has operands x, indices and updates.
type scatterAt struct {
	Axis int
	How  ScatterHow
}

func (o scatterAt) Name() string { return "scatter-" + o.How.String() }

// check rejects what there is not, and element types that it does not go with.
func (h ScatterHow) check(x, updates graph.Type) error {
	switch d := x.DType; {
	case h >= numScatter:
		return fmt.Errorf("unknown way to scatter %d", h)
	case updates.DType != d:
		return fmt.Errorf("updates %s of %s: convert one of them with Cast", updates, x)
	case h != ScatterSet && d != graph.F32 && d != graph.I32 && d != graph.I64:
		return fmt.Errorf("the %s of elements of %s, want f32, i32 or i64: convert them with Cast",
			h, x)
	}
	return nil
}

func (o scatterAt) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 3); err != nil {
		return nil, err
	}
	if err := checkGather(in[0], in[1], o.Axis); err != nil {
		return nil, err
	}
	if !in[1].SameShape(in[2]) {
		return nil, fmt.Errorf("updates %s where indices %s say", in[2], in[1])
	}
	return in[:1:1], o.How.check(in[0], in[2])
}

func (scatterAt) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[2].Elems()), Bytes: bytes(in, out) + 2*in[2].Bytes()}
}

// InPlace: updates are put into the result, which is x before.
func (scatterAt) InPlace(_, _ []graph.Type) []int { return []int{0} }

// CheckData wants places along the axis.
func (o scatterAt) CheckData(in []tensor.View) error {
	return checkIDs(known(in[1]), in[0].Type.Size(o.Axis))
}

func (o scatterAt) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return scatterGrads(o, o.How, n, dout[0])
}

func (o scatterAt) with(how ScatterHow) graph.Op { return scatterAt{o.Axis, how} }

func (o scatterAt) from(x, indices graph.Value) graph.Value { return Gather(x, indices, o.Axis) }

func (o scatterAt) last(n *graph.Node) graph.Value {
	indices := n.In[1]
	order := ordinals(n.Graph(), indices.Type().Sizes()...)
	none := zeroI32(n.Graph(), n.In[0].Type().Sizes()...)
	return Equal(order, o.from(apply(o.with(ScatterSet), none, indices, order), indices))
}

func scatterAtCPU(o scatterAt, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	x, indices := c.In[0].Type, c.In[1]
	p := placesOf(x, indices, o.Axis)
	s := scattering{places: x.Elems(), updates: indices.Type.Elems(), outer: 1, inner: 1,
		place: p.place}
	if o.Axis > 0 && x.Size(0) > 0 && indices.Type.Size(0) == x.Size(0) {
		s.outer = x.Size(0)
	}
	s.run(o.How, c)
	return nil
}

// scattering puts updates of inner elements each to places: those of each of outer parts to
// a part of the places.
type scattering struct {
	places, updates, outer, inner int
	place                         func(update int) int
}

func (s scattering) run(how ScatterHow, c *kernel.Call) {
	if how == ScatterSet { // of any type: bytes
		s.inner *= int(c.In[0].Type.DType.Size())
		scatterInto(s, c, func(dst, src []uint8) { copy(dst, src) })
		return
	}
	switch c.In[0].Type.DType {
	case graph.F32:
		scatterInto(s, c, scatterFold[float32](how))
	case graph.I32:
		scatterInto(s, c, scatterFold[int32](how))
	default:
		scatterInto(s, c, scatterFold[int64](how))
	}
}

// scatterInto splits over places: every thread puts what is its own, in the order of the
// updates.
func scatterInto[T any](s scattering, c *kernel.Call, fold func(dst, src []T)) {
	x, updates, out := words[T](c.In[0]), words[T](c.In[2]), words[T](c.Out[0])
	part, from := max(1, s.places/s.outer), s.updates/s.outer
	c.Pool.For(s.places, max(1, grain/max(1, s.inner)), func(lo, hi int) {
		copy(out[lo*s.inner:hi*s.inner], x[lo*s.inner:hi*s.inner])
		for i := lo / part * from; i < min(s.updates, (hi+part-1)/part*from); i++ {
			if at := s.place(i); at >= lo && at < hi {
				fold(out[at*s.inner:(at+1)*s.inner], updates[i*s.inner:(i+1)*s.inner])
			}
		}
	})
}

// words is a view's bytes as words of another size.
func words[T any](v tensor.View) []T {
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(v.Data))),
		len(v.Data)/int(unsafe.Sizeof(one)))
}

// scatterFold is what becomes of elements dst when updates src come to them.
func scatterFold[T float32 | int32 | int64](how ScatterHow) func(dst, src []T) {
	two := map[ScatterHow]func(a, b T) T{
		ScatterSum:     func(a, b T) T { return a + b },
		ScatterProduct: func(a, b T) T { return a * b },
		ScatterMax: func(a, b T) T {
			if a > b || a != a {
				return a
			}
			return b
		},
		ScatterMin: func(a, b T) T {
			if a < b || a != a {
				return a
			}
			return b
		},
	}[how]
	return func(dst, src []T) {
		for i, v := range src {
			dst[i] = two(dst[i], v)
		}
	}
}

func init() {
	kernel.Register(kernel.CPU, scatterAtCPU)
	t := func(d graph.DType, sizes ...int) graph.Type { return tensor.Of(d, sizes...) }
	for how := range numScatter {
		float := func(axis, n int, sizes, indices []int) Sample {
			return Sample{Op: scatterAt{axis, how}, In: []graph.Type{t(graph.F32, sizes...),
				t(graph.I32, indices...), t(graph.F32, indices...)}, NoGrad: []int{1}, Second: true,
				Fill: fills{0: spaced(0.3), 1: below(n), 2: spaced(0.6)}, Eps: 1e-3}
		}
		whole := func(d graph.DType) Sample {
			return Sample{Op: scatterAt{0, how}, In: []graph.Type{t(d, 3, 17), t(graph.I32, 5, 9),
				t(d, 5, 9)}, NoGrad: []int{0, 1, 2}}
		}
		register(float(1, 4, []int{3, 4}, []int{3, 6}), float(0, 3, []int{3, 5}, []int{2, 4}),
			float(1, 3, []int{2, 3, 4}, []int{2, 2, 3}), whole(graph.I32), whole(graph.I64))
		if how == ScatterSet {
			register(whole(graph.U8), whole(graph.BF16), whole(graph.F64))
		}
	}
}

// sizesOf are the sizes of some axes.
func sizesOf(list ...[]graph.Dim) []int {
	return graph.Type{Shape: slices.Concat(list...)}.Sizes()
}
