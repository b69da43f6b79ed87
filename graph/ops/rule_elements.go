package ops

import "github.com/gomem/gomem/graph"

// Split is along all axes.
func (binary) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (unary) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (slope) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (affine) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (clippedRelu) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (clippedReluGrad) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitElements(in, out)
}

// Split is along all axes.
func (clip) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (clipGrad) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (function) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (siluGrad) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (geluTanh) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (geluTanhGrad) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (powScalar) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (cast) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (notZero) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (compare) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (logic) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (not) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (where) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (keptLabels) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes.
func (stop) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// Split is along all axes; a part of it is a smaller one.
func (f fill) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := splitElements(in, out)
	r.Local = func(at []graph.Part) graph.Op { return fill{f.Value, f.Shape.part(r.Out[0], at)} }
	return r, ok
}

// Split is along all axes of the result, of which the operand has some.
func (b broadcast) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := splitElements(in, out)
	r.Local = func(at []graph.Part) graph.Op { return broadcast{b.Shape.part(r.Out[0], at)} }
	return r, ok
}
