package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// Reshape gives x's elements, in their order, other axes, of which one may have the size
// −1: what the others leave. It costs nothing.
func Reshape(x graph.Value, axes ...graph.Dim) graph.Value {
	return apply(reshape{newDims(axes).completed(x)}, x)
}

// ReshapeSizes is Reshape to unnamed axes.
func ReshapeSizes(x graph.Value, sizes ...int) graph.Value {
	return apply(reshape{sized(sizes).completed(x)}, x)
}

// completed replaces the size −1 by what the others leave of x's elements, if there is
// such a size.
func (d dims) completed(x graph.Value) dims {
	open, rest := -1, 1
	for i, a := range d.D[:min(d.N, maxRank)] {
		if a.Size == -1 && open < 0 {
			open = i
			continue
		}
		if a.Size < 1 || rest > math.MaxInt/a.Size {
			return d
		}
		rest *= a.Size
	}
	if n := x.Type().Elems(); open >= 0 && x.Valid() && n%rest == 0 {
		d.D[open].Size = n / rest
	}
	return d
}

type reshape struct{ Shape dims }

func (reshape) Name() string { return "reshape" }

func (r reshape) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	if err := r.Shape.check(); err != nil {
		return nil, err
	}
	t := r.Shape.typ(in[0].DType)
	if t.Elems() != in[0].Elems() {
		return nil, fmt.Errorf("%s has %d elements, %s has %d", in[0], in[0].Elems(), t, t.Elems())
	}
	return []graph.Type{t}, nil
}

func (reshape) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{} }

// View: the same bytes.
func (reshape) View(_, _ []graph.Type) []int64 { return []int64{0} }

func (reshape) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{Reshape(dout[0], n.In[0].Type().Shape...)}
}

// Split cuts x along its first axis into n equal parts. It costs nothing; all
// parts keep x's bytes in memory.
func Split(x graph.Value, n int) []graph.Value {
	const most = 1 << 16 // results of a mistake, where n may be anything
	return applyN(min(max(n, 0), most), split{Parts: n}, x)
}

// Unstack takes x apart along its first axis, which is dropped. It costs
// nothing.
func Unstack(x graph.Value) []graph.Value {
	if !x.Valid() || x.Type().Rank() == 0 {
		return applyN(0, split{Drop: true}, x)
	}
	n := x.Type().Size(0)
	return applyN(n, split{Parts: n, Drop: true}, x)
}

type split struct {
	Parts int
	Drop  bool
}

func (split) Name() string { return "split" }

func (s split) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	t := in[0]
	if t.Rank() == 0 || s.Parts < 1 || t.Size(0)%s.Parts != 0 || s.Drop && t.Size(0) != s.Parts {
		return nil, fmt.Errorf("%s cannot be split into %d parts", t, s.Parts)
	}
	part := graph.Type{DType: t.DType, Shape: slices.Clone(t.Shape)}
	part.Shape[0].Size /= s.Parts
	if s.Drop {
		part.Shape = part.Shape[1:]
	}
	return slices.Repeat([]graph.Type{part}, s.Parts), nil
}

func (split) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{} }

// View: one part after the other.
func (s split) View(_, out []graph.Type) []int64 {
	offsets := make([]int64, len(out))
	for i := range offsets {
		offsets[i] = int64(i) * out[i].Bytes()
	}
	return offsets
}

// VJP joins the parts' gradients; a part without one counts as zeros.
func (s split) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	parts := make([]graph.Value, len(dout))
	for i, d := range dout {
		parts[i] = d
		if !d.Valid() {
			parts[i] = Zeros(n.Graph(), n.Out[i])
		}
	}
	if s.Drop {
		return []graph.Value{Stack(parts...)}
	}
	return []graph.Value{Concat(0, parts...)}
}

// Stack joins values of one type along a new first axis.
func Stack(xs ...graph.Value) graph.Value {
	rows := make([]graph.Value, len(xs))
	for i, x := range xs {
		rows[i] = Reshape(x, append([]graph.Dim{{Size: 1}}, x.Type().Shape...)...)
	}
	return Concat(0, rows...)
}

// head is elements Lo to Hi-1 along the first axis: contiguous, so a view.
type head struct{ Lo, Hi int }

func (head) Name() string { return "slice" }

func (h head) Infer(in []graph.Type) ([]graph.Type, error) { return cutAxis(in, 0, h.Lo, h.Hi) }

func (head) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{} }

// View starts after the first Lo rows.
func (h head) View(in, _ []graph.Type) []int64 {
	row := graph.Type{DType: in[0].DType, Shape: in[0].Shape[1:]}
	return []int64{int64(h.Lo) * row.Bytes()}
}

func (h head) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{Pad(dout[0], 0, h.Lo, n.In[0].Type().Size(0)-h.Hi)}
}

// cutAxis is the type of elements lo to hi-1 along an axis.
func cutAxis(in []graph.Type, axis, lo, hi int) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	t := in[0]
	if axis < 0 || axis >= t.Rank() || lo < 0 || hi > t.Size(axis) || lo > hi {
		return nil, fmt.Errorf("%s has no elements %d to %d along axis %d", t, lo, hi-1, axis)
	}
	return []graph.Type{resized(t, axis, hi-lo)}, nil
}

// resized is t with another size along an axis.
func resized(t graph.Type, axis, size int) graph.Type {
	out := graph.Type{DType: t.DType, Shape: slices.Clone(t.Shape)}
	if out.Shape[axis].Size != size {
		out.Shape[axis] = graph.Dim{Size: size}
	}
	return out
}

func init() {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: reshape{sized([]int{15})}, In: []graph.Type{f(3, 5)}, Second: true},
		Sample{Op: reshape{newDims([]graph.Dim{{Name: "a", Size: 5}, {Size: 3}})},
			In: []graph.Type{f(3, 5)}, Second: true},
		Sample{Op: reshape{sized(nil)}, In: []graph.Type{f(1, 1)}, Second: true},
		Sample{Op: split{Parts: 3}, In: []graph.Type{f(6, 5)}, Second: true},
		Sample{Op: split{Parts: 3, Drop: true}, In: []graph.Type{f(3, 5)}, Second: true},
		Sample{Op: head{1, 3}, In: []graph.Type{f(4, 5)}, Second: true},
	)
}
