package lower

import (
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/program"
)

// access is when a slot has been written, and when all that touched it is done.
type access struct {
	written, done time.Duration
	touched       bool
}

// timeline is when the events of a sketch end.
type timeline struct {
	*Sketch
	slots  []access
	before [][]plan.SlotID // by slot: those that had its addresses last; nil without any
}

// Time is how long a step takes: what simulate says of the plan, to the nanosecond, or at
// least no more than that as long as there are no addresses.
func (k *Sketch) Time(p *Prices) time.Duration {
	t := timeline{Sketch: k, slots: make([]access, len(k.slots))}
	if k.packed {
		t.before = previousOwners(k.slots)
	}
	s := k.schedule
	idle := make([]time.Duration, len(s.Streams)) // by stream: since when
	ends := make([]time.Duration, len(s.Events))
	var past, last time.Duration // when the partitions before the window are done; the step
	var sent time.Duration       // when the last send is done
	var work machine.Work
	first := 0 // the first event that is not of these
	for i := range s.Events {
		e := &s.Events[i]
		for ; s.Window > 0 && int(s.Events[first].Part) <= int(e.Part)-s.Window; first++ {
			past = max(past, ends[first])
		}
		at := max(past, idle[e.Stream])
		if s.Gathers && s.Streams[e.Stream].Engine == space.Await {
			at = max(at, sent)
		}
		took := p.event(s, e)
		work.Add(s.Streams[e.Stream].Engine, took)
		end := t.start(p.graph, e, at) + took
		t.finish(p.graph, e, end)
		ends[i], idle[e.Stream] = end, end
		last = max(last, end)
		if s.Streams[e.Stream].Engine == space.Send {
			sent = end
		}
	}
	return max(last, work.Least(p.Model))
}

// start is when an event can start, at the earliest from a time on.
func (t *timeline) start(g *graph.Graph, e *program.Event, at time.Duration) time.Duration {
	if e.Copies() {
		return t.after(e.Dst, true, t.after(e.Src, false, at))
	}
	mutates := g.Node(e.Node).Mutates
	for k, id := range e.In {
		at = t.after(id, k < mutates, at)
	}
	for _, id := range e.Out {
		at = t.after(id, true, at)
	}
	if e.Scratch != program.NoStay {
		at = t.after(e.Scratch, true, at)
	}
	return at
}

// after is when a stay can be touched, at the earliest from a time on.
func (t *timeline) after(id program.StayID, write bool, at time.Duration) time.Duration {
	slot := t.of[id]
	a := &t.slots[slot]
	if !a.touched && t.before != nil {
		for _, old := range t.before[slot] {
			at = max(at, t.slots[old].done)
		}
	}
	if write {
		return max(at, a.done)
	}
	return max(at, a.written)
}

// finish notes when the stays of an event have been touched.
func (t *timeline) finish(g *graph.Graph, e *program.Event, end time.Duration) {
	touch := func(id program.StayID, write bool) {
		a := &t.slots[t.of[id]]
		a.touched, a.done = true, max(a.done, end)
		if write {
			a.written = max(a.written, end)
		}
	}
	if e.Copies() {
		touch(e.Src, false)
		touch(e.Dst, true)
		return
	}
	mutates := g.Node(e.Node).Mutates
	for k, id := range e.In {
		touch(id, k < mutates)
	}
	for _, id := range e.Out {
		touch(id, true)
	}
	if e.Scratch != program.NoStay {
		touch(e.Scratch, true)
	}
}
