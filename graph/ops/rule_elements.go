package ops

import "github.com/gomem/gomem/graph"

// Split is along all axes. Sums and differences are linear.
func (b binary) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := splitElements(in, out)
	if b.Kind == add || b.Kind == sub {
		r.Adds = [][]int{{0, 1}}
	}
	return r, ok
}

// Split is along all axes.
func (u unary) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := splitElements(in, out)
	switch u.Kind {
	case neg:
		r.Adds = [][]int{{0}}
	case relu:
		r.Zeros = [][]int{{0}}
	}
	return r, ok
}

// Split is along all axes.
func (s slope) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := splitElements(in, out)
	if s.Kind == relu {
		r.Zeros = [][]int{{0, 1}, {1}}
	}
	return r, ok
}

// Split is along all axes. A multiple is linear.
func (a affine) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := splitElements(in, out)
	if a.Shift == 0 {
		r.Adds = [][]int{{0}}
	}
	return r, ok
}

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
