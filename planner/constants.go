package planner

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/fold"
)

// constants are the variants in which what is known before the first step is a constant, and in
// which large constants are computed again. Which of them and of the graph as it is stated is the
// best depends on prices and budgets; which there are does not.
func constants(o Options) []variant {
	fusing := func(unfold bool) func(p *Planned) (*Planned, error) {
		return func(p *Planned) (*Planned, error) {
			p, err := p.folded(o, unfold)
			if p == nil || err != nil || o.NoFusion {
				return p, err
			}
			changes := p.constants
			if p, err = p.fuse(runs(o)); err == nil {
				p.constants = changes
			}
			return p, err
		}
	}
	return []variant{{name: asFolded, make: fusing(false)}, {name: asUnfolded, make: fusing(true)}}
}

// unfoldedCut are the variants that are cut, with large constants computed again.
func unfoldedCut(o Options, cuts []variant) (list []variant) {
	for _, v := range cuts {
		list = append(list, variant{name: asUnfolded + ", " + v.name,
			make: func(p *Planned) (*Planned, error) {
				p, err := p.folded(o, true)
				if p == nil || err != nil {
					return nil, err
				}
				return v.make(p)
			}})
	}
	return list
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

// folded is the graph whose constants are folded, each in the form that takes the least; and if
// they are unfolded, so are those that the model states. It is nil if that changes nothing.
func (p *Planned) folded(o Options, unfold bool) (*Planned, error) {
	exact := everything
	if o.Device != nil {
		exact = o.Device.Exact
	}
	fetches, updates := p.roots()
	r, err := fold.Fold(exact, p.Graph, fetches, updates)
	if err != nil {
		return nil, err
	}
	p, changes, isNew := p.moved(r.Graph, r), r.Changes, map[string]bool{}
	for _, c := range changes {
		isNew[c.Name] = true
	}
	generates := func(op graph.Op) bool { return runs(o)(op) && exact(op) }
	which := func(n *graph.Node) bool { return unfold || isNew[n.Name] }
	fetches, updates = p.roots()
	if r, err = fold.Unfold(generates, which, p.Graph, fetches, updates); err != nil {
		return nil, err
	}
	isStated := func(c fold.Change) bool { return !isNew[c.Name] }
	if unfold && !slices.ContainsFunc(r.Changes, isStated) || len(changes)+len(r.Changes) == 0 {
		return nil, nil
	}
	p = p.moved(r.Graph, r)
	p.constants = append(changes, r.Changes...)
	return p, nil
}

// everything is what the reference computes.
func everything(graph.Op) bool { return true }
