package ops

import (
	"slices"

	"github.com/gomem/gomem/graph"
)

// Split is along the places that are looked up, and along all axes of the operand but the
// one that they are along.
func (o take) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, out[0])
	behind := o.Axis + in[1].Rank()
	x := slices.Concat(axes[:o.Axis], [][]int{nil}, axes[behind:])
	r.In, r.Out = [][][]int{x, axes[o.Axis:behind]}, [][][]int{axes}
	return r, true
}

// Split is along the axes before and behind the one that elements are added up along.
func (takeGrad) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	outer, inner := oneAxis(&r, in[1].Size(0)), oneAxis(&r, in[1].Size(2))
	own := [][]int{outer, nil, inner}
	r.In, r.Out = [][][]int{entire(in[0]), own}, [][][]int{own}
	return r, true
}

// Split is along the indices, and along those axes of the operand that they have in full.
func (o gather) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	x, own := o.shared(&r, in[0], in[1])
	r.In, r.Out = [][][]int{x, own}, [][][]int{own}
	return r, true
}

// shared are the axes of x and of indices into it: one factor for both, if they are as long,
// and of the axis that the indices are along one for these. Of others a part has all.
func (o gather) shared(r *graph.Rule, x, indices graph.Type) (of, own [][]int) {
	of, own = entire(x), eachAxis(r, indices)
	for i := range of {
		switch {
		case i == o.Axis:
		case x.Size(i) == indices.Size(i):
			of[i] = own[i]
		default:
			own[i] = nil
		}
	}
	return of, own
}

// Split is along those axes of the result that the indices have in full; along the others,
// what comes from parts of the indices is added up.
func (o scatter) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	to, own := gather{o.Axis}.shared(&r, out[0], in[0])
	sums(&r, own[o.Axis])
	r.In, r.Out = [][][]int{own, own}, [][][]int{to}
	r.Local = func(at []graph.Part) graph.Op { return scatter{o.Axis, o.Shape.part(to, at)} }
	return r, true
}

// Split is along those axes of the indices that x has in full, but the one that they are along.
func (o scatterAt) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	of, own := entire(in[0]), entire(in[1])
	for i := range of {
		if i != o.Axis && in[0].Size(i) == in[1].Size(i) {
			of[i] = oneAxis(&r, in[0].Size(i))
			own[i] = of[i]
		}
	}
	r.In, r.Out = [][][]int{of, own, own}, [][][]int{of}
	return r, true
}

// Split is along the axes before and behind those of the places.
func (o scatterND) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	batch := eachAxis(&r, graph.Type{Shape: in[0].Shape[:o.Batch]})
	inner := eachAxis(&r, graph.Type{Shape: in[0].Shape[o.Batch+in[1].Size(-1):]})
	around := func(t graph.Type) [][]int {
		own := leading(batch, t)
		copy(own[len(own)-len(inner):], inner)
		return own
	}
	of := around(in[0])
	r.In, r.Out = [][][]int{of, leading(batch, in[1]), around(in[2])}, [][][]int{of}
	return r, true
}

// Split is along the vectors of indices, and along all axes before and behind those of the
// places.
func (o gatherND) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	axes, rows := eachAxis(&r, out[0]), in[1].Rank()-1
	x := slices.Concat(axes[:o.Batch], make([][]int, in[1].Size(-1)), axes[rows:])
	r.In, r.Out = [][][]int{x, leading(axes[:rows], in[1])}, [][][]int{axes}
	return r, true
}

// Split is along the elements that are taken, and along all axes behind.
func (reorder) Split(_, out []graph.Type) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, out[0])
	x := slices.Concat([][]int{nil}, axes[1:])
	r.In, r.Out = [][][]int{x, axes[:1]}, [][][]int{axes}
	return r, true
}

// splitAt is the rule of an operation on rows at a position along an axis: along all others,
// with positions that elements of the first axis have for themselves. Operand position is
// where they are, and others are read by every part.
func splitAt(in, out []graph.Type, axis, position int, whole ...int) (graph.Rule, bool) {
	r, ok := splitBut(in, out, axis, axis+1, append(whole, position)...)
	if in[position].Rank() == 1 {
		r.In[position] = r.In[0][:1]
	}
	return r, ok
}

// Split is along all axes but that of the rows, and not along the first if elements of it
// change places.
func (o writeAt) Split(in, out []graph.Type) (graph.Rule, bool) {
	if !o.Reorder {
		return splitAt(in, out, o.Axis, 2)
	}
	r, ok := splitAt(in, out, o.Axis, 2, 3)
	for i := range r.In {
		r.In[i] = slices.Clone(r.In[i])
		if len(r.In[i]) > 0 {
			r.In[i][0] = nil
		}
	}
	return r, ok
}

// Split is along all axes but that of the rows.
func (o putAt) Split(in, out []graph.Type) (graph.Rule, bool) { return splitAt(in, out, o.Axis, 2) }

// Split is along all axes but that of the rows.
func (o sliceAt) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitAt(in, out, o.Axis, 1)
}

// Split is along all axes but the last and that of the positions, and along this one if rows
// have positions of their own.
func (o rotary) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := splitLeading(in, out, in[0].Rank()-1, 1, 2)
	switch rows := o.length(in[0]); in[1].Rank() {
	case 0:
		r.In[0][rows], r.Out[0][rows] = nil, nil
	case 1:
		r.In[1] = r.In[0][rows : rows+1]
	case 2:
		r.In[1] = [][]int{r.In[0][0], r.In[0][rows]}
	}
	return r, ok
}
