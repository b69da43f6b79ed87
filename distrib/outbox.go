package distrib

import (
	"fmt"
	"slices"
)

// item is an entry of the outbox, from when it is pushed until it is folded in elsewhere.
type item struct {
	Entry
	p     *param
	id    uint64 // in the order of making
	owned bool   // the memory of U is the outbox's
	rest  bool   // a filter kept it back, and nothing has been added since
	gone  bool   // it has left with message seq
	seq   uint64
}

// itemKey is what must be equal for two entries of a box to become one.
type itemKey struct {
	ref  Ref
	tag  Version
	made Clock // where updates of different clocks are merged, the last one saved before it
}

// box is the pending entries for one destination. In a graph, paths says which nodes
// are behind it, and marks how far whose updates are in the box.
type box struct {
	lane  *lane
	dest  NodeID
	paths uint32
	items []*item // in the order of making
	by    map[itemKey]*item
	marks []mark // not announced yet, ascending by node
	told  Clock  // the clock that has been announced
	// announced is how far whose updates have been said to be, in a graph. Who waits for a clock
	// waits for the first that has not been, however far its mark has gone meanwhile.
	announced map[NodeID]Clock
	// wanted says that a box of a graph goes as soon as there is room on the way.
	wanted bool
}

// usage is how many bytes of updates an engine holds.
type usage struct {
	bound   int64
	pending int64 // in boxes
	queued  int64 // on their way out
	unacked int64 // sent, and not folded in where they went, for all that is known
	peak    int64
}

func (u *usage) total() int64 { return u.pending + u.queued + u.unacked }

func (u *usage) note() { u.peak = max(u.peak, u.total()) }

// outbox is what is pending by a plan.
type outbox struct {
	lane  *lane
	boxes []*box // by destination and what lies behind it
}

// box finds or makes the box of a destination.
func (o *outbox) box(dest NodeID, paths uint32) *box {
	i, ok := slices.BinarySearchFunc(o.boxes, nil, func(b *box, _ any) int {
		if b.dest != dest {
			return int(b.dest) - int(dest)
		}
		return int(b.paths) - int(paths)
	})
	if !ok {
		b := &box{lane: o.lane, dest: dest, paths: paths, by: map[itemKey]*item{},
			told: o.lane.e.workers.clock, announced: map[NodeID]Clock{}}
		o.boxes = slices.Insert(o.boxes, i, b)
	}
	return o.boxes[i]
}

// to are the boxes of a destination.
func (o *outbox) to(dest NodeID) []*box {
	at := func(dest NodeID) int {
		i, _ := slices.BinarySearchFunc(o.boxes, dest, func(b *box, id NodeID) int {
			return int(b.dest) - int(id)
		})
		return i
	}
	return o.boxes[at(dest):at(dest+1)]
}

// add merges an update into a box, and returns its item.
func (b *box) add(p *param, en Entry) *item {
	e := b.lane.e
	key := b.key(&en)
	it := b.by[key]
	if it == nil {
		e.order++
		it = &item{Entry: en, p: p, id: e.order}
		b.items, b.by[key] = append(b.items, it), it
		e.mail.out.pending += it.cost()
		it.remember()
	} else {
		before := it.cost()
		it.merge(en)
		e.mail.out.pending += it.cost() - before
	}
	e.mail.out.note()
	return it
}

func (it *item) merge(en Entry) {
	fresh := it.U
	if it.owned {
		it.U = AddOwned(fresh, en.U)
	} else {
		it.U, it.owned = Add(fresh, en.U), true
	}
	if it.rest {
		it.Made, it.rest = en.Made, false
	} else {
		it.Made = min(it.Made, en.Made)
	}
}

// take removes items from a box, which are no longer pending.
func (b *box) take(which func(*item) bool) []*item {
	var out []*item
	b.items = slices.DeleteFunc(b.items, func(it *item) bool {
		if !which(it) {
			return false
		}
		out = append(out, it)
		return true
	})
	for _, it := range out {
		b.forget(it)
		b.lane.e.mail.out.pending -= it.cost()
	}
	return out
}

