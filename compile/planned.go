package compile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/split"
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
// Options.NoFusion is set, or only the model's own graph fits the budgets. A policy
// that searches also plans graphs whose neediest operations are cut into parts
// (package graph/split), if nothing else fits or a step would be slower for want of
// memory, and takes the fastest. If some targets do not fit, the error wraps the
// *[ErrOutOfMemory] of the one that needs the most.
func Plan(ctx context.Context, g *graph.Graph, o Options, targets ...Target) (*Planned, error) {
	var best *Planned
	var refusal error
	err := variants(g, o, targets, func(v *Planned) (bool, error) {
		err := v.plan(ctx, o)
		if _, refused := errors.AsType[*ErrOutOfMemory](err); refused {
			refusal = lesser(refusal, err)
			return true, nil
		}
		if err == nil && (best == nil || total(v.Results) < total(best.Results)) {
			best = v
		}
		return err == nil && o.Policy.Searches() && v.stalls() && v.cramped(o), err
	})
	switch {
	case err != nil:
		return nil, err
	case best == nil:
		return nil, refusal
	}
	return best, nil
}

// cramped reports whether the neediest operation takes so much of the device's budget
// that cutting it would leave notably more for others.
func (p *Planned) cramped(o Options) bool {
	fetches, _ := p.roots()
	return slices.Max(append(split.Needs(p.Graph, fetches), 0)) > o.DeviceBytes/4
}

// stalls reports whether a step of the first target takes notably longer than its
// operations.
func (p *Planned) stalls() bool {
	r := p.Results[0]
	var work time.Duration
	for _, id := range r.Program.Order {
		if r.Program.Place == nil || r.Program.Place[id] == space.Device {
			work += r.Model.Time(p.Graph.Node(id), space.Device)
		}
	}
	return r.Options.Policy != Vanilla && r.Step > work+work/20
}

// lesser is the one of two refusals that asks for less: for more of the device
// only, if one of them does, since a larger budget of either memory is enough if
// one of the graphs does with it.
func lesser(a, b error) error {
	if a == nil {
		return b
	}
	first, _ := errors.AsType[*ErrOutOfMemory](a)
	second, _ := errors.AsType[*ErrOutOfMemory](b)
	if rank(second) < rank(first) ||
		rank(second) == rank(first) && second.Need < first.Need {
		return b
	}
	return a
}

// rank orders refusals by what must be raised: the disk's budget, the device's, the
// host's, the device's and the host's.
func rank(e *ErrOutOfMemory) int {
	switch {
	case e.Space == Disk:
		return 0
	case e.Space == space.Device:
		return 1
	case e.Remedy.Change != RaiseOther:
		return 2
	}
	return 3
}

// LeastOf is [Minimum] of the graphs that are planned: the smallest budget of a space,
// in bytes, with which Plan succeeds within the other's.
func LeastOf(ctx context.Context, g *graph.Graph, o Options, of space.ID,
	targets ...Target) (int64, error) {
	least, found := int64(0), false
	var refusal error
	*budget(&o, of) = 0
	err := variants(g, o, targets, func(v *Planned) (bool, error) {
		bytes, err := Minimum(ctx, v.Graph, o, of, v.Targets...)
		if _, refused := errors.AsType[*ErrOutOfMemory](err); refused {
			refusal = lesser(refusal, err)
			return true, nil
		}
		if err == nil && (!found || bytes < least) {
			least, found = bytes, true
		}
		return true, err
	})
	switch {
	case err != nil:
		return 0, err
	case !found:
		return 0, refusal
	}
	return least, nil
}

// SmallerOf is [Smaller] of the graph that is planned first.
func SmallerOf(ctx context.Context, g *graph.Graph, o Options, than int64,
	targets ...Target) (Remedy, error) {
	all, err := Variants(g, o, targets...)
	if err != nil {
		return Remedy{}, err
	}
	return Smaller(ctx, all[0].Graph, o, than, all[0].Targets...)
}

// plan makes the plans.
func (p *Planned) plan(ctx context.Context, o Options) error {
	var err error
	p.Results, err = All(ctx, p.Graph, o, p.Targets...)
	return err
}

// Peak is what a session with these plans takes of a space, in bytes: the most
// that one of them needs; nothing of a space that they do not have.
func (p *Planned) Peak(s space.ID) int64 {
	var most int64
	for _, r := range p.Results {
		if int(s) < len(r.Plan.Spaces) {
			most = max(most, r.Plan.Spaces[s].Bytes)
		}
	}
	return most
}
