package gomem

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/fuse"
	"github.com/gomem/gomem/space"
)

// Planned is a graph with the plans of its targets.
type Planned struct {
	Model   *graph.Graph // what was planned
	Graph   *graph.Graph // the model's, or the one that was fused from it
	Targets []Target     // with the values of Graph
	Results []*compile.Result
}

// Plan decides how to run the targets of a graph, as Compile does, and takes no
// memory for it. The plans are of a fused graph (package graph/fuse) unless
// Options.NoFusion is set, or only the model's own fits the budget, or there is no
// budget and the model's own needs less of the device. If some targets do not fit,
// the error wraps the *[ErrOutOfMemory] of the one that needs the most.
func Plan(ctx context.Context, g *graph.Graph, o Options, targets ...Target) (*Planned, error) {
	if len(targets) == 0 {
		return nil, errors.New("gomem: nothing to plan: no targets")
	}
	plain := &Planned{Model: g, Graph: g, Targets: targets}
	if o.NoFusion {
		if err := plain.plan(ctx, o); err != nil {
			return nil, prefixed(err)
		}
		return plain, nil
	}
	fused, err := fusedFrom(plain)
	if err != nil {
		return nil, prefixed(err)
	}
	errFused := fused.plan(ctx, o)
	if errFused == nil && o.DeviceBytes > 0 {
		return fused, nil
	}
	if _, refused := errors.AsType[*ErrOutOfMemory](errFused); errFused != nil && !refused {
		return nil, prefixed(errFused)
	}
	errPlain := plain.plan(ctx, o)
	switch {
	case errFused != nil && errPlain != nil:
		return nil, prefixed(lesser(errFused, errPlain))
	case errFused != nil, errPlain == nil && plain.Peak(space.Device) < fused.Peak(space.Device):
		return plain, nil
	}
	return fused, nil
}

// lesser is the one of two refusals that asks for less; the second, if they ask
// for different things.
func lesser(a, b error) error {
	first, ok1 := errors.AsType[*ErrOutOfMemory](a)
	second, ok2 := errors.AsType[*ErrOutOfMemory](b)
	if ok1 && ok2 && first.Space == second.Space && first.Need < second.Need {
		return a
	}
	return b
}

func prefixed(err error) error { return fmt.Errorf("gomem: %w", err) }

// MinDevice is the smallest device budget with which Plan succeeds.
func MinDevice(ctx context.Context, g *graph.Graph, o Options, targets ...Target) (int64, error) {
	plain := &Planned{Model: g, Graph: g, Targets: targets}
	least, err := plain.minDevice(ctx, o)
	if !o.NoFusion {
		fused, errFused := fusedFrom(plain)
		if errFused != nil {
			return 0, prefixed(errFused)
		}
		if bytes, errFused := fused.minDevice(ctx, o); errFused == nil &&
			(err != nil || bytes < least) {
			least, err = bytes, nil
		}
	}
	if err != nil {
		return 0, prefixed(err)
	}
	return least, nil
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
	var worst *ErrOutOfMemory
	for _, t := range p.Targets {
		r, err := compile.Compile(ctx, p.Graph, t, o.Planning())
		if short, ok := errors.AsType[*ErrOutOfMemory](err); ok {
			if worst == nil || short.Space == worst.Space && short.Need > worst.Need {
				worst = short
			}
			continue
		}
		if err != nil {
			return err
		}
		p.Results = append(p.Results, r)
	}
	if worst != nil {
		return worst
	}
	return nil
}

// minDevice is the smallest device budget under which every target has a plan.
func (p *Planned) minDevice(ctx context.Context, o Options) (int64, error) {
	var most int64
	for _, t := range p.Targets {
		least, err := compile.MinDevice(ctx, p.Graph, t, o.Planning())
		if err != nil {
			return 0, err
		}
		most = max(most, least)
	}
	return most, nil
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