func (b *box) forget(it *item) {
	delete(b.by, b.key(&it.Entry))
}

// key is what an entry shares with those that it is merged with.
func (b *box) key(en *Entry) itemKey {
	key := itemKey{en.Ref, en.Tag, en.Made}
	if b.lane.merges() {
		key.made = b.lane.e.eras.of(en.Made)
	}
	return key
}

// eras are the clocks at which rows are saved.
type eras struct {
	saves   func(Clock) bool // nil: at none
	at      []Clock          // up to scanned
	scanned Clock
}

// of is the last of them up to c, or -1: what is stamped less than it is not merged with what is
// not.
func (a *eras) of(c Clock) Clock {
	if a.saves == nil {
		return -1
	}
	for ; a.scanned <= c; a.scanned++ {
		if a.saves(a.scanned) {
			a.at = append(a.at, a.scanned)
		}
	}
	i, found := slices.BinarySearch(a.at, c)
	if found {
		return c
	}
	if i == 0 {
		return -1
	}
	return a.at[i-1]
}

// split lets the plan's filter say what of some items goes. What it keeps is pending
// again.
func (b *box) split(items []*item, now Clock, way Link) []*item {
	f := b.lane.plan.Up
	if f == nil {
		return items
	}
	var out []*item
	for _, it := range items {
		send, keep := f.Split(&it.Entry, now, way)
		b.lane.e.audit.Kept += int64(Bytes(keep))
		it.unremember()
		if keep != nil {
			b.keep(it, keep, now)
		}
		if send != nil {
			b.lane.e.order++
			part := &item{Entry: it.Entry, p: it.p, id: it.id}
			part.U = send
			part.remember()
			out = append(out, part)
		}
	}
	return out
}

// keep makes what a filter keeps of an item at a clock pending again. It is of that clock then:
// nobody waits for it any more, and what is kept back through many saves becomes one.
func (b *box) keep(of *item, u Update, now Clock) {
	en := Entry{Ref: of.Ref, Dest: of.Dest, Made: max(of.Made, now), Tag: of.Tag, U: u}
	if fresh := b.by[b.key(&en)]; fresh != nil && !fresh.rest {
		b.add(of.p, en) // of which somebody may wait for a part
		return
	}
	it := b.add(of.p, en)
	before := it.cost()
	it.rest = true
	b.lane.e.mail.out.pending += it.cost() - before
}

func (it *item) cost() int64 {
	if it.rest {
		return int64(Bytes(it.U))
	}
	return it.p.cost(it.U)
}

// oldest is the clock of the oldest update in a box that no filter has kept back.
func (b *box) oldest() Clock {
	least := endOfTime
	for _, it := range b.items {
		if !it.rest {
			least = min(least, it.Made)
		}
	}
	return least
}

// replay is own updates of a parameter that rows of their owner may lack, by the first
// row that they are about.
type replay struct {
	at     map[int32][]*item
	widest int32
	n      int
}

// remember notes an own update that is added to rows that come, until its owner has it.
func (it *item) remember() {
	if !it.p.lane.rmw || it.p.replica == nil {
		return
	}
	m := &it.p.mine
	if m.at == nil {
		m.at = map[int32][]*item{}
	}
	m.at[it.Ref.Row] = append(m.at[it.Ref.Row], it)
	m.widest = max(m.widest, it.Ref.N)
	m.n++
}

func (it *item) unremember() {
	m := &it.p.mine
	list, ok := m.at[it.Ref.Row]
	if !ok {
		return
	}
	before := len(list)
	list = slices.DeleteFunc(list, func(o *item) bool { return o == it })
	m.n -= before - len(list)
	if len(list) == 0 {
		delete(m.at, it.Ref.Row)
	} else {
		m.at[it.Ref.Row] = list
	}
}

