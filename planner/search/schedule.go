package search

import (
	"cmp"
	"slices"
	"sort"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// The streams of a schedule.
const (
	computeStream = iota
	inStream
	outStream
	hostStream
	sendStream
	awaitStream
	peerStream
)

// Schedule translates a decision of this problem: all executions and copies, in the
// order in which they are simulated to start, and stays that last until the last
// of them that starts before their bytes are simulated to be free.
func (pr *Problem) Schedule(d *Decision) *program.Schedule {
	e := newEvaluator(pr, d.budget)
	e.force(d.homes)
	e.spare = d.spare
	e.evaluate(d.state)
	w := &writer{evaluator: e, state: d.state, s: &program.Schedule{
		Parts: 1,
		Streams: []program.Stream{{Name: "compute0", Engine: space.Compute},
			{Name: "in", Engine: space.CopyIn}, {Name: "out", Engine: space.CopyOut},
			{Name: "host", Engine: space.HostCompute}},
	}}
	if pr.exchanges {
		w.s.Streams = append(w.s.Streams, program.Stream{Name: "send", Engine: space.Send},
			program.Stream{Name: "await", Engine: space.Await})
	}
	if pr.peers {
		w.s.Streams = append(w.s.Streams, program.Stream{Name: "peer", Engine: space.Peer})
	}
	w.steps()
	w.bind()
	w.stayIDs()
	for i := range w.events {
		w.event(int32(i))
	}
	w.close()
	return w.s
}

// kind is what a step is.
type kind uint8

const (
	runs     kind = iota // the execution at position of
	runsHost             // operation of, on the host
	arrives              // the copy to stay of
	departs              // the copy of value of to the host
	returns              // the copy of leaf of to where it is bound
)

// step is an event in the making.
type step struct {
	at   int64 // when it is simulated to start
	kind kind
	of   int32
}

// writer makes a schedule of what is simulated.
type writer struct {
	*evaluator
	state  *state
	s      *program.Schedule
	events []step
	device []program.StayID // by stay
	host   []program.StayID // by value: its bytes on the host
	bound  []program.StayID // by leaf: where it lives
	whole  []program.StayID // by leaf: the stay in which it is updated on the device
	newest []int32          // by value: the stay that an execution made last
	latest []int32          // by value: the stay that an execution finds it in
	until  []int64          // by value: when the host's bytes are read for the last time
}

// steps lists everything that happens, in order. What depends on another starts
// later than it, since nothing takes no time.
func (w *writer) steps() {
	for p := range w.seq {
		w.events = append(w.events, step{w.begin[p], runs, int32(p)})
	}
	for _, i := range w.arrivals {
		w.events = append(w.events, step{w.copyIn[i], arrives, i})
	}
	for v := range w.values {
		if w.gone[v] {
			w.events = append(w.events, step{w.outEnd[v] - w.values[v].out, departs, int32(v)})
		}
	}
	for l, end := range w.backEnd {
		if end > 0 {
			w.events = append(w.events, step{end - w.leaves[l].out, returns, int32(l)})
		}
	}
	for i := range w.ops {
		if w.hosted(w.state, &w.ops[i]) {
			w.events = append(w.events, step{w.hostStart[i], runsHost, int32(i)})
		}
	}
	slices.SortFunc(w.events, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.of, b.of))
	})
}

// add enters a stay.
func (w *writer) add(y program.Stay) program.StayID {
	w.s.Stays = append(w.s.Stays, y)
	return program.StayID(len(w.s.Stays) - 1)
}

