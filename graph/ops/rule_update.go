package ops

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// splitUpdate is the rule of an update of elements: variables and what is as large as the
// first are divided along all axes, and scalars are read by every part.
func splitUpdate(in []graph.Type) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, in[0])
	for _, t := range in {
		if t.SameShape(in[0]) {
			r.In = append(r.In, axes)
		} else {
			r.In = append(r.In, entire(t))
		}
	}
	return r, true
}

// Split is along all axes.
func (sgd) Split(in, _ []graph.Type) (graph.Rule, bool) { return splitUpdate(in) }

// Split is along all axes.
func (momentum) Split(in, _ []graph.Type) (graph.Rule, bool) { return splitUpdate(in) }

// Split is along all axes.
func (nesterov) Split(in, _ []graph.Type) (graph.Rule, bool) { return splitUpdate(in) }

// Split is along all axes.
func (lion) Split(in, _ []graph.Type) (graph.Rule, bool) { return splitUpdate(in) }

// Split is along all axes. It is that of adamW, too.
func (adam) Split(in, _ []graph.Type) (graph.Rule, bool) { return splitUpdate(in) }

// Split is along all axes.
func (o adamW16) Split(in, _ []graph.Type) (graph.Rule, bool) {
	r, _ := splitUpdate(in)
	r.Local = func(at []graph.Part) graph.Op { return adamW16{o.part(in[0], r.In[0], at)} }
	return r, true
}

// Split is along the first axis of more than one element, into parts of whole blocks of moments;
// of none, if there are no such parts.
func (o adamW8) Split(in, _ []graph.Type) (r graph.Rule, ok bool) {
	axes, scales := entire(in[0]), entire(in[2])
	n := in[0].Elems()
	lead := slices.IndexFunc(in[0].Shape, func(d graph.Dim) bool { return d.Size > 1 })
	if lead >= 0 && n%vec.MomentBlock == 0 {
		size := in[0].Size(lead)
		row := n / size
		axes[lead] = coarse(&r, size, func(part int) bool { return part*row%vec.MomentBlock == 0 })
		if axis := axes[lead]; len(axis) > 0 {
			blocks := in[2].Size(0) / r.Factors[axis[0]].Size
			scales[0] = append(axis[:1:1], oneAxis(&r, blocks)...)
		}
	}
	for i, t := range in {
		switch {
		case i == 2 || i == 4:
			r.In = append(r.In, scales)
		case t.SameShape(in[0]):
			r.In = append(r.In, axes)
		default:
			r.In = append(r.In, entire(t))
		}
	}
	r.Local = func(at []graph.Part) graph.Op { return adamW8{o.part(in[0], axes, at)} }
	return r, true
}

// part is the update of a part of a variable of type w.
func (o smallAdamW) part(w graph.Type, axes [][]int, at []graph.Part) smallAdamW {
	if win, ok := windowOf(w, axes, at); ok {
		o.Win = win
	}
	return o
}

// Split is along all axes.
func (accumulate) Split(in, _ []graph.Type) (graph.Rule, bool) { return splitUpdate(in) }

// Split is along all axes.
func (accumulateUntil) Split(in, _ []graph.Type) (graph.Rule, bool) { return splitUpdate(in) }

// Split is along all axes.
func (assign) Split(in, _ []graph.Type) (graph.Rule, bool) { return splitUpdate(in) }

// Split is along all axes.
func (runningAverage) Split(in, _ []graph.Type) (graph.Rule, bool) { return splitUpdate(in) }

// Split is that of the update that is executed.
func (o every) Split(in, out []graph.Type) (graph.Rule, bool) {
	inner, ok := o.Op.(graph.Splitter)
	if !ok {
		return graph.Rule{}, false
	}
	last := len(in) - 1
	r, ok := inner.Split(in[:last], out)
	if !ok {
		return r, false
	}
	r.In = append(r.In, entire(in[last]))
	if local := r.Local; local != nil {
		r.Local = func(at []graph.Part) graph.Op { return every{local(at), o.N} }
	}
	return r, true
}
