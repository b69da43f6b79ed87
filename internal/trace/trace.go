// Package trace describes what happened when: an [Event] for everything a
// stream did, handed to a [Listener]. Listeners draw timelines, test overlap or
// log; without one, nothing is measured.
package trace

import (
	"encoding/json"
	"fmt"
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

// chromeEvent is an entry of the Trace Event Format that Chrome and Perfetto
// read. Times are microseconds.
type chromeEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat"`
	Phase string         `json:"ph"`
	TS    float64        `json:"ts"`
	Dur   float64        `json:"dur"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// WriteJSON writes the events as a timeline for Perfetto or chrome://tracing,
// one lane a stream.
func (r *Recorder) WriteJSON(w io.Writer) error {
	events := r.Events()
	lanes := map[string]int{}
	out := []chromeEvent{}
	for _, e := range events {
		lane, ok := lanes[e.Stream]
		if !ok {
			lane = len(lanes)
			lanes[e.Stream] = lane
			out = append(out, chromeEvent{Name: "thread_name", Phase: "M", TID: lane,
				Args: map[string]any{"name": e.Stream}})
		}
		out = append(out, chromeEvent{
			Name: e.Name, Cat: e.What, Phase: "X", TID: lane,
			TS:   micros(e.Start - events[0].Start),
			Dur:  micros(e.End - e.Start),
			Args: map[string]any{"step": e.Step, "what": e.What, "bytes": e.Bytes},
		})
	}
	if err := json.NewEncoder(w).Encode(map[string]any{"traceEvents": out,
		"displayTimeUnit": "ms"}); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
