package daemon

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric"
)

func sleep(ctx context.Context, t time.Duration) {
	select {
	case <-time.After(t):
	case <-ctx.Done():
	}
}

// silence is how long nothing is heard of a scheduler until the first node that is there takes its
// place, and each one after that a beat later: so another one schedules within two seconds, before
// those who elect may know of its end.
const silence = time.Second

// rank is how many of some nodes that are there come before one.
func rank(self distrib.NodeID, nodes []distrib.NodeID, down map[distrib.NodeID]bool) (n int) {
	for _, x := range nodes {
		if x < self && !down[x] {
			n++
		}
	}
	return n
}

// scheduler schedules for all, while its node is elected.
type scheduler struct {
	d      *Daemon
	term   uint64
	hosts  map[distrib.NodeID]fabric.Host
	net    *fabric.Network
	at     time.Time // the network's time 0
	rates  map[[2]distrib.NodeID]float64
	owners map[shard]*owner
	groups uint64
}

// shard is what is scheduled together: the updates for a node by one plan.
type shard struct {
	node distrib.NodeID
	plan uint16
}

// owner is a node that updates are for.
type owner struct {
	shard
	version distrib.Version // messages of updates that it has folded in, for all that is known
	wait    []ready
	lack    []ready          // that its replicas lack, and that have not been told when to go there
	told    map[id]time.Time // that have, and until when that is believed
	out     map[id]time.Time // on their way, and until when that is believed
	free    time.Time        // when the last of them arrives, by the schedule
	timer   *time.Timer
}

func newScheduler(d *Daemon, term uint64) *scheduler {
	s := &scheduler{d: d, term: term, hosts: map[distrib.NodeID]fabric.Host{},
		net: fabric.Even(len(d.o.Nodes), d.o.Bps/8), at: time.Now(),
		rates: map[[2]distrib.NodeID]float64{}, owners: map[shard]*owner{}}
	for i, n := range d.o.Nodes {
		s.hosts[n] = fabric.Host(i)
	}
	return s
}

func (s *scheduler) end() {
	for _, o := range s.owners {
		if o.timer != nil {
			o.timer.Stop()
		}
	}
}

// lose forgets what a node had announced.
func (s *scheduler) lose(node distrib.NodeID) {
	for _, o := range s.owners {
		o.lack = slices.DeleteFunc(o.lack, func(r ready) bool { return r.ID.From == node })
		o.wait = slices.DeleteFunc(o.wait, func(r ready) bool { return r.ID.From == node })
	}
}

func (s *scheduler) owner(x id) *owner {
	at := shard{x.To, x.Plan}
	o := s.owners[at]
	if o == nil {
		o = &owner{shard: at, out: map[id]time.Time{}, told: map[id]time.Time{}}
		s.owners[at] = o
	}
	return o
}

// ready takes an announcement.
func (s *scheduler) ready(r ready, rates []rate) {
	for _, x := range rates {
		if x.Bps > 0 && !math.IsInf(x.Bps, 1) {
			s.measured([2]distrib.NodeID{r.ID.From, x.To}, x.Bps)
		}
	}
	if _, known := s.hosts[r.ID.From]; !known {
		return
	}
	if _, known := s.hosts[r.ID.To]; !known {
		return
	}
	o := s.owner(r.ID)
	if !slices.ContainsFunc(o.wait, func(w ready) bool { return w.ID == r.ID }) {
		o.wait = append(o.wait, r)
	}
	if at := s.soon(o); time.Until(at) > s.d.o.Patience/2 {
		s.send(r.ID.From, message(aSlot, nil, slot{ID: r.ID, Verdict: held}))
	}
}

// measured takes a measurement of a way. One that is less than the last counts little by little:
// others may have been on the way, too.
func (s *scheduler) measured(way [2]distrib.NodeID, bps float64) {
	if last := s.rates[way]; bps < last {
		bps = last - float64(0.2*(last-bps))
	}
	s.rates[way] = bps
}

// folded takes note of how far an owner is.
func (s *scheduler) folded(from distrib.NodeID, f fold) error {
	if f.ID.To != from {
		return fmt.Errorf("a report of %v", f.ID)
	}
	o := s.owner(f.ID)
	o.version = max(o.version, f.Version)
	delete(o.out, f.ID)
	s.lacks(o, f)
	s.soon(o)
	return nil
}

// soon schedules what waits for an owner: once what was scheduled before has arrived, but for a
// little. It returns when that is.
func (s *scheduler) soon(o *owner) (at time.Time) {
	if len(o.wait) == 0 {
		return at
	}
	if o.timer != nil {
		o.timer.Stop()
	}
	if len(o.out) > 0 {
		at = o.free.Add(-s.d.o.Batch)
	}
	o.timer = time.AfterFunc(time.Until(at), func() {
		s.d.mu.Lock()
		defer s.d.unlock()
		if s.d.election.own == s {
			s.schedule(o)
		}
	})
	return at
}

// schedule decides about all that waits for an owner.
func (s *scheduler) schedule(o *owner) {
	all := o.wait
	o.wait = nil
	if len(all) == 0 {
		return
	}
	now := time.Now()
	old := func(_ id, until time.Time) bool { return now.After(until) }
	maps.DeleteFunc(o.out, old) // it is lost, or nobody has told
	maps.DeleteFunc(o.told, old)
	if s.idle() { // what is reserved still was expected to take longer
		s.net = fabric.Even(len(s.d.o.Nodes), s.d.o.Bps/8)
	}
	s.net.Advance(now.Sub(s.at).Seconds())
	s.at = now
	s.rate()
	s.d.stats.Batches++
	plan, err := s.plan(o, s.batch(o, all))
	if err != nil {
		s.d.o.Log("fabric: " + err.Error())
		return // they will go without
	}
	s.tell(o, all, plan)
}

