package distrib

import (
	"errors"
	"fmt"
	"slices"
)

// mode is how a plan moves updates.
type mode uint8

const (
	served mode = iota // owners fold in, and send rows
	flow               // owners add up, and send sums
	graph              // every node holds a replica; updates go along the same ways always
	carry              // the same, along ways that are drawn
	local              // nothing moves but at barriers
)

// lane is what shares one plan: its parameters, and how far everybody is with them.
type lane struct {
	e      *Engine
	index  uint16
	plan   Plan
	cons   Consistency
	mode   mode
	params []*param
	owners []NodeID // of its rows, ascending

	outbox outbox
	seen   *vectorClock // of workers: what the replica holds of them
	client client       // of the owners of rows, if these have some
	server *server      // if this node owns rows
	routes *routes
	rmw    bool  // a node reads its own updates before the owner has them
	tagged *tags // if updates are tagged with what they were computed from
	lossy  bool  // who is not drawn never gets the updates of a clock
}

// newLane prepares what the parameters of a plan have in common.
func newLane(e *Engine, index int, plan Plan) (*lane, error) {
	l := &lane{e: e, index: uint16(index), plan: plan, cons: plan.Consistency}
	l.outbox.lane = l
	l.client = client{lane: l, stage: map[NodeID][]Frame{}, behind: map[NodeID][]mark{}}
	if l.cons == nil {
		l.cons = BSP{}
	}
	l.chooseMode()
	if _, rounds := plan.DownF.(Rounding); plan.DownF != nil && !rounds && l.mode == served {
		return nil, errors.New("distrib: a filter on the way down that keeps parts back needs a " +
			"plan that sends sums, Down: Deltas; rows can only be rounded")
	}
	if _, never := l.cons.(Async); never && e.cfg.Ordered {
		return nil, errors.New("distrib: updates cannot be folded in by clock (Ordered) where " +
			"nobody waits for clocks (Async)")
	}
	if e.cfg.Saves != nil {
		if err := plan.Saved(); err != nil {
			return nil, fmt.Errorf("distrib: no checkpoints of a clock: %w", err)
		}
	}
	if l.lossy = loses(plan.Topology); l.lossy && len(plan.Every) == 0 {
		return nil, errors.New("distrib: replicas that never get some updates drift apart for " +
			"good: a plan that loses some needs an Average in Every")
	}
	l.rmw = l.mode == served && additive(plan.Rule)
	return l, nil
}

func (l *lane) chooseMode() {
	_, owned := l.plan.Topology.Owner(Ref{N: 1})
	switch {
	case owned && l.plan.Down == Deltas:
		l.mode = flow
	case owned:
		l.mode = served
	case draws(l.plan.Topology):
		l.mode = carry
	case isLocal(l.plan.Topology):
		l.mode = local
	default:
		l.mode = graph
	}
}

func isLocal(t Topology) bool {
	_, ok := t.(*Local)
	return ok
}

// draws reports whether a topology's destinations are drawn anew at each clock.
func draws(t Topology) bool {
	d, ok := t.(interface{ Drawn() bool })
	return ok && d.Drawn()
}

// loses reports whether a topology's updates never reach those who are not drawn.
func loses(t Topology) bool {
	d, ok := t.(interface{ Loses() bool })
	return ok && d.Loses()
}

// additive reports whether a rule does nothing but add, so that a node may add its own
// updates to what it reads before the owner has.
func additive(r Rule) bool {
	if r == nil {
		return true
	}
	a, ok := r.(*Additive)
	return ok && a.Decay == 0
}

// place says who owns the rows of a parameter, and lays out those of this node: as a parameter has
// them, if it is given.
func (l *lane) place(p *param, first *Param) error {
	p.slot = make([]int32, p.rows)
	p.owner = make([]NodeID, p.rows)
	slots := int32(0)
	for i := range p.owner {
		id, ok := l.plan.Topology.Owner(Ref{p.id, int32(i), 1})
		if !ok || !l.e.cfg.View.has(id) {
			return fmt.Errorf("distrib: row %d of %s has no owner in epoch %d", i, p.name,
				l.e.cfg.View.Epoch)
		}
		p.owner[i], p.slot[i] = id, -1
		if at, found := slices.BinarySearch(l.owners, id); !found {
			l.owners = slices.Insert(l.owners, at, id)
		}
		if id == l.e.self {
			p.slot[i] = slots
			slots++
		}
	}
	p.folded = make([]Version, slots)
	if l.mode == flow {
		return nil
	}
	p.master = p.newStore(int(slots))
	for i, s := range p.slot {
		if s >= 0 && first != nil {
			p.master.begin(int(s), first, i, 1)
		}
	}
	if first != nil {
		return p.keepRows(first)
	}
	return nil
}

