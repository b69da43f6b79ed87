package planner

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/fold"
)

// constants are the graph in which what is known before the first step is a constant, and the
// one in which large constants are computed again, too. Which of them and of the graph as it is
// stated is the best depends on prices and budgets; which there are does not.
func (m maker) constants(o Options) (folded, unfolded maker) {
	once := m.then(func(p *Planned) (*Planned, error) { return p.folded(o) })
	of := func(all bool) maker {
		return once.then(func(p *Planned) (*Planned, error) { return p.unfolded(o, all) })
	}
	return of(false), of(true)
}

// ofConstants reports whether the graph differs in what is constant, and in no other way.
func (v variant) ofConstants() bool { return v.name == asFolded || v.name == asUnfolded }

// How these graphs are made.
const (
	asFolded   = "folded"
	asUnfolded = "unfolded"
)

// runs says what the device runs.
func runs(o Options) func(graph.Op) bool {
	if o.Device == nil {
		return everything
	}
	return o.Device.Runs
}

// folded is the graph whose constants are folded.
func (p *Planned) folded(o Options) (*Planned, error) {
	fetches, updates := p.roots()
	r, err := fold.Fold(exact(o), p.Graph, fetches, updates)
	if err != nil {
		return nil, err
	}
	p = p.moved(r.Graph, r)
	p.constants = r.Changes
	return p, nil
}

// unfolded is a graph whose constants are folded with each of them in the form that takes the
// least, and with all, those that the model states, too. It is nil if that changes nothing.
func (p *Planned) unfolded(o Options, all bool) (*Planned, error) {
	isNew := map[string]bool{}
	for _, c := range p.constants {
		isNew[c.Name] = true
	}
	generates := func(op graph.Op) bool { return runs(o)(op) && exact(o)(op) }
	which := func(n *graph.Node) bool { return all || isNew[n.Name] }
	fetches, updates := p.roots()
	r, err := fold.Unfold(generates, which, p.Graph, fetches, updates)
	if err != nil {
		return nil, err
	}
	isStated := func(c fold.Change) bool { return !isNew[c.Name] }
	changes := slices.Concat(p.constants, r.Changes)
	if all && !slices.ContainsFunc(r.Changes, isStated) || len(changes) == 0 {
		return nil, nil
	}
	p = p.moved(r.Graph, r)
	p.constants = changes
	return p, nil
}

// exact says what the device computes to the reference's bits.
func exact(o Options) func(graph.Op) bool {
	if o.Device == nil {
		return everything
	}
	return o.Device.Exact
}

// everything is what the reference computes.
func everything(graph.Op) bool { return true }
