package ops

import (
	"slices"

	"github.com/gomem/gomem/graph"
)

// Rows is the operation that takes rows lo to hi-1 along the first axis: a view.
func Rows(lo, hi int) graph.Op { return head{lo, hi} }

// Shaped is the operation that gives a value's elements the axes of t: a view.
func Shaped(t graph.Type) graph.Op { return reshape{newDims(t.Shape)} }

// Joined is the operation that joins values along the first axis.
func Joined() graph.Op { return concat{} }

// Joins reports whether an operation joins values along the first axis.
func Joins(op graph.Op) bool { return op == graph.Op(concat{}) }

// cutRows is the cut of an operation that computes rows of results from the same
// rows of operands. whole lists the operands that every part reads whole; axes is
// the number of the leading axes of all others, and of the results.
func cutRows(in, out []graph.Type, axes int, whole ...int) (graph.Cut, bool) {
	c := graph.Cut{Rows: 1, Align: 1, Least: 1, In: make([]int, len(in)),
		Out: slices.Repeat([]int{axes}, len(out))}
	for _, d := range out[0].Shape[:axes] {
		c.Rows *= d.Size
	}
	for i := range in {
		if !slices.Contains(whole, i) {
			c.In[i] = axes
		}
	}
	return c, axes > 0 && c.Rows > 1
}

// cutElements is the cut of an operation on elements, with at most so many axes. An
// operand that repeats along all axes that are cut is read whole, as are seeds.
func cutElements(in, out []graph.Type, axes int) (graph.Cut, bool) {
	return cutBroadcast(in, out, axes, func(t graph.Type) bool { return t.DType == graph.I32 })
}

// cutBroadcast is cutElements where seed says what is one.
func cutBroadcast(in, out []graph.Type, axes int, seed func(graph.Type) bool) (graph.Cut, bool) {
	shape := out[0].Shape
	var whole []int
	for i, t := range in {
		missing := len(shape) - t.Rank()
		switch {
		case seed(t):
			whole = append(whole, i)
		case t.SameShape(out[0]):
		case missing > 0:
			axes, whole = min(axes, missing), append(whole, i)
		case t.Shape[0].Size != shape[0].Size:
			axes, whole = min(axes, 1), append(whole, i)
		default:
			agree := 1
			for t.Shape[agree].Size == shape[agree].Size {
				agree++
			}
			axes = min(axes, agree)
		}
	}
	return cutRows(in, out, axes, whole...)
}

// rowElems is the elements of a row of the result.
func rowElems(c graph.Cut, out []graph.Type) int { return out[0].Elems() / c.Rows }

// Cut is between any elements.
func (binary) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (b binary) Part(_, _ []graph.Type, _, _ int) graph.Op { return b }

// Cut is between any elements.
func (unary) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (u unary) Part(_, _ []graph.Type, _, _ int) graph.Op { return u }

// Cut is between any elements.
func (slope) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (s slope) Part(_, _ []graph.Type, _, _ int) graph.Op { return s }

// Cut is between any elements.
func (affine) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (a affine) Part(_, _ []graph.Type, _, _ int) graph.Op { return a }

// Cut is between any elements.
func (clippedRelu) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (o clippedRelu) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between any elements.
func (clippedReluGrad) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the operation itself.
func (o clippedReluGrad) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between any elements, unless they share noise.
func (o dropout) Cut(in, out []graph.Type) (graph.Cut, bool) {
	if o.Shared != 0 {
		return graph.Cut{}, false
	}
	return cutElements(in, out, out[0].Rank())
}

// Part draws the noise of its own elements.
func (o dropout) Part(in, out []graph.Type, lo, _ int) graph.Op {
	c, _ := o.Cut(in, out)
	return noiseFrom(o, lo*rowElems(c, out))
}

// Cut is between any elements.
func (jitter) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part draws the noise of its own elements.
func (o jitter) Part(in, out []graph.Type, lo, _ int) graph.Op {
	c, _ := o.Cut(in, out)
	return noiseFrom(o, lo*rowElems(c, out))
}

// Cut is between any elements.
func (noiseAt) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part draws the noise of its own elements.
func (o noiseAt) Part(in, out []graph.Type, lo, _ int) graph.Op {
	c, _ := o.Cut(in, out)
	return noiseFrom(o, lo*rowElems(c, out))
}

// Cut is where no operand repeats in part.
func (chain) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutElements(in, out, out[0].Rank())
}

// Part is the chain, its noise that of its own elements.
func (c chain) Part(in, out []graph.Type, lo, _ int) graph.Op {
	cut, _ := c.Cut(in, out)
	return c.from(lo * rowElems(cut, out))
}

// from is the chain on elements from one on.
func (c chain) from(at int) chain {
	for i := range c.Code[:c.N] {
		c.Code[i].Op = displaced(c.Code[i].Op, at)
	}
	return c
}

// displaced is an elementwise operation on elements from one on.
func displaced(op elementwise, at int) elementwise {
	switch o := op.(type) {
	case dropout, jitter, noiseAt, noiseWindow:
		return noiseFrom(op, at)
	case inBF16:
		return inBF16{displaced(o.Op.(elementwise), at), o.Round}
	}
	return op
}

// Cut is between rows.
func (softmax) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, out[0].Rank()-1)
}

// Part is the operation itself.
func (s softmax) Part(_, _ []graph.Type, _, _ int) graph.Op { return s }

// Cut is between rows.
func (softmaxGrad) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, out[0].Rank()-1)
}

// Part is the operation itself.
func (s softmaxGrad) Part(_, _ []graph.Type, _, _ int) graph.Op { return s }

// Cut is between positions.
func (crossEntropy) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, out[0].Rank())
}

// Part is the operation itself.
func (o crossEntropy) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between positions.
func (crossEntropyGrad) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, out[0].Rank()-1)
}

// Part is the operation itself.
func (o crossEntropyGrad) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between positions.
func (correct) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, out[0].Rank())
}

// Part is the operation itself.
func (o correct) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between rows.
func (topK) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, in[0].Rank()-1)
}

// Part is the operation itself.
func (o topK) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between rows.
func (layerNorm) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, out[0].Rank()-1, 1, 2)
}

// Part is the operation itself.
func (o layerNorm) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between rows.
func (layerNormGrad) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, out[0].Rank()-1, 1)
}

// Part is the operation itself.
func (o layerNormGrad) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between rows.
func (rmsNorm) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, out[0].Rank()-1, 1)
}

// Part is the operation itself.
func (o rmsNorm) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between rows.
func (rmsNormGrad) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, out[0].Rank()-1, 1)
}

// Part is the operation itself.
func (o rmsNormGrad) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between the rows that are looked up.
func (embedding) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, in[1].Rank(), 0)
}

// Part is the operation itself.
func (o embedding) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is along the leading axes that stay where they are.
func (o transpose) Cut(in, out []graph.Type) (graph.Cut, bool) {
	axes := 0
	for axes < o.N && o.Perm[axes] == axes {
		axes++
	}
	return cutRows(in, out, axes)
}

// Part orders the axes behind the merged one.
func (o transpose) Part(in, out []graph.Type, _, _ int) graph.Op {
	c, _ := o.Cut(in, out)
	merged := c.Out[0] - 1
	p := transpose{N: o.N - merged}
	for i := range p.N {
		p.Perm[i] = max(0, o.Perm[i+merged]-merged)
	}
	return p
}
