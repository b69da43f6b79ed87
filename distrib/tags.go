package distrib

// tags follows which version of which rows a node's workers compute from: updates are
// tagged with it, and the owner is told when nobody here will use a version any more.
type tags struct {
	rule Snapshots
	read []map[rowOf]Version // by each worker
	here map[rowOf][]held    // versions that were received and not given back
	back map[NodeID][]Frame  // by owner: versions to give back, their numbers in Tag
}

// held is a version of a row, received so many times.
type held struct {
	version Version
	times   int
}

func newTags(rule Snapshots, workers int) *tags {
	t := &tags{rule: rule, here: map[rowOf][]held{}, back: map[NodeID][]Frame{}}
	for range workers {
		t.read = append(t.read, map[rowOf]Version{})
	}
	return t
}

// first is the version of a row without an update, which is what everybody begins with.
const first Version = 1

// of is the version of a row that a worker has read, or began with if it has never been sent.
func (t *tags) of(worker int, p *param, row int32) Version {
	return max(first, t.read[worker][rowOf{p.id, row}])
}

// came notes that a version of a row has been received.
func (t *tags) came(p *param, row int32, v Version) {
	at := rowOf{p.id, row}
	list := t.here[at]
	if k := len(list) - 1; k >= 0 && list[k].version == v {
		list[k].times++
	} else {
		t.here[at] = append(list, held{v, 1})
	}
	t.release(p, at)
}

// taken notes that a worker has read rows as they are now.
func (t *tags) taken(worker int, p *param, from, to int32) {
	for row := from; row < to; row++ {
		at := rowOf{p.id, row}
		if list := t.here[at]; len(list) > 0 {
			t.read[worker][at] = list[len(list)-1].version
			t.release(p, at)
		}
	}
}

// release gives back the versions that no worker has read last, but the newest.
func (t *tags) release(p *param, at rowOf) {
	list := t.here[at]
	keep := list[:0]
	for i, h := range list {
		if i == len(list)-1 || t.used(at, h.version) {
			keep = append(keep, h)
			continue
		}
		id := p.owner[at.row]
		for range h.times {
			t.back[id] = append(t.back[id], Frame{Ref: Ref{at.param, at.row, 1}, Tag: h.version})
		}
	}
	t.here[at] = keep
}

func (t *tags) used(at rowOf, v Version) bool {
	for _, r := range t.read {
		if got, ok := r[at]; ok && got == v {
			return true
		}
	}
	return false
}

// giveBack tells owners of versions that no worker here computes from any more, behind
// all updates that are tagged with them.
func (o *outbox) giveBack(id NodeID) {
	given := o.lane.tagged.back[id]
	if len(given) == 0 {
		return
	}
	pending := map[itemKey]bool{}
	for _, it := range o.box(id, 0).items {
		pending[itemKey{ref: it.Ref, tag: it.Tag}] = true
	}
	var now, later []Frame
	for _, f := range given {
		if pending[itemKey{ref: f.Ref, tag: f.Tag}] {
			later = append(later, f)
		} else {
			now = append(now, f)
		}
	}
	o.lane.tagged.back[id] = later
	if len(now) > 0 {
		o.lane.e.mail.post(id, &parcel{head: header{kind: kindGiven, lane: o.lane.index},
			body: [][]byte{appendGiven(nil, now)}})
	}
}

// forget gives back all versions that a node has which will not compute any more.
func (rs *readers) forget(id NodeID) {
	sub := rs.sub(id)
	if sub == nil || rs.server.lane.tagged == nil {
		return
	}
	for _, p := range rs.server.lane.params {
		for row := range int32(p.rows) {
			for _, v := range sub.given[rowOf{p.id, row}] {
				rs.server.lane.tagged.rule.Release(Ref{p.id, row, 1}, v)
			}
		}
	}
	clear(sub.given)
}
