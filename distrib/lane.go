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

	boxes  []*box       // pending updates, by destination and what lies behind it
	age    *vectorClock // of owners: what their rows hold of everybody
	seen   *vectorClock // of workers: what the replica holds of them
	server *server      // if this node owns rows
	routes *routes
	stage  map[NodeID][]Frame // of owners: sums of a clock that is not complete
	behind map[NodeID][]mark  // who is behind, by owner, as it said when it was asked
	base   Clock              // up to it, values that a node began with are enough
	rmw    bool               // a node reads its own updates before the owner has them
	tagged *tags              // if updates are tagged with what they were computed from
	lossy  bool               // who is not drawn never gets the updates of a clock
	told   map[NodeID]Version // of owners: how many messages of updates their rows hold
}

// param is a parameter on this node.
type param struct {
	id         ParamID
	name       string
	rows, cols int
	kind       Kind // nil: dense numbers
	lane       *lane

	replica  store     // what workers of this node read; nil if there are none
	versions []Version // of its rows
	reads    []read    // of its rows: whether their owner sends them
	lacking  int       // rows that no owner sends yet
	ages     []Clock   // of its rows, where they are asked for each time
	mine     replay    // own updates that rows of an owner may lack

	owner  []NodeID  // of its rows
	slot   []int32   // of its rows in master; -1: another's
	master store     // the rows that this node owns, one after the other; nil where it adds sums up
	folded []Version // how many updates are in them

	kept map[NodeID]*standby // replicas of other nodes' rows

	ledger Ledger
}

// read is the state of a row of an owner at who reads it.
type read uint8

const (
	unasked read = iota
	asked
	live
)

// run is rows of one owner, one after the other.
type run struct {
	owner  NodeID
	row, n int32
}

// runs cuts rows of a parameter by owner.
func (p *param) runs(r Ref) []run {
	var out []run
	for i := r.Row; i < r.Row+r.N; i++ {
		if k := len(out) - 1; k >= 0 && out[k].owner == p.owner[i] {
			out[k].n++
			continue
		}
		out = append(out, run{p.owner[i], i, 1})
	}
	return out
}

// rowsOf is the elements of rows of the replica.
func (p *param) rowsOf(r Ref) []float32 {
	return p.replica.numbers(int(r.Row), int(r.N))
}

// owned is the elements of rows that lie together in the master copy.
func (p *param) owned(row, n int32) []float32 {
	return p.master.numbers(int(p.slot[row]), int(n))
}

// whole is the reference to all rows.
func (p *param) whole() Ref { return Ref{p.id, 0, int32(p.rows)} }

// newLane prepares what the parameters of a plan have in common.
func newLane(e *Engine, index int, plan Plan) (*lane, error) {
	l := &lane{e: e, index: uint16(index), plan: plan, cons: plan.Consistency,
		stage: map[NodeID][]Frame{}, behind: map[NodeID][]mark{}}
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
		return l.keepRows(p, first)
	}
	return nil
}