// idle reports whether nothing is on its way.
func (s *scheduler) idle() bool {
	for _, o := range s.owners {
		if len(o.out) > 0 {
			return false
		}
	}
	return true
}

// rate sets the rates of links: the highest that was measured over each lately.
func (s *scheduler) rate() {
	up, down := map[distrib.NodeID]float64{}, map[distrib.NodeID]float64{}
	for way, bps := range s.rates {
		up[way[0]], down[way[1]] = max(up[way[0]], bps), max(down[way[1]], bps)
	}
	or := func(bps float64) float64 {
		if bps == 0 {
			bps = s.d.o.Bps
		}
		return bps / 8
	}
	for n, h := range s.hosts {
		s.net.Rate(h, or(up[n]), or(down[n]))
	}
}

// batch is what waits for an owner, by number.
func (s *scheduler) batch(o *owner, all []ready) fabric.Batch {
	b := fabric.Batch{Servers: []fabric.Host{s.hosts[o.node]}, MaxDelay: -1,
		Version: int64(o.version) + int64(len(o.out))}
	adds, bounded := true, true
	for _, r := range all {
		adds, bounded = adds && r.Adds, bounded && r.Delay > 0
		b.MaxDelay = max(b.MaxDelay, int64(r.Delay))
	}
	if !bounded {
		b.MaxDelay = -1
	}
	for i, r := range all {
		v := int64(r.Version)
		if bounded {
			v -= b.MaxDelay - int64(r.Delay)
		}
		u := s.update(i, r)
		u.Version = v
		b.Updates = append(b.Updates, u)
	}
	if adds && len(all) > 1 {
		b.Aggregators = s.aggregators(o.node)
	}
	return b
}

// update is one as schedules know it.
func (s *scheduler) update(i int, r ready) fabric.Update {
	return fabric.Update{ID: fabric.ID(i), From: s.hosts[r.ID.From],
		Bytes: []float64{float64(r.Bytes)}, Norm: r.Norm}
}

// aggregators are those of an owner: the nodes behind it, in a ring.
func (s *scheduler) aggregators(node distrib.NodeID) [][]fabric.Host {
	var hosts []fabric.Host
	nodes := s.d.o.Nodes
	for i := 1; i < len(nodes) && len(hosts) < s.d.o.Aggregators; i++ {
		n := nodes[(int(s.hosts[node])+i)%len(nodes)]
		if !s.d.ring.down[n] {
			hosts = append(hosts, s.hosts[n])
		}
	}
	if hosts == nil {
		return nil
	}
	return [][]fabric.Host{hosts}
}

// duration is so many seconds, which may be more than there are.
func duration(seconds float64) time.Duration {
	return time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
}

// tell has everybody know what becomes of updates.
func (s *scheduler) tell(o *owner, all []ready, plan *fabric.Schedule) {
	version := int64(o.version) + int64(len(o.out))
	o.free = s.at.Add(duration(plan.End))
	until := o.free.Add(2 * s.d.o.Lost)
	for _, x := range plan.Dropped {
		r := all[x]
		v := slot{ID: r.ID, Verdict: dropped}
		if r.Delay == 0 { // its link is of no use, as far as is known
			v.Verdict = direct
		}
		s.send(r.ID.From, message(aSlot, nil, v))
	}
	first := s.firsts(all, plan.Transfers)
	for _, g := range plan.Groups {
		s.tellGroup(all, g, first, group{To: o.node, Dest: o.node, At: distrib.Version(version)})
		for _, x := range g.Updates {
			o.out[all[x].ID] = until
		}
		version += int64(len(g.Updates))
	}
	s.tellCopies(o, all, plan)
}

// firsts are the transfers by which updates leave their nodes.
func (s *scheduler) firsts(all []ready, ts []fabric.Transfer) map[fabric.ID]fabric.Transfer {
	first := map[fabric.ID]fabric.Transfer{}
	for _, t := range ts {
		if len(t.Updates) == 1 && t.From == s.hosts[all[t.Updates[0]].ID.From] {
			if _, ok := first[t.Updates[0]]; !ok {
				first[t.Updates[0]] = t
			}
		}
	}
	return first
}

// tellGroup has everybody know of updates that go together, to x.Dest.
func (s *scheduler) tellGroup(all []ready, g fabric.Group, first map[fabric.ID]fabric.Transfer,
	x group) {
	x.Ends = int64(duration(g.Arrives))
	v := slot{Verdict: direct, Ends: x.Ends}
	if x.Dest != x.To {
		v.Verdict, v.Via = copyDirect, x.Dest
	}
	if !g.Direct && len(g.Updates) > 1 {
		s.groups++
		x.Group, x.Members = s.term+s.groups, uint16(len(g.Updates))
		v.Verdict, v.Group = v.Verdict.summed(), x.Group
		v.Via = s.d.o.Nodes[first[g.Updates[0]].To]
		var members []id
		for _, u := range g.Updates {
			members = append(members, all[u].ID)
		}
		s.send(v.Via, message(aGroup, nil, x, members))
	}
	for _, u := range g.Updates {
		v.ID, v.Wait = all[u].ID, int64(duration(first[u].Start))
		s.send(v.ID.From, message(aSlot, nil, v))
	}
}

// send has a node told something, this one too.
func (s *scheduler) send(to distrib.NodeID, m *distrib.Msg) {
	if !s.d.ring.down[to] {
		s.d.Transport.Send(to, m)
	}
}