// over returns the items about some of rows [row, row+n), in the order of making.
func (m *replay) over(row, n int32) []*item {
	if m.n == 0 {
		return nil
	}
	var out []*item
	from := max(row-m.widest+1, 0)
	if int(row+n-from) <= len(m.at) {
		for r := from; r < row+n; r++ {
			out = append(out, m.at[r]...)
		}
	} else {
		for _, list := range m.at {
			out = append(out, list...)
		}
	}
	out = slices.DeleteFunc(out, func(it *item) bool {
		return it.Ref.Row >= row+n || it.Ref.Row+it.Ref.N <= row
	})
	slices.SortFunc(out, func(a, b *item) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return out
}

// addTo adds the part of the update that is about rows [row, row+n) to dst.
func (it *item) addTo(dst []float32, row, n int32) {
	lo, hi := max(row, it.Ref.Row), min(row+n, it.Ref.Row+it.Ref.N)
	part := Slice(it.U, it.p.cols, int(lo-it.Ref.Row), int(hi-lo))
	if part != nil {
		part.AddTo(dst[int(lo-row)*it.p.cols:int(hi-row)*it.p.cols], it.p.cols, 1)
	}
}

// BoundError says that an update can never fit into the outbox.
type BoundError struct {
	Need, Bound int64 // bytes
	Param       string
}

// Error is one line.
func (e *BoundError) Error() string {
	return fmt.Sprintf("an update of %s needs %d bytes of an outbox of %d: Config.Outbox is too "+
		"small", e.Param, e.Need, e.Bound)
}

// mass is the sum of an update's elements, which no way of adding updates up changes but
// by rounding.
func mass(u Update) float64 {
	switch u := plain(u).(type) {
	case Dense:
		return total(u)
	case Sparse:
		return total(u.Val)
	case Factored:
		var sum float64
		for r := range u.R {
			sum += float64(total(u.a(r)) * total(u.b(r)))
		}
		return sum
	case Cell:
		sum, _ := u.Sums()
		return sum
	}
	return 0
}

func total(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v)
	}
	return sum
}

// copies is into how many boxes an update goes, at most.
func (o *outbox) copies() int {
	switch o.lane.mode {
	case graph:
		return len(o.lane.routes.own)
	case carry:
		return len(o.lane.e.members) - 1
	}
	return 1
}

// push puts an update where it must go.
func (o *outbox) push(w *worker, p *param, ref Ref, u Update) {
	e := o.lane.e
	p.ledger.push(&e.cfg, u, o.copies())
	switch o.lane.mode {
	case served, flow:
		for _, r := range p.runs(ref) {
			o.pushRows(w, p, ref, r, u)
		}
		if o.lane.rmw {
			e.workers.addToReplica(p, ref, u)
		}
		return
	case local:
		o.box(e.self, 0).add(p, Entry{Ref: ref, Dest: e.self, Made: w.clock, U: u})
		return
	case graph:
		for _, h := range o.lane.routes.own {
			o.box(h.to, h.paths).add(p, Entry{Ref: ref, Dest: h.to, Made: w.clock, U: u})
		}
	case carry:
		for _, id := range e.members {
			if id != e.self {
				o.box(id, 0).add(p, Entry{Ref: ref, Dest: id, Made: w.clock, U: u})
			}
		}
	}
	e.workers.fold(e.self, w.clock, p, ref, u)
}

// pushRows is for rows of one owner. Where rows go by priority, or by what they were
// computed from, each goes on its own.
func (o *outbox) pushRows(w *worker, p *param, ref Ref, r run, u Update) {
	step := r.n
	if o.lane.plan.Pacer != nil || o.lane.tagged != nil {
		step = 1
	}
	for row := r.row; row < r.row+r.n; row += step {
		part := u
		if step != ref.N {
			part = Slice(u, p.cols, int(row-ref.Row), int(step))
		}
		if part == nil {
			continue
		}
		en := Entry{Ref: Ref{p.id, row, step}, Dest: r.owner, Made: w.clock, U: part}
		if o.lane.tagged != nil {
			en.Tag = o.lane.tagged.of(w.index, p, row)
		}
		o.box(r.owner, 0).add(p, en)
	}
}
