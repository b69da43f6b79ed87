package planner

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/fold"
)

// constants are the variants in which what is known before the first step is a constant, and in
// which large constants are computed again. Which of them and of the graph as it is stated is the
// best depends on prices and budgets; which there are does not.
func constants(o Options) []variant {
	return []variant{
		{name: asFolded, make: func(p *Planned) (*Planned, error) { return p.folded(o, false) }},
		{name: asUnfolded, make: func(p *Planned) (*Planned, error) { return p.folded(o, true) }},
	}
}

// ofConstants reports whether the graph differs in what is constant, and in no other way.
func (v variant) ofConstants() bool { return v.name == asFolded || v.name == asUnfolded }

// How these graphs are made.
const (
	asFolded   = "folded"
	asUnfolded = "unfolded"
)

// folded is the graph whose constants are folded, and perhaps unfolded then, and which is fused;
// nil if the last of these rewritings changes nothing.
func (p *Planned) folded(o Options, unfold bool) (*Planned, error) {
	runs, exact := everything, everything
	if d := o.Device; d != nil {
		runs, exact = d.Runs, d.Exact
	}
	fetches, updates := p.roots()
	r, err := fold.Fold(exact, p.Graph, fetches, updates)
	if err != nil {
		return nil, err
	}
	changes := r.Changes
	p = p.moved(r.Graph, r)
	if unfold {
		fetches, updates = p.roots()
		generates := func(op graph.Op) bool { return runs(op) && exact(op) }
		if r, err = fold.Unfold(generates, p.Graph, fetches, updates); err != nil {
			return nil, err
		}
		changes = append(changes, r.Changes...)
		p = p.moved(r.Graph, r)
	}
	if len(r.Changes) == 0 {
		return nil, nil
	}
	if !o.NoFusion {
		if p, err = p.fuse(runs); err != nil {
			return nil, err
		}
	}
	p.constants = changes
	return p, nil
}

// everything is what the reference computes.
func everything(graph.Op) bool { return true }
