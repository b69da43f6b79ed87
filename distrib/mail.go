package distrib

import (
	"errors"
	"fmt"
	"slices"
)

// mail is what a node and the others send each other, from when it is queued until it has landed
// and, of updates, is folded in there; and which of the others are lost.
type mail struct {
	m        *monitor
	cfg      *Config
	audit    *Audit
	all      []NodeID // nodes of the view, ascending
	links    map[NodeID]*link
	lost     map[NodeID]error
	gone     map[NodeID]bool // nodes whose workers have ended
	out      usage
	finished landings // of messages; has a lock of its own
}

// ship queues a parcel of updates.
func (ml *mail) ship(to NodeID, p *parcel) {
	for _, it := range p.items {
		p.bytes += int64(Bytes(it.U))
	}
	ml.out.queued += p.bytes
	ml.out.note()
	ml.post(to, p)
}

// relay queues a message of sums for some nodes.
func (ml *mail) relay(h header, body [][]byte, of *shared, to []NodeID) {
	ml.land() // whoever sends what comes now has had what was sent
	var there []NodeID
	for _, id := range to {
		if ml.links[id] != nil && ml.lost[id] == nil {
			there = append(there, id)
		}
	}
	if of.left = len(there); of.left == 0 {
		return
	}
	ml.audit.add(&ml.audit.Queued, of.bytes)
	if of.sum != nil {
		of.sum.flying += of.bytes
	}
	for _, id := range there {
		ml.post(id, &parcel{head: h, body: body, of: of})
	}
}

// post queues a parcel. Who is lost gets nothing, which is counted.
func (ml *mail) post(to NodeID, p *parcel) {
	k := ml.links[to]
	if k == nil || ml.lost[to] != nil {
		ml.drop(to, p)
		return
	}
	switch p.head.kind.class() {
	case Updates:
		k.updates = append(k.updates, p)
	case ValuesOf:
		k.values = append(k.values, p)
	default:
		k.control = append(k.control, p)
	}
	ml.m.nudge()
}

// drop counts what a lost node does not get.
func (ml *mail) drop(to NodeID, p *parcel) {
	ml.out.queued -= p.bytes
	p.done(ml.audit)
	for _, it := range p.items {
		it.unremember()
		it.p.ledger.drop(ml.cfg, it.U)
	}
	if k := ml.links[to]; k != nil && p.head.kind.class() == Updates {
		k.dropped++
	}
}

// land takes note of what the transport has done with.
func (ml *mail) land() {
	done := ml.finished.take()
	for _, d := range done {
		k := ml.links[d.to]
		if f, ok := d.p.paced.(Followed); ok {
			f.Acked(d.to)
		}
		d.p.done(ml.audit)
		if k == nil || d.epoch != ml.cfg.View.Epoch {
			continue
		}
		k.onWay[d.class]--
		if errors.Is(d.err, ErrStale) {
			ml.discarded(d.p)
		} else if d.err != nil {
			ml.lose(d.to, d.err)
		}
		if d.p.head.kind == kindUpdates && !d.p.keeps() {
			ml.forget(k, d.p)
		}
	}
	if len(done) > 0 {
		ml.m.signal()
	}
}

// discarded counts the updates of a parcel that has arrived without them.
func (ml *mail) discarded(p *parcel) {
	ml.audit.Stale++
	for _, it := range p.items {
		l := &it.p.ledger
		if ml.cfg.Audited {
			l.Sent -= mass(it.U)
		}
		l.drop(ml.cfg, it.U)
	}
}

// acked takes note that a node has folded messages of updates in: all up to one, and some
// after it.
func (ml *mail) acked(from NodeID, seq uint64, after []mark) {
	k := ml.links[from]
	k.begged = false
	k.acked = max(k.acked, seq)
	for _, m := range after {
		k.sent = slices.DeleteFunc(k.sent, func(p *parcel) bool {
			if p.head.seq != uint64(m.at) {
				return false
			}
			ml.free(k, p)
			return true
		})
	}
	for len(k.sent) > 0 && k.sent[0].head.seq <= seq {
		ml.free(k, k.sent[0])
		k.sent = k.sent[1:]
	}
}

// forget frees the memory of a parcel's updates.
func (ml *mail) forget(k *link, p *parcel) {
	i := slices.Index(k.sent, p)
	if i < 0 {
		return
	}
	k.sent = slices.Delete(k.sent, i, i+1)
	ml.free(k, p)
}

func (ml *mail) free(k *link, p *parcel) {
	k.unacked -= p.bytes
	ml.out.unacked -= p.bytes
	for _, it := range p.items {
		it.unremember()
	}
}

// lose takes a node for lost: nothing is sent to it, and who needs it gets an error.
func (ml *mail) lose(id NodeID, err error) {
	if ml.lost[id] != nil || ml.links[id] == nil {
		return
	}
	if err == nil {
		err = fmt.Errorf("the connection with node %d ended", id)
	}
	ml.lost[id] = err
	k := ml.links[id]
	for _, list := range [][]*parcel{k.updates, k.values} {
		for _, p := range list {
			ml.drop(id, p)
		}
	}
	k.updates, k.values = nil, nil // what is told of this node may still go
	ml.m.wake()
}

// lostError says which of some nodes are lost.
func (ml *mail) lostError(of []NodeID) error {
	var ids []NodeID
	var why error
	for _, id := range of {
		if err, ok := ml.lost[id]; ok {
			ids, why = insert(ids, id), err
		}
	}
	if ids == nil {
		return nil
	}
	return &LostError{Nodes: ids, Epoch: ml.cfg.View.Epoch, Err: why}
}

// unsent is the lost nodes that updates were meant for that they do not have.
func (ml *mail) unsent() []NodeID {
	var ids []NodeID
	for _, id := range ml.all {
		if k := ml.links[id]; ml.lost[id] != nil && (k.dropped > 0 || k.unacked > 0) {
			ids = insert(ids, id)
		}
	}
	return ids
}

// slow is the nodes that have not taken what was sent to them.
func (ml *mail) slow() []NodeID {
	var ids []NodeID
	for _, id := range ml.all {
		if k := ml.links[id]; k.unacked > 0 || len(k.updates) > 0 || k.onWay[Updates] > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}
