package ops

import "github.com/gomem/gomem/graph"

// splitPlanes is the rule of an operation that does the same with every channel of every
// image.
func splitPlanes(in, out []graph.Type) (graph.Rule, bool) { return splitLeading(in, out, 2) }

// Split is along images and channels.
func (windowSum) Split(in, out []graph.Type) (graph.Rule, bool) { return splitPlanes(in, out) }

// Split is along images and channels.
func (windowSpread) Split(in, out []graph.Type) (graph.Rule, bool) { return splitPlanes(in, out) }

// Split is along images and channels.
func (maxPool) Split(in, out []graph.Type) (graph.Rule, bool) { return splitPlanes(in, out) }

// Split is along images and channels.
func (maxPoolGrad) Split(in, out []graph.Type) (graph.Rule, bool) { return splitPlanes(in, out) }

// Split is along images and channels.
func (maxPoolPick) Split(in, out []graph.Type) (graph.Rule, bool) { return splitPlanes(in, out) }

// Split is along images and channels.
func (maxPoolND) Split(in, out []graph.Type) (graph.Rule, bool) { return splitPlanes(in, out) }

// Split is along images and channels.
func (bilinear) Split(in, out []graph.Type) (graph.Rule, bool) { return splitPlanes(in, out) }

// Split is along images and channels.
func (bilinearGrad) Split(in, out []graph.Type) (graph.Rule, bool) { return splitPlanes(in, out) }

// Split is between channels, over each of which it normalises.
func (batchNorm) Split(in, out []graph.Type) (graph.Rule, bool) { return splitChannels(in, out) }

// Split is between channels, over each of which it normalises.
func (batchNormGrad) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitChannels(in, out)
}

// splitChannels is the rule of an operation on the channels of values [n c …], of which
// vectors have an element each.
func splitChannels(in, out []graph.Type) (r graph.Rule, ok bool) {
	channels := oneAxis(&r, in[0].Size(1))
	of := func(types []graph.Type) (axes [][][]int) {
		for _, t := range types {
			own := entire(t)
			own[min(1, t.Rank()-1)] = channels
			axes = append(axes, own)
		}
		return axes
	}
	r.In, r.Out = of(in), of(out)
	return r, true
}

// Split is between items.
func (ctc) Split(in, out []graph.Type) (graph.Rule, bool) { return splitItems(in, out) }

// Split is between items.
func (ctcGrad) Split(in, out []graph.Type) (graph.Rule, bool) { return splitItems(in, out) }

// Split is between items.
func (ctcReadable) Split(in, out []graph.Type) (graph.Rule, bool) { return splitItems(in, out) }

// splitItems is the rule of an operation on the items of a batch: the first axis, but the
// second of values [t b …].
func splitItems(in, out []graph.Type) (r graph.Rule, ok bool) {
	items := oneAxis(&r, out[0].Size(min(1, out[0].Rank()-1)))
	of := func(types []graph.Type) (axes [][][]int) {
		for _, t := range types {
			own := entire(t)
			own[max(0, t.Rank()-2)] = items
			axes = append(axes, own)
		}
		return axes
	}
	r.In, r.Out = of(in), of(out)
	return r, true
}

// Split is between rows.
func (lstmCell) Split(in, out []graph.Type) (graph.Rule, bool) { return splitLeading(in, out, 1) }

// Split is between rows.
func (lstmCellGrad) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitLeading(in, out, 1)
}
