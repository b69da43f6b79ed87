package distrib

// Memory is bytes by what they are for.
type Memory struct {
	Replica int64 // what workers read, and its rows' clocks and owners
	Rows    int64 // what this node owns or keeps, sums of it, and what its rule keeps
	Outbox  int64 // updates that are pending or not acknowledged
	Held    int64 // updates that must not be folded in yet
	Staged  int64 // sums of a clock that is not complete
	Queued  int64 // rows and sums on their way out
	Filters int64 // what filters keep beside what they hold back
}

// Total is all of it.
func (m Memory) Total() int64 {
	return m.Replica + m.Rows + m.Outbox + m.Held + m.Staged + m.Queued + m.Filters
}

// add changes a count of bytes and keeps its peak.
func (a *Audit) add(count *int64, n int64) {
	*count += n
	a.peak.Held = max(a.peak.Held, a.Held)
	a.peak.Staged = max(a.peak.Staged, a.Staged)
	a.peak.Queued = max(a.peak.Queued, a.Queued)
}

// Memory is what the node holds now, and at most has held, each kind on its own.
func (e *Engine) Memory() (now, peak Memory) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.params {
		now.Replica += 8*int64(len(p.versions)+len(p.ages)) + int64(len(p.reads)) +
			4*int64(len(p.owner)+len(p.slot))
		now.Rows += 8*int64(len(p.folded)) + p.keptBytes()
	}
	for _, w := range e.workers.list {
		for _, s := range w.stale {
			now.Replica += s.bytes()
		}
	}
	for _, l := range e.lanes {
		if l.server != nil {
			now.Rows += l.server.bytes()
		}
	}
	peak = now
	for _, p := range e.params {
		now.Replica, peak.Replica = sized(p.replica, now.Replica, peak.Replica)
		now.Rows, peak.Rows = sized(p.master, now.Rows, peak.Rows)
	}
	for _, l := range e.lanes {
		if l.server != nil {
			for _, s := range l.server.stores() {
				now.Rows, peak.Rows = sized(s, now.Rows, peak.Rows)
			}
		}
	}
	rows, replica := peak.Rows, peak.Replica
	now.Outbox, now.Held = e.mail.out.total(), e.audit.Held
	now.Staged, now.Queued = e.audit.Staged, e.audit.Queued
	now.Filters, _ = e.filtersKeep()
	peak = e.audit.peak
	peak.Replica, peak.Rows, peak.Outbox = replica, rows, e.mail.out.peak
	peak.Filters = now.Filters
	return now, peak
}

// filtersKeep is what the filters of all plans keep, and the most that it may be.
func (t *tables) filtersKeep() (now, most int64) {
	seen := map[Keeping]bool{}
	add := func(f Filter) {
		k, ok := f.(Keeping)
		if !ok || seen[k] {
			return
		}
		seen[k] = true
		n, m := k.Kept()
		now, most = now+n, most+m
	}
	for _, l := range t.lanes {
		for _, f := range []Filter{l.plan.Up, l.plan.DownF} {
			if chain, ok := f.(Chain); ok {
				for _, part := range chain {
					add(part)
				}
			} else {
				add(f)
			}
		}
	}
	return now, most
}

// bytes is what a server keeps beside its rows.
func (s *server) bytes() int64 {
	var n int64
	for _, sub := range s.readers.subs {
		for i := range sub.wants {
			n += sub.wants[i].bytes() + sub.dirty[i].bytes()
		}
	}
	if s.sums != nil {
		for _, t := range s.sums.touched {
			n += t.bytes()
		}
	}
	return n + ruleBytes(s.lane)
}

// stores are the rows that a server has beside those that it owns.
func (s *server) stores() []store {
	if s.sums != nil {
		return s.sums.acc
	}
	return s.readers.news
}

// sized adds what rows take, and at most have taken.
func sized(s store, now, peak int64) (int64, int64) {
	if s == nil {
		return now, peak
	}
	n, p, _ := s.size()
	return now + n, peak + p
}

// slack is how much more the rows of a kind may come to than they take now.
func (t *tables) slack() (replica, rows int64) {
	left := func(s store) int64 {
		if s == nil {
			return 0
		}
		now, _, most := s.size()
		return most - now
	}
	for _, p := range t.params {
		replica, rows = replica+left(p.replica), rows+left(p.master)
	}
	for _, l := range t.lanes {
		if l.server != nil {
			for _, s := range l.server.stores() {
				rows += left(s)
			}
		}
	}
	return replica, rows
}

