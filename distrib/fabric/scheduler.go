package fabric

import "slices"

// Config is what a scheduler knows of a job.
type Config struct {
	Servers     []Host
	Aggregators [][]Host // of each server, in the order of their groups; empty: none
	MaxDelay    int64    // as Batch.MaxDelay
	Replicas    []Host   // of the servers; empty: none
	// ReplicaAggregators are those of each replica.
	ReplicaAggregators [][]Host
	Bound              Bound
	Lacking            []Update // that replicas lack from before, in order
}

// Scheduler schedules the batches of a job, one after the other.
type Scheduler struct {
	c       Config
	version int64
	lack    lagging
}

// NewScheduler is one for a job whose model has a version.
func NewScheduler(c Config, version int64) *Scheduler {
	return &Scheduler{c: c, version: version, lack: lagging{updates: slices.Clone(c.Lacking)}}
}

// Version is the model's after all batches.
func (s *Scheduler) Version() int64 { return s.version }

// Schedule schedules updates that are ready, on a network from which it takes what it reserves.
// With more, the iteration of synchronous workers goes on after them, and the bound for replicas
// need not hold before its end (section 6).
func (s *Scheduler) Schedule(updates []Update, n *Network, more bool) (*Schedule, error) {
	b := Batch{Updates: updates, Servers: s.c.Servers, Aggregators: s.c.Aggregators,
		Version: s.version, MaxDelay: s.c.MaxDelay}
	if err := b.check(n.Hosts()); err != nil {
		return nil, err
	}
	kept, dropped := order(&b, n.Clone())
	g := &grouping{b: &b, order: kept}
	c := g.improve(n, g.cut(n))
	count := c.direct + len(c.groups)
	plan := &Schedule{Order: g.ids(g.order), Dropped: g.ids(dropped)}
	s.version += int64(len(kept))
	if len(s.c.Replicas) == 0 {
		plan.End = g.lay(n, c, count, &teller{plan})
		return plan, nil
	}
	r, err := s.replication(g, n)
	if err != nil {
		return nil, err
	}
	m := n.mark()
	end := g.lay(n, c, count, nil)
	r.cut = r.g.cut(n)
	groups, wait := r.replicated(n, end, !more)
	n.back(m)
	if wait == 0 || count == 0 {
		g.lay(n, c, count, &teller{plan})
		plan.Replica = r.freeze(n, groups)
	} else { // the replicas' transfers go before the servers' last
		g.lay(n, c, count-1, &teller{plan})
		rest := g.hold(n, c, &teller{plan})
		plan.Replica = r.freeze(n, groups)
		for _, x := range plan.Replica.Groups { // more room may make some of them later
			wait = max(wait, x.Arrives)
		}
		rest(wait)
	}
	for _, x := range plan.Groups {
		plan.End = max(plan.End, x.Arrives)
	}
	plan.Replica.Delay = plan.End - end
	return plan, nil
}

// replication is that of what the replicas lack, with what the servers get now.
func (s *Scheduler) replication(g *grouping, n *Network) (*replication, error) {
	for _, i := range g.order {
		s.lack.updates = append(s.lack.updates, g.b.Updates[i])
	}
	b := &Batch{Updates: s.lack.updates, Servers: s.c.Replicas, Aggregators: s.c.ReplicaAggregators,
		MaxDelay: -1}
	if err := b.check(n.Hosts()); err != nil {
		return nil, err
	}
	all := make([]int, len(b.Updates))
	for i := range all {
		all[i] = i
	}
	return &replication{g: &grouping{b: b, order: all}, bound: s.c.Bound, lack: &s.lack}, nil
}

// freeze reserves the first groups' ways, and counts them as arrived.
func (r *replication) freeze(n *Network, groups int) *Replication {
	s := &Schedule{}
	r.g.lay(n, r.cut, groups, &teller{s})
	out := &Replication{Groups: s.Groups, Transfers: s.Transfers}
	for _, x := range s.Groups {
		out.Updates = append(out.Updates, x.Updates...)
	}
	r.lack.took(len(out.Updates), r.bound)
	out.Punted = len(r.lack.updates)
	out.Distance = r.bound.Distance(r.lack.step, r.lack.norms(0))
	return out
}

// New is one batch's schedule, for servers without replicas. What it reserves is taken off the
// network.
func New(b Batch, n *Network) (*Schedule, error) {
	s := NewScheduler(Config{Servers: b.Servers, Aggregators: b.Aggregators, MaxDelay: b.MaxDelay},
		b.Version)
	return s.Schedule(b.Updates, n, false)
}
