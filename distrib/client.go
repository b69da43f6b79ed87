package distrib

import "fmt"

// client is the reader's side of a plan whose rows have owners: what of theirs is here, and how old
// it is.
type client struct {
	lane   *lane
	age    *vectorClock       // of owners: what their rows hold of everybody
	stage  map[NodeID][]Frame // of owners: sums of a clock that is not complete
	behind map[NodeID][]mark  // who is behind, by owner, as it said when it was asked
	base   Clock              // up to it, values that a node began with are enough
	told   map[NodeID]Version // of owners: how many messages of updates their rows hold
}

// from is what this node's workers compute an owner's updates from, at the oldest.
func (c *client) from(owner NodeID) Version {
	least := Version(endOfTime)
	for _, w := range c.lane.e.workers.list {
		if int(c.lane.index) < len(w.from) {
			least = min(least, w.from[c.lane.index][owner])
		} else {
			least = 0
		}
	}
	return least
}

// answered reports whether the owners of rows have sent them since they have folded in all that
// this node has pushed.
func (c *client) answered(p *param, ref Ref) bool {
	for i := ref.Row; i < ref.Row+ref.N; i++ {
		if i > ref.Row && p.owner[i] == p.owner[i-1] {
			continue
		}
		k := c.lane.e.mail.links[p.owner[i]]
		if len(k.updates) > 0 || k.acked < k.next[Updates] {
			return false
		}
	}
	return true
}

// takeSums hands a message on, and folds the sums of a clock in when all of them are
// there: so that what is read is never part of a clock.
func (c *client) takeSums(h header, frames []Frame, m *Msg) error {
	e := c.lane.e
	if h.root != e.self {
		of := &shared{}
		for _, b := range m.Body {
			of.bytes += int64(len(b))
		}
		e.mail.relay(h, m.Body, of, children(c.lane, h.root))
	}
	for _, f := range frames {
		if f.Ref.N == 0 || e.params[f.Ref.Param].lane != c.lane {
			return badFrame("sums of no rows, or of another plan")
		}
		e.audit.add(&e.audit.Staged, int64(Bytes(f.U)))
	}
	c.stage[h.root] = append(c.stage[h.root], frames...)
	if h.flags&endsClock == 0 {
		return nil
	}
	for _, f := range c.stage[h.root] {
		p := e.params[f.Ref.Param]
		e.audit.Staged -= int64(Bytes(f.U))
		if c.lane.plan.Rule == nil || p.kind != nil {
			p.replica.add(int(f.Ref.Row), int(f.Ref.N), f.U)
		} else {
			en := Entry{Ref: f.Ref, Dest: e.self, Made: h.clock - 1, Tag: f.Tag, U: f.U}
			c.lane.plan.Rule.Apply(p.rowsOf(f.Ref), p.cols, &en)
		}
		e.workers.touch(p, f.Ref)
	}
	delete(c.stage, h.root)
	news := h.clock > c.age.of(h.root)
	c.age.advance(h.root, h.clock)
	if h.root == e.self && news {
		c.lane.server.saveAt(h.clock)
	}
	return nil
}

// takeRows brings the replica up to what an owner has sent, and adds what of this node's
// own the owner has not folded in.
func (c *client) takeRows(from NodeID, h header, frames []Frame) error {
	for _, f := range frames {
		p := c.lane.e.params[f.Ref.Param]
		u := plain(f.U)
		_, ok := u.(Dense)
		if !ok && p.kind == nil || p.lane != c.lane || p.replica == nil || f.Ref.N == 0 {
			return fmt.Errorf("it has rows of parameter %d in a form that rows do not have",
				f.Ref.Param)
		}
		c.setRows(p, f, u, h.clock)
	}
	if h.flags&endsClock != 0 {
		c.age.advance(from, h.clock)
		c.told[from] = h.version
	}
	return nil
}

func (c *client) setRows(p *param, f Frame, u Update, at Clock) {
	p.replica.set(int(f.Ref.Row), int(f.Ref.N), u)
	for _, it := range p.mine.over(f.Ref.Row, f.Ref.N) {
		if p.kind != nil {
			p.replica.add(int(f.Ref.Row), 1, it.U)
		} else {
			it.addTo(p.rowsOf(f.Ref), f.Ref.Row, f.Ref.N)
		}
	}
	for i := f.Ref.Row; i < f.Ref.Row+f.Ref.N; i++ {
		if c.lane.tagged != nil {
			c.lane.tagged.came(p, i, f.Tag)
		}
		p.versions[i] = f.Tag
		if p.ages != nil {
			p.ages[i], p.reads[i] = max(p.ages[i], at), unasked
		} else if p.reads[i] != live {
			p.reads[i] = live
			p.lacking--
		}
	}
	c.lane.e.workers.touch(p, f.Ref)
}