// bind gives the leaves their stays.
func (w *writer) bind() {
	last := int32(max(0, len(w.events)-1))
	w.host = slices.Repeat([]program.StayID{program.NoStay}, len(w.values))
	for l := range w.leaves {
		n := w.leaves[l].node
		in := space.Host
		if w.atHome[l] {
			in = space.Device
		}
		id := w.add(program.Stay{Value: n.Value(0), Bytes: n.Out[0].Bytes(), Space: in,
			Origin: program.Bound, Fixed: true, To: last, Over: program.NoStay})
		w.bound = append(w.bound, id)
		w.whole = append(w.whole, id)
	}
	w.s.Variables = slices.Clone(w.bound)
	w.until = w.lastOnHost(w.state)
	for _, v := range w.inputs {
		w.host[v] = w.add(program.Stay{Value: w.values[v].of, Bytes: w.values[v].raw,
			Space: space.Host, Origin: program.Bound, To: w.last(w.until[v]), Over: program.NoStay})
		w.s.Feeds = append(w.s.Feeds, w.host[v])
	}
}

// last is the last event that starts before a time, and no earlier than the first.
func (w *writer) last(at int64) int32 {
	n := sort.Search(len(w.events), func(i int) bool { return w.events[i].at >= at })
	return int32(max(n-1, 0))
}

// stayIDs prepares the tables in which operands are found.
func (w *writer) stayIDs() {
	w.device = slices.Repeat([]program.StayID{program.NoStay}, len(w.stays))
	w.latest = slices.Repeat([]int32{-1}, len(w.values))
	w.newest = slices.Repeat([]int32{-1}, len(w.values))
}

// event enters an event and the stays that begin with it.
func (w *writer) event(i int32) {
	switch x := w.events[i]; x.kind {
	case runs:
		w.execution(i, x.of)
	case runsHost:
		w.hostExecution(i, x.of)
	case arrives:
		w.arrival(i, x.of)
	case departs:
		v := &w.values[x.of]
		w.host[x.of] = w.add(program.Stay{Value: v.of, Bytes: v.raw, Space: space.Host,
			Origin: program.Copied, From: i, To: max(i, w.last(w.until[x.of])),
			Over: program.NoStay})
		w.copy(v, outStream, w.device[w.first[x.of]], w.host[x.of], w.outReason(x.of),
			w.idleFrom(x.of))
	case returns:
		l := &w.leaves[x.of]
		w.copy(&w.values[l.whole], outStream, w.whole[x.of], w.bound[x.of], space.WriteBack, 0)
	}
}

// copy enters a copy.
func (w *writer) copy(v *value, stream uint8, src, dst program.StayID, why space.Reason,
	idle int32) {
	w.s.Events = append(w.s.Events, program.Event{Node: v.of.Node.ID, Stream: stream, Src: src,
		Dst: dst, Reason: why, Idle: idle, Scratch: program.NoStay})
}

// outReason is why a value is copied to the host.
func (w *writer) outReason(v int32) space.Reason {
	switch {
	case w.absent[v]:
		return space.SwapOut
	case w.hostReads[v]:
		return space.Gradient
	}
	return space.Result
}

// idleFrom is the number of executions during which a value that is swapped out
// is not needed.
func (w *writer) idleFrom(v int32) int32 {
	if !w.absent[v] {
		return 0
	}
	j := w.first[v]
	return w.stays[j+1].first - w.stays[j].last
}

// arrival enters a copy to the device.
func (w *writer) arrival(i, j int32) {
	y := &w.stays[j]
	v := &w.values[y.value]
	w.device[j] = w.add(program.Stay{Value: v.of, Off: v.off, Bytes: v.raw, Space: space.Device,
		Origin: program.Copied, From: i, To: w.last(w.freed[j]), Over: program.NoStay})
	switch {
	case v.leaf >= 0:
		w.copy(v, inStream, w.bound[v.leaf], w.device[j], space.Stage, 0)
	case v.producer < 0:
		w.copy(v, inStream, w.host[y.value], w.device[j], space.Feed, w.idle(j))
	default:
		w.copy(v, inStream, w.host[y.value], w.device[j], space.SwapIn, w.idle(j))
	}
}

// idle is the number of executions before a stay during which its value is not
// needed.
func (w *writer) idle(j int32) int32 {
	if j == 0 || w.stays[j-1].value != w.stays[j].value {
		return 0
	}
	return w.stays[j].first - w.stays[j-1].last
}

