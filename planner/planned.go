package planner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/plan/space"
)

// Planned is a graph with the plans of its targets.
type Planned struct {
	Model   *graph.Graph // what was planned
	Graph   *graph.Graph // the model's, or the one that was fused from it
	Mesh    *mesh.Result // how the model's graph was divided; nil if it was not
	Targets []Target     // with the values of Graph
	Results []*Result

	from      *Planned // the model's graph, divided if it was, that Graph was made of
	rewritten string   // how
	by        Options  // but for the budgets
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
	var best *attempt
	var others []*attempt // without plans
	var refused []*variant
	want := next
	err := variants(g, o, targets, func(v *Planned) (wanted, error) {
		least := v.least(o)
		if want == quicker && v.isCut() && least+least/20 >= best.least(o) {
			want = last
			return want, nil
		}
		if best != nil && least >= together(best.plans) {
			return want, nil
		}
		if want != next && !v.isCut() {
			if v.operations() == best.operations() {
				return none, nil // nothing is fused
			}
			s, err := newVariant(ctx, v.Graph, o, v.Targets)
			if err == nil {
				s.after = best.variant
				others = append(others, &attempt{v, s, nil})
			}
			return none, err
		}
		a, err := v.attempt(ctx, o)
		if err != nil {
			return none, err
		}
		if a.plans == nil {
			refused, others = append(refused, a.variant), append(others, a)
			return next, nil
		}
		if best == nil || together(a.plans) < together(best.plans) {
			best = a
		}
		want = a.wants(o)
		return want, nil
	})
	switch {
	case err != nil:
		return nil, err
	case best == nil:
		return nil, gentlest(refused)
	}
	if o.Draft {
		others = nil
	}
	granted := append(others, best)
	if best, err = best.compareRivals(others); err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	if best, err = best.covered(granted); err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	best.Results, err = best.variant.complete(best.plans)
	if err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	best.by = o.unlimited()
	return best.Planned, nil
}

// attempt is a graph with the plans of its targets, or nil if some target has none. They
// are not written yet: only those of the best graph are.
type attempt struct {
	*Planned
	variant *variant
	plans   []*found
}

// attempt looks for the plans.
func (p *Planned) attempt(ctx context.Context, o Options) (*attempt, error) {
	s, err := newVariant(ctx, p.Graph, o, p.Targets)
	if err != nil {
		return nil, err
	}
	plans, err := s.find()
	if err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	return &attempt{p, s, plans}, nil
}

// wants is which graphs are worth a look beside the one of an attempt.
func (a *attempt) wants(o Options) wanted {
	switch {
	case !o.Policy.Searches() || a.vanilla() || o.Draft:
		return none
	case a.stalls(o):
		return next
	case o.NoFusion:
		return none // it is the last
	case a.rewritten == asFused:
		return quicker
	}
	return last
}

// orRivals is the fastest of an attempt and of what the planner's rivals come to with the
// graphs of others: with one that was refused, and with one that was not looked at, which are
// those that a rival has if it is refused the attempt's.
func (a *attempt) compareRivals(others []*attempt) (*attempt, error) {
	if !a.variant.options.Policy.Searches() || a.vanilla() {
		return a, nil
	}
	for _, x := range others {
		if x.variant.floor() > x.variant.options.DeviceBytes {
			continue
		}
		plans, err := x.variant.tuned(a.plans, false)
		if err != nil {
			return nil, err
		}
		if together(plans) < together(a.plans) {
			a = &attempt{x.Planned, x.variant, plans}
		}
	}
	return a, nil
}

// vanilla reports whether the plans are vanilla's.
func (a *attempt) vanilla() bool { return a.plans[0].options.Policy == Vanilla }