// fresh reports whether rows may be read that hold what everybody wrote in clocks before
// need, and asks for those that are missing.
func (c *client) fresh(p *param, ref Ref, need Clock) bool {
	c.missing(p, []Ref{ref}, need)
	if p.ages == nil {
		late := c.lane.delay() > 0
		return need <= c.base && !late || c.standing(p, ref) && c.reached(p, ref, need) &&
			(!late || c.answered(p, ref))
	}
	for i := ref.Row; i < ref.Row+ref.N; i++ {
		if p.ages[i] < need {
			return false
		}
	}
	return true
}

// missing asks for those of some rows that are too old or have never come, and have not been asked
// for.
func (c *client) missing(p *param, refs []Ref, need Clock) {
	switch {
	case p.ages != nil:
		c.ask(p, refs, need, func(i int32) bool {
			return p.ages[i] < need && p.reads[i] == unasked
		})
	case p.lacking > 0:
		c.ask(p, refs, 0, func(i int32) bool { return p.reads[i] == unasked })
	}
}

// standing reports whether owners send rows whenever they change.
func (c *client) standing(p *param, ref Ref) bool {
	if p.lacking == 0 {
		return true
	}
	for _, s := range p.reads[ref.Row : ref.Row+ref.N] {
		if s != live {
			return false
		}
	}
	return true
}

// ask sends for some rows, each to its owner.
func (c *client) ask(p *param, refs []Ref, need Clock, which func(int32) bool) {
	wanted := map[NodeID][]Ref{}
	for _, ref := range refs {
		for i := ref.Row; i < ref.Row+ref.N; i++ {
			if !which(i) {
				continue
			}
			p.reads[i] = asked
			list := wanted[p.owner[i]]
			if k := len(list) - 1; k >= 0 && list[k].Row+list[k].N == i {
				list[k].N++
			} else {
				list = append(list, Ref{p.id, i, 1})
			}
			wanted[p.owner[i]] = list
		}
	}
	for _, id := range c.lane.owners {
		if refs := wanted[id]; refs != nil {
			h := header{kind: kindGet, lane: c.lane.index, clock: need}
			if p.ages == nil {
				h.flags = asksStanding
			}
			c.lane.e.mail.post(id, &parcel{head: h, body: [][]byte{appendRefs(nil, refs)}})
		}
	}
}

// reached reports whether the owners of rows have told of a clock.
func (c *client) reached(p *param, ref Ref, need Clock) bool {
	if c.age.min() >= need {
		return true
	}
	for _, id := range p.owner[ref.Row : ref.Row+ref.N] {
		if c.age.of(id) < need {
			return false
		}
	}
	return true
}

// awaited is the owners that keep rows from being read.
func (c *client) awaited(p *param, ref Ref, need Clock) []NodeID {
	var ids []NodeID
	for i := ref.Row; i < ref.Row+ref.N; i++ {
		if !contains(ids, p.owner[i]) && (p.ages != nil || c.age.of(p.owner[i]) < need ||
			p.reads != nil && p.reads[i] != live) {
			ids = insert(ids, p.owner[i])
		}
	}
	return ids
}

// probe asks the owners of rows who keeps them waiting.
func (c *client) probe(p *param, ref Ref, need Clock) {
	if c.lane.mode != served && c.lane.mode != flow {
		return
	}
	for _, id := range c.awaited(p, ref, need) {
		h := header{kind: kindWho, lane: c.lane.index, clock: need}
		c.lane.e.mail.post(id, &parcel{head: h})
	}
}

// blamed is who keeps rows from being read: workers that their owners have named, or else
// the owners.
func (c *client) blamed(p *param, ref Ref, need Clock) []NodeID {
	owners := c.awaited(p, ref, need)
	var ids []NodeID
	for _, id := range owners {
		for _, m := range c.behind[id] {
			if m.at < need {
				ids = insert(ids, m.of)
			}
		}
	}
	if ids == nil {
		return owners
	}
	return ids
}