// start makes the clocks of a lane, at a clock that all members are in or past.
func (l *lane) start(at Clock) error {
	var err error
	l.client.told = map[NodeID]Version{}
	for _, w := range l.e.workers.list {
		w.from = nil // what owners have counted, they count anew
	}
	switch l.mode {
	case served, flow:
		l.client.age = newVectorClock(l.owners, at)
		if contains(l.owners, l.e.self) {
			l.server = newServer(l, at)
		}
		if s, ok := l.plan.Rule.(Snapshots); ok && l.mode == served {
			l.tagged = newTags(s, len(l.e.workers.list))
		}
	default:
		l.seen = newVectorClock(l.e.members, at)
		if l.mode == graph {
			l.routes, err = newRoutes(l.plan.Topology, l.e.members, l.e.self)
		}
	}
	return err
}

// rebind makes a plan's state anew for a view.
func (l *lane) rebind(v View, base Clock) error {
	e := l.e
	if err := l.plan.Bind(v, e.declared()); err != nil {
		return err
	}
	if l.server != nil {
		for _, sub := range l.server.readers.subs {
			l.server.readers.forget(sub.node)
		}
	}
	l.outbox.boxes, l.owners, l.client.stage, l.server = nil, nil, map[NodeID][]Frame{}, nil
	for _, p := range l.params {
		p.mine = replay{}
		if l.mode != served && l.mode != flow {
			continue
		}
		if err := l.place(p, nil); err != nil {
			return err
		}
		if p.reads != nil {
			clear(p.reads)
			p.lacking = p.rows
		}
		for i := range p.ages {
			p.ages[i] = -1
		}
	}
	l.client.base = -1
	return l.start(base)
}

// begin sets the clocks of all members.
func (l *lane) begin(marks []mark) {
	for _, k := range marks {
		if l.server != nil {
			l.server.clocks.advance(k.of, k.at)
			if k.at < endOfTime {
				l.server.saved = max(l.server.saved, k.at)
			}
		}
		if l.seen != nil {
			l.seen.advance(k.of, k.at)
		}
	}
	if l.server != nil && l.server.sums != nil {
		l.server.sums.done = -1
	}
}

// admits reports why a plan cannot have rows of a kind.
func (l *lane) admits(p *Param) error {
	if p.Kind == nil {
		return nil
	}
	err := l.plan.Admits(p.Kind)
	if err == nil && l.e.cfg.Journal != nil {
		err = errors.New("a journal is of dense numbers")
	}
	if err != nil {
		return fmt.Errorf("distrib: parameter %s: %w", p.Name, err)
	}
	return nil
}

// adds reports whether it makes no difference but by rounding that updates are added up before
// they are folded in. Where the bits are promised, they are folded in one by one, and so are those
// of rows that have a kind of their own.
func (l *lane) adds() bool {
	if slices.ContainsFunc(l.params, func(p *param) bool { return p.kind != nil }) {
		return false
	}
	return !l.e.cfg.heldBack() && (l.mode == flow || additive(l.plan.Rule) || l.weighs() != nil)
}

// weighs is the rule of a plan if updates are weighed before they are added up.
func (l *lane) weighs() Weighing {
	if w, ok := l.plan.Rule.(Weighing); ok && l.mode == served {
		return w
	}
	return nil
}

// delay is the bound of a plan's delays, 0 if there is none.
func (l *lane) delay() Version {
	a, _ := l.cons.(Async)
	return a.Delay
}

// merges reports whether entries of different clocks become one: not where each tick
// sends all of them, so that what is stamped less than a clock can be told from the rest.
func (l *lane) merges() bool {
	return l.plan.Up != nil || lazy(l.cons) || l.mode >= graph
}
