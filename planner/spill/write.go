package spill

import (
	"cmp"
	"slices"

	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// writer writes a schedule down with the copies of visits between its events.
type writer struct {
	*table
	out    *program.Schedule
	loads  []int32          // visits by where they are loaded
	stores []int32          // visits by where they are stored
	fills  []int32          // visits with stays of their own that begin with a use that fills
	stays  []program.StayID // by visit: its stay on the host
	disk   []program.StayID // by object: its stay on the disk, or NoStay
	now    []program.StayID // by object: the stay of the present visit
	at     []int32          // by event of the old schedule: its new number
	runs   []int32          // by event of the old schedule: executions before it
}

func newWriter(t *table) *writer {
	w := &writer{table: t, out: &program.Schedule{Parts: t.s.Parts},
		at: make([]int32, len(t.s.Events)), runs: make([]int32, len(t.s.Events)+1)}
	if w.out.Streams = slices.Clone(t.s.Streams); t.moves() {
		w.out.Streams = append(w.out.Streams,
			program.Stream{Name: "disk-in", Engine: space.Copier(space.Disk, space.Host)},
			program.Stream{Name: "disk-out", Engine: space.Copier(space.Host, space.Disk)})
	}
	w.out.Stays = slices.Clone(t.s.Stays)
	for i := range t.s.Events {
		w.runs[i+1] = w.runs[i]
		if !t.s.Events[i].Copies() {
			w.runs[i+1]++
		}
	}
	for k, v := range t.visits {
		if v.loads {
			w.loads = append(w.loads, int32(k))
		} else if w.anew(&v) {
			w.fills = append(w.fills, int32(k))
		}
		if v.stores {
			w.stores = append(w.stores, int32(k))
		}
	}
	return w
}

// inStream and outStream are the disk's.
func (w *writer) inStream() uint8  { return uint8(len(w.out.Streams) - 2) }
func (w *writer) outStream() uint8 { return uint8(len(w.out.Streams) - 1) }

// first is the event of a visit's first use, last that of its last.
func (w *writer) first(v *visit) int32 { return w.objects[v.object].uses[v.first].at }
func (w *writer) last(v *visit) int32  { return w.objects[v.object].uses[v.last].at }

// write is the schedule.
func (w *writer) write() *program.Schedule {
	w.sort()
	w.number()
	w.enter()
	loads, stores, fills := w.loads, w.stores, w.fills
	for i := range w.s.Events {
		e := w.s.Events[i]
		for ; len(loads) > 0 && w.visits[loads[0]].from == int32(i); loads = loads[1:] {
			w.load(loads[0], e.Part)
		}
		for ; len(fills) > 0 && w.visits[fills[0]].from == int32(i); fills = fills[1:] {
			w.now[w.visits[fills[0]].object] = w.stays[fills[0]]
		}
		w.out.Events = append(w.out.Events, w.moved(e))
		for ; len(stores) > 0 && w.last(&w.visits[stores[0]]) == int32(i); stores = stores[1:] {
			w.store(stores[0], e.Part)
		}
	}
	w.finish()
	return w.out
}

// sort puts loads in order of where they are, and of when they are needed, and the
// others in order of where they are.
func (w *writer) sort() {
	slices.SortStableFunc(w.fills, func(a, b int32) int {
		return cmp.Compare(w.visits[a].from, w.visits[b].from)
	})
	slices.SortStableFunc(w.loads, func(a, b int32) int {
		x, y := &w.visits[a], &w.visits[b]
		return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(w.first(x), w.first(y)))
	})
	slices.SortStableFunc(w.stores, func(a, b int32) int {
		return cmp.Compare(w.last(&w.visits[a]), w.last(&w.visits[b]))
	})
}

// number works out where events come to be, and has the stays that are as they were
// last from there to there.
func (w *writer) number() {
	count := make([]int32, len(w.at)+1) // copies before an event and after the one before
	for _, k := range w.loads {
		count[w.visits[k].from]++
	}
	for _, k := range w.stores {
		count[w.last(&w.visits[k])+1]++
	}
	var more int32
	for i := range w.at {
		more += count[i]
		w.at[i] = int32(i) + more
	}
	w.out.Events = make([]program.Event, 0, len(w.at)+len(w.loads)+len(w.stores))
	for id := range w.out.Stays {
		y := &w.out.Stays[id]
		if len(w.at) == 0 || y.Fixed || y.Origin == program.Bound && y.From == 0 {
			y.From = 0
		} else {
			y.From = w.at[y.From]
		}
		if len(w.at) > 0 {
			y.To = w.at[y.To]
		}
	}
}

// anew reports whether a visit has a stay of its own: a leaf's stay is now on the disk,
// in the order in which all targets have leaves, and a value's is that of its first
// visit.
func (w *writer) anew(v *visit) bool { return v.first > 0 || w.objects[v.object].leaf }

