package ops

import "github.com/gomem/gomem/graph"

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
