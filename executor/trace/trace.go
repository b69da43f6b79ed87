// Package trace describes what happened when: an [Event] for everything a
// stream did, handed to a [Listener]. Listeners draw timelines, test overlap or
// log; without one, nothing is measured.
package trace

import (
	"io"
	"sync"
	"time"
)

// Event is one piece of work on one stream.
type Event struct {
	Stream string
	Name   string // what it was done for
	What   string // operation, or reason of a copy
	Step   int    // index in the plan
	Bytes  int64  // bytes copied; 0 for an operation
	// Start and End are on the device's clock, which need not be the machine's:
	// it is zero when the device is opened.
	Start, End time.Duration
}

// Listener receives events; it may be called from several goroutines at once.
// A nil Listener receives nothing.
type Listener func(Event)

// Recorder keeps the first events it hears, up to a limit.
type Recorder struct {
	Limit int // 0 is no limit

	mu     sync.Mutex
	events []Event
}

// Listen is the Recorder's Listener.
func (r *Recorder) Listen(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Limit == 0 || len(r.events) < r.Limit {
		r.events = append(r.events, e)
	}
}

// Events are the events so far.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

// WriteJSON writes the events as a timeline for Perfetto or chrome://tracing,
// one lane a stream.
func (r *Recorder) WriteJSON(w io.Writer) error {
	events := r.Events()
	lanes := map[string]int{}
	p := Process{Name: "gomem"}
	for _, e := range events {
		lane, ok := lanes[e.Stream]
		if !ok {
			lane = len(lanes)
			lanes[e.Stream] = lane
			p.Lanes = append(p.Lanes, Lane{Name: e.Stream})
		}
		p.Lanes[lane].Slices = append(p.Lanes[lane].Slices, Slice{
			Name: e.Name, Category: e.What,
			Start: e.Start - events[0].Start, End: e.End - events[0].Start,
			Args: map[string]any{"step": e.Step, "what": e.What, "bytes": e.Bytes},
		})
	}
	return Timeline{Processes: []Process{p}}.WriteJSON(w)
}