// enter makes the stays of visits and of leaves on the disk.
func (w *writer) enter() {
	w.disk = slices.Repeat([]program.StayID{program.NoStay}, len(w.objects))
	w.now = make([]program.StayID, len(w.objects))
	w.stays = make([]program.StayID, len(w.visits))
	for i := range w.objects {
		o := &w.objects[i]
		w.now[i] = o.stay
		if o.leaf {
			w.out.Stays[o.stay].Space, w.disk[i] = space.Disk, o.stay
		}
	}
	for k := range w.visits {
		v := &w.visits[k]
		o := &w.objects[v.object]
		if !w.anew(v) {
			w.stays[k] = o.stay
			w.out.Stays[o.stay].To = w.at[v.to]
			continue
		}
		lo, hi := w.part(o, int(v.first), int(v.last))
		w.stays[k] = w.copied(program.Stay{Value: w.s.Stays[o.stay].Value, Off: lo, Bytes: hi - lo,
			Space: space.Host, From: w.at[w.first(v)], To: w.at[v.to]})
	}
}

// copied enters a stay that a copy fills.
func (w *writer) copied(y program.Stay) program.StayID {
	y.Origin, y.Over = program.Copied, program.NoStay
	w.out.Stays = append(w.out.Stays, y)
	return program.StayID(len(w.out.Stays) - 1)
}

// load writes a copy from the disk down.
func (w *writer) load(k int32, part int32) {
	v := &w.visits[k]
	o := &w.objects[v.object]
	e := w.copies(o, part, space.SwapIn)
	e.Stream, e.Src, e.Dst = w.inStream(), w.disk[v.object], w.stays[k]
	if o.leaf {
		e.Reason = space.Stage
	} else {
		e.Idle = w.runs[w.first(v)] - w.runs[o.uses[v.first-1].at+1]
	}
	w.keep(e.Src)
	w.now[v.object] = e.Dst
	w.out.Stays[e.Dst].From = int32(len(w.out.Events))
	w.out.Events = append(w.out.Events, e)
}

// store writes a copy to the disk down.
func (w *writer) store(k int32, part int32) {
	v := &w.visits[k]
	o := &w.objects[v.object]
	e := w.copies(o, part, space.WriteBack)
	if !o.leaf {
		e.Reason = space.SwapOut
		e.Idle = w.runs[o.uses[v.last+1].at] - w.runs[w.last(v)+1]
		y := &w.s.Stays[o.stay]
		at := int32(len(w.out.Events))
		w.disk[v.object] = w.copied(program.Stay{Value: y.Value, Bytes: y.Bytes, Space: space.Disk,
			From: at, To: at})
	}
	e.Stream, e.Src, e.Dst = w.outStream(), w.stays[k], w.disk[v.object]
	w.keep(e.Src)
	w.out.Events = append(w.out.Events, e)
}

// copies is a copy of an object.
func (w *writer) copies(o *object, part int32, why space.Reason) program.Event {
	return program.Event{Node: w.s.Stays[o.stay].Value.Node.ID, Part: part, Scratch: program.NoStay,
		Reason: why}
}

// keep has a stay last at least until the event that comes next.
func (w *writer) keep(id program.StayID) {
	y := &w.out.Stays[id]
	y.To = max(y.To, int32(len(w.out.Events)))
}

// moved is an event with the stays of present visits.
func (w *writer) moved(e program.Event) program.Event {
	e.In, e.Out = w.present(e.In), w.present(e.Out)
	if e.Copies() {
		e.Src, e.Dst = w.visited(e.Src), w.visited(e.Dst)
	}
	return e
}

// present is where the stays of a list are now.
func (w *writer) present(ids []program.StayID) []program.StayID {
	if !slices.ContainsFunc(ids, func(id program.StayID) bool { return w.visited(id) != id }) {
		return ids
	}
	out := slices.Clone(ids)
	for k, id := range out {
		out[k] = w.visited(id)
	}
	return out
}

// visited is the stay of the present visit of what a stay had.
func (w *writer) visited(id program.StayID) program.StayID {
	if k := w.of[id]; k >= 0 {
		return w.now[k]
	}
	return id
}

// finish lists where leaves and fetched values are, and keeps them to the end.
func (w *writer) finish() {
	last := int32(max(0, len(w.out.Events)-1))
	w.out.Variables, w.out.Feeds = w.s.Variables, w.s.Feeds
	for _, id := range w.s.Fetches {
		id = w.visited(id)
		w.out.Stays[id].To = last
		w.out.Fetches = append(w.out.Fetches, id)
	}
	for i := range w.out.Stays {
		if y := &w.out.Stays[i]; y.Fixed {
			y.From, y.To = 0, last
		}
	}
}
