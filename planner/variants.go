package planner

import (
	"fmt"
	"slices"
	"sync"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/fuse"
	"github.com/gomem/gomem/graph/join"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/graph/split"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/planner/machine"
)

// Variants are the graphs that Plan chooses from whatever the budgets are, not planned
// yet: the one that it prefers comes first.
func Variants(g *graph.Graph, o Options, targets ...Target) ([]*Planned, error) {
	o.Policy = Vanilla
	list, err := variantsOf(g, o, targets)
	if err != nil {
		return nil, err
	}
	var all []*Planned
	for _, x := range list {
		v, err := x.graph()
		if err != nil {
			return nil, err
		}
		if v != nil {
			all = append(all, v)
		}
	}
	return all, nil
}

// variantsOf are the graphs to choose from, the fused graph, those whose constants are folded or
// computed again, those whose neediest operations are cut, and the model's own, none of which is
// made yet. Which there are does not depend on the budgets. If there is a mesh, all are made of the
// graph that is divided over it.
func variantsOf(g *graph.Graph, o Options, targets []Target) ([]variant, error) {
	if err := CheckTargets(g, targets...); err != nil {
		return nil, err
	}
	return whole(g, targets).variantsBy(o)
}

// whole is a graph with its targets before anything is made of it.
func whole(g *graph.Graph, targets []Target) *Planned {
	p := &Planned{Model: g, Graph: g, Targets: targets}
	p.from = p
	return p
}

// How the graphs are made that are not cut.
const (
	asFused = "fused"
	asPlain = "plain"
)

// Plain reports whether the plans are of the model's graph as it is, or as it was divided or
// lowered to a precision: nothing is fused or cut.
func (p *Planned) Plain() bool { return p.rewritten == asPlain }

// variant is a graph to choose that is not made yet.
type variant struct {
	name string
	maker
	known *Planned // the graph, if there has been one
}

// maker is a graph that is made when it is asked for, and once, since others are made of it. It is
// nil if it would be no other than what it is made of.
type maker func() (*Planned, error)

// then is what becomes of a graph, if there is one.
func (m maker) then(next func(*Planned) (*Planned, error)) maker {
	return sync.OnceValues(func() (*Planned, error) {
		p, err := m()
		if p == nil || err != nil {
			return nil, err
		}
		return next(p)
	})
}

// isCut reports whether the graph is one whose neediest operations are cut.
func (v variant) isCut() bool {
	return v.name != asFused && v.name != asPlain && !v.ofConstants()
}

// rewrites reports whether the graph is neither the fused nor the model's own.
func (v variant) rewrites() bool { return v.isCut() || v.ofConstants() }

// variantsBy are those of a model, which may have been divided before.
func (p *Planned) variantsBy(o Options) ([]variant, error) {
	plain, err := divided(p, o)
	if err == nil && o.Precision == precision.BF16 {
		plain, err = plain.apart()
	}
	if err == nil {
		plain, err = plain.halved(o)
	}
	if err != nil {
		return nil, err
	}
	if o.Device != nil {
		if plain, err = plain.on(o.Device); err != nil {
			return nil, err
		}
	}
	parts, err := plain.apart()
	if err != nil {
		return nil, err
	}
	return plain.rewritings(parts, o), nil
}

// rewritings are the variants that are made of a plain graph, and those that are cut of the one in
// which losses are apart.
func (p *Planned) rewritings(parts *Planned, o Options) []variant {
	var plain maker = func() (*Planned, error) { return p, nil }
	joined := plain.then((*Planned).joined)
	fused := joined.fused(o)
	list := []variant{{name: asFused, maker: fused}}
	if o.NoFusion {
		list = []variant{{name: asPlain, maker: plain}}
		joined = plain
	}
	if o.Policy.Searches() {
		folded, unfolded := joined.constants(o)
		unfolded = unfolded.fused(o)
		list = append(list, variant{name: asFolded, maker: folded.fused(o)},
			variant{name: asUnfolded, maker: unfolded})
		// That the parts of an operation come to its bits is a promise of the reference's kernels.
		if o.Device == nil {
			if parts != p {
				var apart maker = func() (*Planned, error) { return parts, nil }
				_, unfolded = apart.constants(o)
				fused, unfolded = apart.fused(o), unfolded.fused(o)
			}
			list = append(list, cuts(parts, "", fused)...)
			list = append(list, cuts(parts, asUnfolded+", ", unfolded)...)
		}
	}
	if !o.NoFusion {
		list = append(list, variant{name: asPlain, maker: plain})
	}
	return list
}

// graph makes the graph, not planned yet; it is nil if it would be another variant's.
func (v variant) graph() (*Planned, error) {
	if v.known != nil {
		return v.known, nil
	}
	p, err := v.maker()
	if p == nil || err != nil {
		return nil, err
	}
	named := *p
	named.rewritten = v.name
	return &named, nil
}

// divided is the graph that is divided over a mesh, if there is one: a process' part of it.
func divided(p *Planned, o Options) (*Planned, error) {
	if o.Mesh == nil || p.Mesh != nil {
		return p, nil
	}
	fetches, updates := p.roots()
	r, err := mesh.Lower(p.Graph, *o.Mesh, o.Rank, fetches, updates)
	if err != nil {
		return nil, err
	}
	out := &Planned{Model: p.Model, Graph: r.Graph, Mesh: r}
	for _, t := range p.Targets {
		next := Target{Name: t.Name}
		for _, v := range t.Fetches {
			next.Fetches = append(next.Fetches, r.Value(v))
		}
		for _, id := range t.Updates {
			for _, n := range r.Updates(id) {
				next.Updates = append(next.Updates, n.ID)
			}
		}
		kept, err := r.Kept(t.Fetches, t.Updates)
		if err != nil {
			return nil, err
		}
		for _, n := range kept {
			next.Updates = append(next.Updates, n.ID)
		}
		out.Targets = append(out.Targets, next)
	}
	out.from = out
	return out, nil
}

