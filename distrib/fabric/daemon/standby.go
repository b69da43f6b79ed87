package daemon

import (
	"slices"
	"time"

	"github.com/gomem/gomem/distrib/fabric"
)

// plan schedules a batch, and with it what the owner's replicas lack, on what that has left of the
// links. The updates that they lack have the numbers after those of the batch.
func (s *scheduler) plan(o *owner, b fabric.Batch) (*fabric.Schedule, error) {
	c := fabric.Config{Servers: b.Servers, Aggregators: b.Aggregators, MaxDelay: b.MaxDelay}
	if to := s.d.ring.replicas(o.node); len(to) > 0 {
		c.Replicas, c.Bound = []fabric.Host{s.hosts[to[0]]}, s.d.o.Bound
		c.ReplicaAggregators = s.aggregators(to[0])
		for i, r := range o.lack {
			c.Lacking = append(c.Lacking, s.update(len(b.Updates)+i, r))
		}
	}
	return fabric.NewScheduler(c, b.Version).Schedule(b.Updates, s.net, false)
}

// tellCopies has everybody know which updates go to the first replica, and which of those that it
// lacks are left for the next batch.
func (s *scheduler) tellCopies(o *owner, batch []ready, plan *fabric.Schedule) {
	if plan.Replica == nil {
		return
	}
	to := s.d.ring.replicas(o.node)[0]
	all := slices.Concat(batch, o.lack)
	first := s.firsts(all, plan.Replica.Transfers)
	end := plan.End
	for _, t := range plan.Replica.Transfers {
		end = max(end, t.End)
	}
	until := s.at.Add(duration(end) + 2*s.d.o.Lost)
	for _, g := range plan.Replica.Groups {
		s.tellGroup(all, g, first, group{To: o.node, Dest: to})
		for _, x := range g.Updates {
			o.told[all[x].ID] = until
		}
	}
	o.lack = slices.DeleteFunc(o.lack, func(r ready) bool { return !o.told[r.ID].IsZero() })
	for _, x := range plan.Order {
		if r := batch[x]; o.told[r.ID].IsZero() {
			o.lack = append(o.lack, r)
		}
	}
}

// lacks notes that replicas lack what an owner has folded in, if it was not to be known before.
func (s *scheduler) lacks(o *owner, f fold) {
	_, told := o.told[f.ID]
	if delete(o.told, f.ID); told || len(s.d.ring.replicas(o.node)) == 0 {
		return
	}
	if _, known := s.hosts[f.ID.From]; !known {
		return
	}
	if !slices.ContainsFunc(o.lack, func(r ready) bool { return r.ID == f.ID }) {
		o.lack = append(o.lack, ready{ID: f.ID, Bytes: f.Bytes, Norm: f.Norm, Adds: true})
	}
}

// kept notes that replicas have an update.
func (s *scheduler) kept(x id) {
	o := s.owner(x)
	o.lack = slices.DeleteFunc(o.lack, func(r ready) bool { return r.ID == x })
	o.told[x] = time.Now().Add(2 * s.d.o.Lost) // its owner's report may come later
}
