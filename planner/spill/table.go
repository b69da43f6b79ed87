package spill

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// use is an event that touches bytes from lo to hi of a value on the host.
type use struct {
	at     int32
	fills  bool // it writes the value without reading it
	writes bool // it writes the value
	cut    bool // the bytes are on the disk between this use and the value's next
	lo, hi int64
}

// object is a stay on the host that the disk can take over at times.
type object struct {
	stay program.StayID
	leaf bool  // a variable or constant that is bound on the disk
	uses []use // in order
	end  int32 // the last event at which the bytes are there after the last use
}

// visit is uses of an object in a row, between which its bytes are on the host.
type visit struct {
	object      int32
	first, last int32 // uses
	loads       bool  // it begins with a copy from the disk
	stores      bool  // a copy to the disk follows the last use
	from, to    int32 // events at which the bytes are there, copies aside
}

// table is what a schedule does on the host.
type table struct {
	graph   *graph.Graph
	s       *program.Schedule
	objects []object
	of      []int32 // by stay: its object, or -1
	last    []int32 // by stay: the last event at which its bytes are taken
	load    *load   // of the host
	visits  []visit // by object, in order
}

// newTable lists objects and uses. All uses of a value are one visit at first. Where
// room is short, nothing is there after its last use.
func newTable(g *graph.Graph, s *program.Schedule, leaves []bool, short bool) *table {
	t := &table{graph: g, s: s, of: make([]int32, len(s.Stays))}
	var taken []bool
	t.last, taken = lasts(s)
	for id := range s.Stays {
		t.of[id] = -1
		y := &s.Stays[id]
		bound := y.Origin == program.Bound
		_, sends := y.Value.Node.Sends()
		switch {
		case y.Space != space.Host || y.Origin == program.Workspace || y.Over != program.NoStay,
			sends || taken[id], // bytes that the network has may not move
			y.Bytes != y.Value.Type().Bytes(),
			bound && (!y.Fixed || !leaves[y.Value.Node.ID]):
			continue
		}
		t.of[id] = int32(len(t.objects))
		t.objects = append(t.objects, object{stay: program.StayID(id), leaf: bound})
	}
	t.uses()
	for i := range t.objects {
		o := &t.objects[i]
		if k := len(o.uses); k > 0 {
			o.end = o.uses[k-1].at
		}
		if !o.leaf && !short {
			o.end = max(o.end, s.Stays[o.stay].To)
		}
	}
	t.measure()
	return t
}

// lasts are, by stay, the last events at which its bytes are taken, by itself or by those
// that take them over, and whether there are such.
func lasts(s *program.Schedule) (last []int32, taken []bool) {
	last, taken = make([]int32, len(s.Stays)), make([]bool, len(s.Stays))
	for id := len(s.Stays) - 1; id >= 0; id-- {
		y := &s.Stays[id]
		last[id] = max(last[id], y.To)
		if y.Over != program.NoStay {
			last[y.Over], taken[y.Over] = max(last[y.Over], last[id]), true
		}
	}
	return last, taken
}

// uses lists the uses of all objects.
func (t *table) uses() {
	for i := range t.s.Events {
		t.event(int32(i))
	}
	last := int32(max(0, len(t.s.Events)-1))
	for _, id := range t.s.Fetches {
		if t.of[id] >= 0 && last >= 0 {
			t.note(id, use{at: last, hi: t.s.Stays[id].Value.Type().Bytes()})
		}
	}
}

// event lists the uses of an event.
func (t *table) event(i int32) {
	e := &t.s.Events[i]
	if e.Copies() {
		src, dst := &t.s.Stays[e.Src], &t.s.Stays[e.Dst]
		t.note(e.Src, use{at: i, lo: dst.Off, hi: dst.Off + dst.Bytes})
		t.note(e.Dst, use{at: i, fills: true, writes: true, lo: src.Off, hi: src.Off + src.Bytes})
		return
	}
	n := t.graph.Node(e.Node)
	for k, id := range e.In {
		if t.of[id] < 0 {
			continue
		}
		_, off := n.In[k].Resolve()
		t.note(id, use{at: i, writes: k < n.Mutates, lo: off, hi: off + n.In[k].Type().Bytes()})
	}
	for k, id := range e.Out {
		t.note(id, use{at: i, fills: true, writes: true, hi: n.Out[k].Bytes()})
	}
}

// note adds a use to a stay's, or to the one that the same event has.
func (t *table) note(id program.StayID, u use) {
	if t.of[id] < 0 {
		return
	}
	o := &t.objects[t.of[id]]
	if k := len(o.uses) - 1; k >= 0 && o.uses[k].at == u.at {
		old := &o.uses[k]
		old.fills, old.writes = old.fills && u.fills, old.writes || u.writes
		old.lo, old.hi = min(old.lo, u.lo), max(old.hi, u.hi)
		return
	}
	o.uses = append(o.uses, u)
}

// measure works out the host's load.
func (t *table) measure() {
	changes := make([]int64, len(t.s.Events)+1)
	hold := func(from, to int32, bytes int64) {
		changes[from] += bytes
		changes[to+1] -= bytes
	}
	for id := range t.s.Stays {
		y := &t.s.Stays[id]
		if y.Space == space.Host && y.Over == program.NoStay && t.of[id] < 0 && len(changes) > 1 {
			hold(y.From, t.last[id], t.round(y.Bytes))
		}
	}
	for i := range t.objects {
		if o := &t.objects[i]; len(o.uses) > 0 {
			hold(o.uses[0].at, o.end, t.bytes(o, 0, len(o.uses)-1))
		}
	}
	t.load = newLoad(changes)
}

// round is what so many bytes take.
func (t *table) round(bytes int64) int64 { return t.graph.Align().Up(bytes) }

// part is the part of a value that a visit needs, from use to use: all of it if it is
// written.
func (t *table) part(o *object, first, last int) (lo, hi int64) {
	lo, hi = o.uses[first].lo, o.uses[first].hi
	for _, u := range o.uses[first : last+1] {
		if u.writes {
			return 0, t.s.Stays[o.stay].Value.Type().Bytes()
		}
		lo, hi = min(lo, u.lo), max(hi, u.hi)
	}
	return lo, hi
}

// bytes is what a visit takes of the host.
func (t *table) bytes(o *object, first, last int) int64 {
	lo, hi := t.part(o, first, last)
	return t.round(hi - lo)
}

// around is the visit that a use belongs to.
func (o *object) around(k int) (first, last int) {
	for first = k; first > 0 && !o.uses[first-1].cut; first-- {
	}
	for last = k; last < len(o.uses)-1 && !o.uses[last].cut; last++ {
	}
	return first, last
}

// until is the last event at which the bytes of a visit are there that ends with a use.
func (o *object) until(last int) int32 {
	if last == len(o.uses)-1 {
		return o.end
	}
	return o.uses[last].at
}
