package ops

import "github.com/gomem/gomem/graph"

// leadingCut is the cut of the axes before one along which elements are moved or added
// up, which is not the first.
func leadingCut(in, out []graph.Type, axis int, whole ...int) (graph.Cut, bool) {
	if axis < 1 {
		return graph.Cut{}, false
	}
	return cutRows(in, out, axis, whole...)
}

// Cut is between any elements.
func (keptLabels) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutAny(in, out) }

// Part is the operation itself.
func (o keptLabels) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between the elements that are taken.
func (reorder) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutRows(in, out, 1, 0) }

// Part is the operation itself.
func (o reorder) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between the elements that are taken, if they are of the first axis.
func (o take) Cut(in, out []graph.Type) (graph.Cut, bool) {
	if o.Axis != 0 {
		return graph.Cut{}, false
	}
	return cutRows(in, out, in[1].Rank(), 0)
}

// Part is the operation itself.
func (o take) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between matrices.
func (triangle) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return leadingCut(in, out, in[0].Rank()-2)
}

// Part is the operation itself.
func (o triangle) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is along the axes before the one that is added up.
func (o cumSum) Cut(in, out []graph.Type) (graph.Cut, bool) { return leadingCut(in, out, o.Axis) }

// Part has the axis behind the merged one.
func (o cumSum) Part(_, _ []graph.Type, _, _ int) graph.Op {
	o.Axis = 1
	return o
}

// Cut is along the axes before the one that is searched.
func (o arg) Cut(in, out []graph.Type) (graph.Cut, bool) { return leadingCut(in, out, o.Axis) }

// Part has the axis behind the merged one.
func (o arg) Part(_, _ []graph.Type, _, _ int) graph.Op {
	o.Axis = 1
	return o
}

// Cut is between sequences.
func (o rotary) Cut(in, out []graph.Type) (graph.Cut, bool) {
	if in[1].Rank() == 2 { // every element of the first axis has positions of its own
		return leadingCut(in, out, 1, 2)
	}
	return leadingCut(in, out, o.length(in[0]), 1, 2)
}

// Part is the operation itself.
func (o rotary) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// cutAt is the cut along the axes before the one with the rows, of which only the first
// is cut where its elements have positions of their own.
func cutAt(in, out []graph.Type, axis, position int) (graph.Cut, bool) {
	if in[position].Rank() == 1 {
		return leadingCut(in, out, min(axis, 1))
	}
	return leadingCut(in, out, axis, position)
}

// Cut is along the axes before the one with the rows.
func (o putAt) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutAt(in, out, o.Axis, 2) }

// Part has the axis behind the merged one.
func (o putAt) Part(in, out []graph.Type, _, _ int) graph.Op {
	c, _ := o.Cut(in, out)
	o.Axis -= c.Out[0] - 1
	return o
}

// Cut is along the axes before the one with the rows.
func (o sliceAt) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutAt(in, out, o.Axis, 1) }

// Part has the axis behind the merged one.
func (o sliceAt) Part(in, out []graph.Type, _, _ int) graph.Op {
	c, _ := o.Cut(in, out)
	o.Axis -= c.Out[0] - 1
	return o
}

// Cut is along the axes before the one that is sliced.
func (o cut) Cut(in, out []graph.Type) (graph.Cut, bool) { return leadingCut(in, out, o.Axis) }

// Part has the axis behind the merged one.
func (o cut) Part(_, _ []graph.Type, _, _ int) graph.Op {
	o.Axis = 1
	return o
}

// Cut is along the axes before the one that is longer.
func (o pad) Cut(in, out []graph.Type) (graph.Cut, bool) { return leadingCut(in, out, o.Axis) }

// Part has the axis behind the merged one.
func (o pad) Part(_, _ []graph.Type, _, _ int) graph.Op {
	o.Axis = 1
	return o
}

// Cut is where the operand does not repeat in part.
func (broadcast) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutAny(in, out) }

// Part repeats to the rows of its own.
func (b broadcast) Part(in, out []graph.Type, lo, hi int) graph.Op {
	c, _ := b.Cut(in, out)
	return broadcast{newDims(graph.RowsOf(out[0], c.Out[0], hi-lo).Shape)}
}
