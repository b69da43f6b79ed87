package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/conv"
)

// cutImages is the cut between images of a convolution, whose filters every part reads. A part has
// as many images as add up an element of the result as all do.
func cutImages(in, out []graph.Type, s conv.Shape, err error,
	order func(conv.Shape) conv.Order) (graph.Cut, bool) {
	if err != nil {
		return graph.Cut{}, false
	}
	c, ok := cutRows(in, out, 1, 1)
	if ok {
		c.Least = conv.Fewest(s, order)
	}
	return c, ok
}

// Cut is between images.
func (o conv2D) Cut(in, out []graph.Type) (graph.Cut, bool) {
	s, err := o.shape(in)
	return cutImages(in, out, s, err, conv.OrderForward)
}

// Part is the operation itself.
func (o conv2D) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between images.
func (o convInputGrad) Cut(in, out []graph.Type) (graph.Cut, bool) {
	s, err := o.shape(in)
	return cutImages(in, out, s, err, conv.OrderGradInput)
}

// Part is the operation itself.
func (o convInputGrad) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between images, of which the chain's operands have theirs or are the same for all.
func (o convChain) Cut(in, out []graph.Type) (graph.Cut, bool) {
	c, ok := o.Conv.Cut(in[:2], out)
	if !ok {
		return c, false
	}
	elements, ok := cutElements(rest(out[0], in), out, 1)
	c.In = append(c.In, elements.In[1:]...)
	return c, ok
}

// Part is the convolution, and its chain on the elements of its own.
func (o convChain) Part(in, out []graph.Type, lo, _ int) graph.Op {
	c, _ := o.Cut(in, out)
	o.Chain = o.Chain.from(lo * rowElems(c, out))
	return o
}

// Cut is between images.
func (maxPool) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutRows(in, out, 1) }

// Part is the operation itself.
func (o maxPool) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between images.
func (maxPoolGrad) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutRows(in, out, 1) }

// Part is the operation itself.
func (o maxPoolGrad) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between images.
func (maxPoolPick) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutRows(in, out, 1) }

// Part is the operation itself.
func (o maxPoolPick) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between images.
func (windowSum) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutRows(in, out, 1) }

// Part is the operation itself.
func (o windowSum) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is between images.
func (windowSpread) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutRows(in, out, 1) }

// Part is the operation itself.
func (o windowSpread) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Cut is along the axes before those that are normalised.
func (o layerOver) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return leadingCut(in, out, o.From, 1, 2)
}

// Part normalises from the axis behind the merged one.
func (o layerOver) Part(_, _ []graph.Type, _, _ int) graph.Op {
	o.From = 1
	return o
}