// least is what steps of all targets take at least: what no policy has on the host is
// executed on the device.
func (p *Planned) least(o Options) time.Duration {
	o.EnsureDefaults()
	m := Prices(o.Machine, o.Model, p.Graph, p.Targets...)
	var sum time.Duration
	for _, t := range p.Targets {
		for id, live := range p.Graph.Ancestors(t.roots()) {
			n := p.Graph.Node(graph.NodeID(id))
			if live && n.Executes() && n.Phase != graph.Update && n.Kind != graph.KindUpdate {
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
	for id, live := range p.Graph.Ancestors(Target{Fetches: fetches, Updates: updates}.roots()) {
		if live && p.Graph.Node(graph.NodeID(id)).Executes() {
			n++
		}
	}
	return n
}

// stalls reports whether steps take notably longer than they do at least: by a fiftieth, since
// what is saved is saved at every step, and a look at the graphs that are cut is taken once. Parts
// of operations need less, and what is updated on the host is there sooner.
func (a *attempt) stalls(o Options) bool {
	least := a.least(o)
	return together(a.plans) > least+least/50
}

// gentlest is the refusal that asks for less than the others: for more of the host only, if
// one of them does, since a larger budget of either memory is enough if one of the graphs
// does with it.
func gentlest(refused []*variant) error {
	var best *ErrOutOfMemory
	first := len(refused)
	for _, i := range byFloor(refused) {
		if best != nil && best.Space == space.Device && refused[i].floor() > best.Need {
			break // the others need more of the device
		}
		e, err := refused[i].shortage()
		if err != nil {
			return fmt.Errorf("planner: %w", err)
		}
		if best == nil || lesser(e, best) || !lesser(best, e) && i < first {
			best, first = e, i
		}
	}
	return refused[first].refuse(best)
}

// lesser reports whether a refusal asks for less than another.
func lesser(a, b *ErrOutOfMemory) bool {
	return rank(a) < rank(b) || rank(a) == rank(b) && a.Need < b.Need
}

// rank orders refusals by what must be raised: the disk's budget, the host's, the device's, the
// host's and the device's.
func rank(e *ErrOutOfMemory) int {
	switch {
	case e.Space == Disk:
		return 0
	case e.Remedy.Change == RaiseOther:
		return 3
	case e.Space == space.Host:
		return 1
	}
	return 2
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
	*budget(&o, of) = 0
	if of == Disk {
		o.DiskBytes = math.MaxInt64 // none is no disk
	}
	var all, refused []*variant
	err := p.from.variants(o, p.known(o), func(v *Planned) (wanted, error) {
		s, err := v.variant(ctx, o)
		all = append(all, s)
		return next, err
	}, nil)
	if err != nil {
		return 0, err
	}
	best := int64(math.MaxInt64)
	for _, i := range byFloor(all) {
		if of == space.Device && all[i].floor() > best {
			break // the others need more
		}
		l, err := all[i].below(of, best)
		if err != nil {
			return 0, err
		}
		if l == nil {
			refused = append(refused, all[i])
			continue
		}
		best = min(best, l.bytes)
	}
	if best == math.MaxInt64 {
		return 0, gentlest(refused)
	}
	return best, nil
}

// known is what has been planned, if that was by the same options but for the budgets.
func (p *Planned) known(o Options) *Planned {
	if p.rewritten == "" || p.Results == nil || p.by != o.unlimited() {
		return nil
	}
	return p
}

// search is a search for other plans, which decides nothing again that has been decided by
// the same options.
func (p *Planned) variant(ctx context.Context, o Options) (*variant, error) {
	s, err := p.withoutCandidates(ctx, o)
	if err != nil {
		return nil, err
	}
	return s.by(s.options)
}

// unladdered is search without ladders. What has been planned is not checked again.
func (p *Planned) withoutCandidates(ctx context.Context, o Options) (*variant, error) {
	if p.known(o) == nil {
		return checked(ctx, p.Graph, o, p.Targets)
	}
	s, err := valid(ctx, p.Graph, o, p.Targets)
	if err == nil {
		s.known = p.Results
	}
	return s, err
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
