package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// Timeline is what a viewer of timelines shows.
type Timeline struct{ Processes []Process }

// Process is a group of lanes and counters under a name of its own.
type Process struct {
	Name     string
	Lanes    []Lane
	Counters []Counter
	Marks    []Mark
	Flows    []Flow
}

// Lane is a row of slices, which do not overlap.
type Lane struct {
	Name   string
	Slices []Slice
}

// Slice is a piece of work. Args are shown when it is selected.
type Slice struct {
	Name, Category string
	Start, End     time.Duration
	Args           map[string]any
}

// Counter is a number of bytes that changes with time, the earliest point first.
type Counter struct {
	Name   string
	Points []Point
}

// Point is the number of bytes from a time on.
type Point struct {
	At    time.Duration
	Bytes int64
}

// Mark is a moment of a whole process.
type Mark struct {
	Name string
	At   time.Duration
}

// Place is a slice of a process, by the numbers of its lane and in the lane.
type Place struct{ Lane, Slice int }

// Flow is an arrow from a slice to one that had to wait for it.
type Flow struct{ From, To Place }

// event is an entry of the Trace Event Format that Chrome and Perfetto read.
// Times are microseconds.
type event struct {
	Name    string         `json:"name"`
	Cat     string         `json:"cat,omitempty"`
	Phase   string         `json:"ph"`
	TS      float64        `json:"ts"`
	Dur     *float64       `json:"dur,omitempty"` // of slices, which may be empty
	PID     int            `json:"pid"`
	TID     int            `json:"tid"`
	ID      int            `json:"id,omitempty"` // of flows, from 1
	Binding string         `json:"bp,omitempty"`
	Scope   string         `json:"s,omitempty"`
	Args    map[string]any `json:"args,omitempty"`
}

// WriteJSON writes the timeline in the Trace Event Format, for Perfetto or
// chrome://tracing: what names things first, then by time.
func (t Timeline) WriteJSON(w io.Writer) error {
	out := []event{}
	flows := 0
	for i, p := range t.Processes {
		out = p.events(out, i+1, &flows)
	}
	slices.SortStableFunc(out, func(a, b event) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.TS, b.TS))
	})
	if err := json.NewEncoder(w).Encode(map[string]any{"traceEvents": out,
		"displayTimeUnit": "ms"}); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

// rank puts names before everything else.
func rank(e event) int {
	if e.Phase == "M" {
		return 0
	}
	return 1
}

// events appends those of a process.
func (p Process) events(out []event, pid int, flows *int) []event {
	name := func(what string, tid int, name string) {
		out = append(out, event{Name: what, Phase: "M", PID: pid, TID: tid,
			Args: map[string]any{"name": name}})
	}
	name("process_name", 0, p.Name)
	for i, lane := range p.Lanes {
		name("thread_name", i+1, lane.Name)
		out = append(out, event{Name: "thread_sort_index", Phase: "M", PID: pid, TID: i + 1,
			Args: map[string]any{"sort_index": i}})
		for _, s := range lane.Slices {
			dur := micros(s.End - s.Start)
			out = append(out, event{Name: s.Name, Cat: s.Category, Phase: "X", PID: pid,
				TID: i + 1, TS: micros(s.Start), Dur: &dur, Args: s.Args})
		}
	}
	for _, m := range p.Marks {
		out = append(out, event{Name: m.Name, Phase: "i", Scope: "p", PID: pid, TS: micros(m.At)})
	}
	for _, c := range p.Counters {
		for _, at := range c.Points {
			out = append(out, event{Name: c.Name, Phase: "C", PID: pid, TS: micros(at.At),
				Args: map[string]any{"bytes": at.Bytes}})
		}
	}
	return p.arrows(out, pid, flows)
}

// arrows appends the two ends of every flow. The first lies within its slice, or
// viewers would take the next one for it.
func (p Process) arrows(out []event, pid int, flows *int) []event {
	for _, f := range p.Flows {
		*flows++
		from, to := p.slice(f.From), p.slice(f.To)
		out = append(out,
			event{Name: "wait", Cat: "wait", Phase: "s", PID: pid, TID: f.From.Lane + 1, ID: *flows,
				TS: micros(from.Start + (from.End-from.Start)/2)},
			event{Name: "wait", Cat: "wait", Phase: "f", Binding: "e", PID: pid,
				TID: f.To.Lane + 1, ID: *flows, TS: micros(to.Start)})
	}
	return out
}

func (p Process) slice(at Place) Slice { return p.Lanes[at.Lane].Slices[at.Slice] }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