// halved is the graph in bfloat16, if that is asked for.
func (p *Planned) halved(o Options) (*Planned, error) {
	if o.Precision != precision.BF16 {
		return p, nil
	}
	fetches, updates := p.roots()
	r, err := precision.Lower(p.Graph, fetches, updates)
	if err != nil {
		return nil, err
	}
	return p.moved(r.Graph, r), nil
}

// on is a copy of the graph in which nodes need what they need on a device, and are computed by
// what computes them there. What of the update phase it computes to other bits than the host, every
// plan has on the host: where else such operations run is a plan's choice, and may not show.
func (p *Planned) on(device machine.Device) (*Planned, error) {
	c, err := p.fuse(func(graph.Op) bool { return false })
	if err != nil {
		return nil, err
	}
	by, err := device.Computing(c.Graph.Nodes())
	if err != nil {
		return nil, fmt.Errorf("asking the device what it can: %w", err)
	}
	c.Graph.SetDevice(graph.Device{Library: by.Library, Scratch: by.Scratch, Align: by.Align,
		Hosted: func(n *graph.Node) bool {
			return (n.Phase == graph.Update || n.Kind == graph.KindUpdate) && !device.Exact(n.Op)
		}})
	return c, nil
}

// fused is a graph fused into operations that the device runs, unless nothing is to be fused.
func (m maker) fused(o Options) maker {
	if o.NoFusion {
		return m
	}
	return m.then(func(p *Planned) (*Planned, error) {
		f, err := p.fuse(runs(o))
		if err == nil {
			f.constants = p.constants
		}
		return f, err
	})
}

// fuse is the graph fused into operations that a device runs.
func (p *Planned) fuse(runs func(graph.Op) bool) (*Planned, error) {
	fetches, updates := p.roots()
	r, err := fuse.For(runs, p.Graph, fetches, updates)
	if err != nil {
		return nil, err
	}
	return p.moved(r.Graph, r), nil
}

// joined is the graph in which gradients stand for their losses.
func (p *Planned) joined() (*Planned, error) {
	var targets [][]graph.NodeID
	for _, t := range p.Targets {
		targets = append(targets, t.Roots())
	}
	r, err := join.Join(p.Graph, targets)
	if r == nil || err != nil {
		return p, err
	}
	return p.moved(r.Graph, r), nil
}

// apart is the graph in which losses are the operations that they stand for.
func (p *Planned) apart() (*Planned, error) {
	r, err := join.Apart(p.Graph)
	if r == nil || err != nil {
		return p, err
	}
	return p.moved(r.Graph, r), nil
}

// cuts are the variants of a graph whose operations need at most a quarter, and a 32nd, of the
// bytes of the neediest one of the plain graph.
func cuts(plain *Planned, prefix string, whole maker) []variant {
	fetches, updates := plain.roots()
	most := slices.Max(append(split.Needs(plain.Graph, fetches, updates), 0))
	sums := whole.then((*Planned).accumulated)
	var list []variant
	for _, part := range []int64{4, 32} {
		cut := func(p *Planned) (*Planned, error) { return p.cut(whole, most/part) }
		list = append(list, variant{name: fmt.Sprintf("%scut to 1/%d", prefix, part),
			maker: sums.then(cut)})
	}
	return list
}

// accumulated is the graph with gradients added up where they are.
func (p *Planned) accumulated() (*Planned, error) {
	fetches, updates := p.roots()
	r, err := split.Accumulate(p.Graph, fetches, updates)
	if err != nil {
		return nil, err
	}
	return p.moved(r.Graph, r), nil
}

// cut is the graph whose operations need at most so many bytes as far as that can be; nil if
// that, and what was done before it, changes nothing of the whole.
func (p *Planned) cut(whole maker, limit int64) (*Planned, error) {
	fetches, updates := p.roots()
	r, err := split.Split(p.Graph, fetches, updates, limit)
	if err != nil {
		return nil, err
	}
	before, err := whole()
	if err != nil || r.Graph.Len() == before.Graph.Len() {
		return nil, err
	}
	return p.moved(r.Graph, r), nil
}

// roots are the fetches and updates of all targets.
func (p *Planned) roots() (fetches []graph.Value, updates []graph.NodeID) {
	for _, t := range p.Targets {
		fetches = append(fetches, t.Fetches...)
		updates = append(updates, t.Updates...)
	}
	return fetches, updates
}

// rewritten says where the values and nodes of a graph went.
type rewritten interface {
	Value(graph.Value) graph.Value
	Node(graph.NodeID) *graph.Node
}

// moved is a rewritten graph with the targets, not planned yet.
func (p *Planned) moved(g *graph.Graph, to rewritten) *Planned {
	out := &Planned{Model: p.Model, Graph: g, Mesh: p.Mesh, from: p.from}
	for _, t := range p.Targets {
		next := Target{Name: t.Name}
		for _, v := range t.Fetches {
			next.Fetches = append(next.Fetches, to.Value(v))
		}
		for _, id := range t.Updates {
			next.Updates = append(next.Updates, to.Node(id).ID)
		}
		out.Targets = append(out.Targets, next)
	}
	return out
}