// execution enters an execution on the device.
func (w *writer) execution(i, p int32) {
	o := &w.ops[w.seq[p]]
	for j := w.waiting.head[p]; j >= 0; j = w.waiting.next[j] {
		w.latest[w.stays[j].value] = j
	}
	ev := program.Event{Node: o.node.ID, Stream: computeStream, Src: program.NoStay,
		Dst: program.NoStay}
	if o.side == peers {
		ev.Stream = peerStream
	}
	for _, v := range o.args {
		ev.In = append(ev.In, w.operand(v))
	}
	for j := w.made.head[p]; j >= 0; j = w.made.next[j] {
		w.newest[w.stays[j].value] = j
	}
	for k, v := range o.writes {
		w.whole[w.values[v].leaf] = ev.In[k]
	}
	for k := range o.out {
		ev.Out = append(ev.Out, w.result(i, p, k))
	}
	ev.Scratch = w.scratch(o, i, space.Device, w.end[p])
	w.s.Events = append(w.s.Events, ev)
}

// operand is the stay in which an execution finds a value.
func (w *writer) operand(v int32) program.StayID {
	if l := w.values[v].leaf; l >= 0 && w.atHome[l] {
		return w.bound[l]
	}
	return w.device[w.latest[v]]
}

// result enters the stay of a result, or room for one that nobody wants again.
func (w *writer) result(i, p int32, k int) program.StayID {
	v := w.ops[w.seq[p]].out[k]
	va := &w.values[v]
	y := program.Stay{Value: va.of, Bytes: va.raw, Space: space.Device, Origin: program.Made,
		From: i,
		Over: program.NoStay}
	if w.repeated(p) {
		y.Origin = program.Recomputed
	}
	if j := w.newest[v]; j >= 0 && w.stays[j].first == p {
		if over := w.over[p]; k == 0 && over >= 0 {
			y.Over = w.device[over]
			w.s.Stays[y.Over].To = i
		}
		y.To = max(i, w.last(w.freed[j]))
		w.device[j], w.latest[v] = w.add(y), j
		return w.device[j]
	}
	y.To = max(i, w.last(w.end[p]))
	return w.add(y)
}

// scratch enters an execution's workspace.
func (w *writer) scratch(o *op, i int32, in space.ID, end int64) program.StayID {
	bytes := o.node.Cost().Scratch
	if bytes == 0 {
		return program.NoStay
	}
	return w.add(program.Stay{Value: graph.Value{Node: o.node}, Bytes: bytes, Space: in,
		Origin: program.Workspace, From: i, To: max(i, w.last(end)), Over: program.NoStay})
}

// hostExecution enters an execution on the host.
func (w *writer) hostExecution(i, x int32) {
	o := &w.ops[x]
	ev := program.Event{Node: o.node.ID, Stream: hostStream + uint8(o.side), Src: program.NoStay,
		Dst: program.NoStay}
	for _, v := range o.args {
		if l := w.values[v].leaf; l >= 0 {
			ev.In = append(ev.In, w.bound[l])
		} else {
			ev.In = append(ev.In, w.host[v])
		}
	}
	for _, v := range o.out {
		over := program.NoStay
		if o.takes >= 0 {
			over = w.host[o.takes]
		}
		w.host[v] = w.add(program.Stay{Value: w.values[v].of, Bytes: w.values[v].raw,
			Space: space.Host, Origin: program.Made, From: i, To: max(i, w.last(w.until[v])),
			Over: over})
		ev.Out = append(ev.Out, w.host[v])
	}
	ev.Scratch = w.scratch(o, i, space.Host, w.hostEnd[x])
	w.s.Events = append(w.s.Events, ev)
}

// close lists where the fetched values are, until the end.
func (w *writer) close() {
	for _, v := range w.fetches {
		w.s.Stays[w.host[v]].To = int32(len(w.events) - 1)
		w.s.Fetches = append(w.s.Fetches, w.host[v])
	}
}