// ruleBytes is the most that a rule keeps of rows of this node.
func ruleBytes(l *lane) int64 {
	rule, ok := l.plan.Rule.(Stateful)
	if !ok {
		return 0
	}
	var ps []*Param
	for _, p := range l.params {
		rows := len(p.folded)
		if l.mode == flow {
			rows = p.rows
		}
		if rows > 0 {
			ps = append(ps, &Param{Name: p.name, Rows: rows, Cols: p.cols})
		}
	}
	if ps == nil {
		return 0
	}
	return rule.StateBytes(ps)
}

// staleness is how many clocks of updates may be on their way, beside the one that is
// being worked on.
func staleness(c Consistency) int64 {
	if s, ok := c.(SSP); ok {
		return int64(s.S) + 1
	}
	return 1
}

// chooseOutbox sets the bound of the outbox: as configured, or room for dense updates of
// all parameters of every clock that may be on its way, and for one more.
func (e *Engine) chooseOutbox() {
	out := &e.mail.out
	if out.bound = e.cfg.Outbox; out.bound != 0 {
		return
	}
	for _, p := range e.params {
		dense := p.rowMost() * int64(p.rows)
		clocks := staleness(p.lane.cons) + 1
		if p.lane.plan.Up != nil {
			clocks = 2*clocks + 1
		}
		workers := int64(max(len(e.workers.list), 1))
		out.bound += dense * clocks * int64(p.lane.outbox.copies()) * workers
	}
}

// Bound is more than what the node will ever hold, by what it is for. It is known as soon
// as parameters are attached, from the plan alone: sums and rows are counted as dense, and those of
// a kind as its Most.
func (e *Engine) Bound() Memory {
	now, _ := e.Memory()
	e.mu.Lock()
	defer e.mu.Unlock()
	replica, rows := e.slack()
	b := Memory{Replica: now.Replica + replica, Rows: now.Rows + rows, Outbox: e.mail.out.bound}
	_, b.Filters = e.filtersKeep()
	var dense, owned, ahead int64
	for _, p := range e.params {
		dense += p.rowMost() * int64(p.rows)
		owned += p.rowMost() * int64(len(p.folded))
		ahead = max(ahead, staleness(p.lane.cons)+1)
	}
	if e.cfg.Ordered || e.cfg.Saves != nil {
		b.Held = owned * ahead * int64(len(e.members))
	}
	for _, l := range e.lanes {
		if l.mode == graph {
			b.Outbox += 3 * dense * int64(l.routes.boxes()) * e.eraBound(l)
		}
		if l.mode == flow {
			b.Staged = ahead * dense
			b.Queued += e.sumsBound(l)
		}
	}
	return b
}

// sumsBound is how much of sums may wait to leave this node, its own and those that it hands on,
// each once, however many nodes get it. Who lacks an owner's sum holds all others back, so that
// there are as many sums of one as clocks that nodes may be apart. Where nobody waits for
// anybody, only full windows hold an owner back.
func (e *Engine) sumsBound(l *lane) (bytes int64) {
	for _, root := range l.owners {
		if len(children(l, root)) > 0 {
			bytes += sumsOf(l, root)
		}
	}
	if !inStep(l.cons) {
		return 4 * bytes * int64(len(e.mail.all))
	}
	return staleness(l.cons) * bytes
}

// inStep reports whether nodes wait for each other.
func inStep(c Consistency) bool {
	switch c.(type) {
	case BSP, SSP:
		return true
	}
	return false
}

// eraBound is how many times a box of a graph may hold a row at once: once for each save between
// the clocks that may be in it. Nodes are at most the staleness apart, and what nobody waits for
// stays as long again.
func (e *Engine) eraBound(l *lane) int64 {
	if e.cfg.Saves == nil {
		return 1
	}
	return 2 * staleness(l.cons)
}

// Bound is what [Engine.Bound] will say of a node with such parameters, before there is
// one. It lays the node out as the node itself does, and lets go of it. The errors are
// those of [New] and of attaching.
func Bound(c Config, ps ...*Param) (Memory, error) {
	e, err := New(c)
	if err == nil {
		err = checkParams(ps)
	}
	if err == nil {
		err = e.layOut(ps)
	}
	if err != nil {
		return Memory{}, err
	}
	e.chooseOutbox()
	for _, w := range e.workers.list {
		w.allStale()
	}
	return e.Bound(), nil
}
