package compile

import (
	"context"
	"errors"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/fuse"
	"github.com/gomem/gomem/space"
)

// Planned is a graph with the plans of its targets.
type Planned struct {
	Model   *graph.Graph // what was planned
	Graph   *graph.Graph // the model's, or the one that was fused from it
	Targets []Target     // with the values of Graph
	Results []*Result
}

// Plan decides how to run the targets of a graph, as Compile does, and takes no
// memory for it. The plans are of a fused graph (package graph/fuse) unless
// Options.NoFusion is set, or only the model's own graph fits the budgets. If some
// targets do not fit, the error wraps the *[ErrOutOfMemory] of the one that needs
// the most.
func Plan(ctx context.Context, g *graph.Graph, o Options, targets ...Target) (*Planned, error) {
	plain, fused, err := variants(g, o, targets)
	if err != nil {
		return nil, err
	}
	err = fused.plan(ctx, o)
	_, refused := errors.AsType[*ErrOutOfMemory](err)
	switch {
	case plain == nil || err != nil && !refused:
		return only(fused, err)
	case err == nil:
		return fused, nil
	}
	errPlain := plain.plan(ctx, o)
	_, refusedPlain := errors.AsType[*ErrOutOfMemory](errPlain)
	switch {
	case errPlain != nil && !refusedPlain:
		return nil, errPlain
	case refused && refusedPlain:
		return nil, lesser(err, errPlain)
	}
	return plain, nil
}

// only is plans, if nothing is wrong.
func only(p *Planned, err error) (*Planned, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// variants are the graphs to choose from, not planned yet: the model's own and the
// fused one, or nil and the model's own if there is nothing to choose.
func variants(g *graph.Graph, o Options, targets []Target) (plain, fused *Planned, err error) {
	if err := CheckTargets(g, targets...); err != nil {
		return nil, nil, err
	}
	plain = &Planned{Model: g, Graph: g, Targets: targets}
	if o.NoFusion {
		return nil, plain, nil
	}
	fused, err = fusedFrom(plain)
	return plain, fused, err
}

// Variants are the graphs that Plan chooses from, not planned yet: the one that it
// prefers comes first.
func Variants(g *graph.Graph, o Options, targets ...Target) ([]*Planned, error) {
	plain, fused, err := variants(g, o, targets)
	if err != nil {
		return nil, err
	}
	if plain == nil {
		return []*Planned{fused}, nil
	}
	return []*Planned{fused, plain}, nil
}

// lesser is the one of two refusals that asks for less: for more of the device
// only, if one of them does, since a larger budget of either memory is enough if
// one of the graphs does with it.
func lesser(a, b error) error {
	first, _ := errors.AsType[*ErrOutOfMemory](a)
	second, _ := errors.AsType[*ErrOutOfMemory](b)
	if rank(second) < rank(first) ||
		rank(second) == rank(first) && second.Need < first.Need {
		return b
	}
	return a
}

// rank orders refusals by what must be raised: the device's budget, the host's,
// both.
func rank(e *ErrOutOfMemory) int {
	switch {
	case e.Space == space.Device:
		return 0
	case e.Remedy.Change != RaiseOther:
		return 1
	}
	return 2
}

// LeastOf is [Minimum] of the graph that is planned: the smallest budget of a space,
// in bytes, with which Plan succeeds within the other's.
func LeastOf(ctx context.Context, g *graph.Graph, o Options, of space.ID,
	targets ...Target) (int64, error) {
	plain, fused, err := variants(g, o, targets)
	if err != nil {
		return 0, err
	}
	least, err := Minimum(ctx, fused.Graph, o, of, fused.Targets...)
	_, refused := errors.AsType[*ErrOutOfMemory](err)
	if plain == nil || err != nil && !refused {
		return least, err
	}
	own, errPlain := Minimum(ctx, plain.Graph, o, of, plain.Targets...)
	_, refusedPlain := errors.AsType[*ErrOutOfMemory](errPlain)
	switch {
	case errPlain != nil && !refusedPlain:
		return 0, errPlain
	case refused && refusedPlain:
		return 0, lesser(err, errPlain)
	case refused, !refusedPlain && own < least:
		return own, nil
	}
	return least, nil
}

// SmallerOf is [Smaller] of the graph that is planned first.
func SmallerOf(ctx context.Context, g *graph.Graph, o Options, than int64,
	targets ...Target) (Remedy, error) {
	_, p, err := variants(g, o, targets)
	if err != nil {
		return Remedy{}, err
	}
	return Smaller(ctx, p.Graph, o, than, p.Targets...)
}

// fusedFrom is the fused graph with its targets, not planned yet.
func fusedFrom(p *Planned) (*Planned, error) {
	var fetches []graph.Value
	var updates []graph.NodeID
	for _, t := range p.Targets {
		fetches = append(fetches, t.Fetches...)
		updates = append(updates, t.Updates...)
	}
	r, err := fuse.Fuse(p.Graph, fetches, updates)
	if err != nil {
		return nil, err
	}
	out := &Planned{Model: p.Model, Graph: r.Graph}
	for _, t := range p.Targets {
		moved := Target{Name: t.Name}
		for _, v := range t.Fetches {
			moved.Fetches = append(moved.Fetches, r.Value(v))
		}
		for _, id := range t.Updates {
			moved.Updates = append(moved.Updates, r.Node(id).ID)
		}
		out.Targets = append(out.Targets, moved)
	}
	return out, nil
}

// plan makes the plans.
func (p *Planned) plan(ctx context.Context, o Options) error {
	var err error
	p.Results, err = All(ctx, p.Graph, o, p.Targets...)
	return err
}

// Peak is what a session with these plans takes of a space, in bytes: the most
// that one of them needs.
func (p *Planned) Peak(s space.ID) int64 {
	var most int64
	for _, r := range p.Results {
		most = max(most, r.Plan.Spaces[s].Bytes)
	}
	return most
}
