// Package simulate says how long a plan takes on a machine that is known by its
// prices: streams run their steps in order, held back only by waits.
//
// That is what an executor on the simulated device (internal/device/sim) comes to
// as well, to the nanosecond, without a session and without memory; a plan of any
// size takes milliseconds. Like the device, it runs nothing and knows no overhead of
// issuing steps; what the prices leave out (package machine) is left out here.
package simulate

import (
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner/machine"
)

// Timeline is when the steps of a plan run, from the begin of the first.
type Timeline struct {
	Step       time.Duration   // until the last has ended, or all engines' work is done
	Start, End []time.Duration // by step
	Busy       []time.Duration // by stream: what its steps take together
}

// Simulate runs a plan of g, which plan.Verify accepts, on the machine of a model.
func Simulate(p *plan.Plan, g *graph.Graph, m machine.Model) Timeline {
	t := Timeline{Start: make([]time.Duration, len(p.Steps)),
		End:  make([]time.Duration, len(p.Steps)),
		Busy: make([]time.Duration, len(p.Streams))}
	idle := make([]time.Duration, len(p.Streams)) // by stream: since when
	var work machine.Work
	for i, s := range p.Steps {
		start := idle[s.Stream]
		for _, w := range s.Wait {
			start = max(start, t.End[w])
		}
		d := price(p, g, m, s)
		t.Start[i], t.End[i] = start, start+d
		t.Busy[s.Stream] += d
		idle[s.Stream] = t.End[i]
		t.Step = max(t.Step, t.End[i])
		work.Add(p.Streams[s.Stream].Engine, d)
	}
	t.Step = max(t.Step, work.Least(m))
	return t
}

// price is what a step takes.
func price(p *plan.Plan, g *graph.Graph, m machine.Model, s plan.Step) time.Duration {
	e := p.Streams[s.Stream].Engine
	if bytes, ok := s.Do.Moves(); ok {
		return m.Copy(e.Reads(), e.Writes(), bytes)
	}
	return m.Time(g.Node(s.Node), e.Reads())
}
