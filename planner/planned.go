package planner

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/fold"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/candidates"
	"github.com/gomem/gomem/planner/explain"
)

// Planned is a graph with the plans of its targets.
type Planned struct {
	Model   *graph.Graph // what was planned
	Graph   *graph.Graph // the model's, or the one that was fused from it
	Mesh    *mesh.Result // how the model's graph was divided; nil if it was not
	Targets []Target     // with the values of Graph
	Results []*Result

	from      *Planned      // the model's graph, divided if it was, that Graph was made of
	rewritten string        // how
	constants []fold.Change // that became or were constants on the way
	by        Options       // but for the budgets
	variants  []variant     // that there were to choose from, and may be again; nil if not kept
}

// Plan decides how to run the targets of a graph, as Compile does, and takes no
// memory for it. The plans are of a fused graph (package graph/fuse) unless
// Options.NoFusion is set, or only the model's own graph fits the budgets. A policy
// that searches also plans graphs whose neediest operations are cut into parts (package
// graph/split), if nothing else fits, a step would be slower for want of memory, or their
// operations take less time, and takes the fastest. What other policies come to with graphs that
// it is refused, or does not look at while they may be refused the fused one, it takes if that is
// faster. If some targets do not fit, the error wraps the *[ErrOutOfMemory] of the one that needs
// the most.
func Plan(ctx context.Context, g *graph.Graph, o Options, targets ...Target) (*Planned, error) {
	list, err := variantsOf(g, o, targets)
	if err != nil {
		return nil, err
	}
	c := choice{want: next}
	for i, v := range list {
		if c.passes(v, i == len(list)-1) {
			candidates.Note(candidates.OfGraph(ctx, v.name),
				"is not looked at: the %s graph's plans leave nothing to gain", c.best.rewritten)
			continue
		}
		if c, err = c.after(ctx, v, o); err != nil {
			return nil, err
		}
	}
	if c.best == nil {
		return nil, explain.Gentlest(c.refused)
	}
	best, err := c.settled(o)
	if err != nil {
		return nil, err
	}
	best.variants = list
	return best, nil
}

// leastTime is what steps of all targets take at least: what no policy has on the host is
// executed on the device, and so is all where the host is no other processor.
func (p *Planned) leastTime(o Options) time.Duration {
	o.EnsureDefaults()
	m := Prices(o.Machine, o.Model, p.Graph, p.Targets...)
	var sum time.Duration
	for _, t := range p.Targets {
		for id, live := range p.Graph.Ancestors(t.Roots()) {
			n := p.Graph.Node(graph.NodeID(id))
			updates := n.Phase == graph.Update || n.Kind == graph.KindUpdate
			if live && n.Executes() && (!updates || m.Shared() > 0) {
				sum += m.Time(n, space.Device) / time.Duration(o.Streams)
			}
		}
	}
	return sum
}

// operations is how many nodes the targets execute.
func (p *Planned) operations() int {
	fetches, updates := p.roots()
	n := 0
	for id, live := range p.Graph.Ancestors(Target{Fetches: fetches, Updates: updates}.Roots()) {
		if live && p.Graph.Node(graph.NodeID(id)).Executes() {
			n++
		}
	}
	return n
}

// LeastOf is [Minimum] of the graphs that are planned: the smallest budget of a space,
// in bytes, with which Plan succeeds within the other's.
func LeastOf(ctx context.Context, g *graph.Graph, o Options, of space.ID,
	targets ...Target) (int64, error) {
	if err := CheckTargets(g, targets...); err != nil {
		return 0, err
	}
	return whole(g, targets).LeastOf(ctx, o, of)
}

// LeastOf is LeastOf of the model and the targets that were planned, by the same options but
// for the budgets. It does not divide the model over the mesh again.
func (p *Planned) LeastOf(ctx context.Context, o Options, of space.ID) (int64, error) {
	if p == nil || p.from == nil {
		return 0, errors.New("planner: nothing has been planned")
	}
	*o.Budget(of) = 0
	if of == space.Disk {
		o.DiskBytes = math.MaxInt64 // none is no disk
	}
	list, err := p.again(o)
	if err != nil {
		return 0, err
	}
	var all, refused []*candidates.Search
	for _, x := range list {
		v, err := x.graph()
		if err != nil {
			return 0, err
		}
		if v == nil {
			continue
		}
		s, err := candidates.Again(ctx, v.Graph, o, v.Targets, v.results(o))
		if err != nil {
			return 0, err
		}
		all = append(all, s)
	}
	best := int64(math.MaxInt64)
	for _, i := range candidates.ByFloor(all) {
		if of == space.Device && all[i].Floor() > best {
			break // the others need more
		}
		l, err := all[i].MinimumBelow(of, best)
		if err != nil {
			return 0, err
		}
		if l == nil {
			refused = append(refused, all[i])
			continue
		}
		best = min(best, l.Bytes)
	}
	if best == math.MaxInt64 {
		return 0, explain.Gentlest(refused)
	}
	return best, nil
}

// again are the variants that are chosen from by some options: those that there were, made by now
// or not, if the options are the same but for the budgets.
func (p *Planned) again(o Options) (list []variant, err error) {
	known := p.known(o)
	if list = slices.Clone(p.variants); known == nil || list == nil {
		if list, err = p.from.variantsBy(o); err != nil {
			return nil, err
		}
	}
	for i := range list {
		if known != nil && list[i].name == known.rewritten {
			list[i].known = known
		}
	}
	return list, nil
}

// Chosen is what has been planned without the other graphs that there were to choose from, each of
// which may take as much memory as the one that was chosen: LeastOf makes them again.
func (p *Planned) Chosen() *Planned {
	chosen := *p
	chosen.variants = nil
	return &chosen
}

// known is what has been planned, if that was by the same options but for the budgets.
func (p *Planned) known(o Options) *Planned {
	if p.rewritten == "" || p.Results == nil || p.by != o.Unlimited() {
		return nil
	}
	return p
}

// results are what has been planned by the same options but for the budgets; nil if nothing has.
func (p *Planned) results(o Options) []*Result {
	if p.known(o) == nil {
		return nil
	}
	return p.Results
}

// Smaller is the partition size below the options', of a few that are tried, with
// which what was planned needs the least of the device within the host's budget, and a
// device budget that works with it, as a remedy. If none needs less than so many
// bytes, it is to Shrink. The options are those of the plans.
func (p *Planned) Smaller(ctx context.Context, o Options, bytes int64) (Remedy, error) {
	s, err := candidates.Begin(ctx, p.Graph, o, p.Targets, p.results(o))
	if err != nil {
		return Remedy{}, err
	}
	return explain.Partition(s, bytes)
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
