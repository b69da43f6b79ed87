package profile

import (
	"fmt"
	"io"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/plan/space"
)

// WriteTrace writes the runs for Perfetto: the measured steps, one after the other,
// and the predicted one, each as a process with a lane a stream, a counter a space,
// a mark where a step begins, and arrows from copies to what waits for them.
func (p *Profile) WriteTrace(w io.Writer) error {
	var t trace.Timeline
	if p.runs != nil {
		t.Processes = append(t.Processes, p.process("measured", p.runs))
	}
	if p.predicted != nil {
		t.Processes = append(t.Processes, p.process("predicted", []Run{p.predicted}))
	}
	return t.WriteJSON(w)
}

// process draws runs, one after the other.
func (p *Profile) process(name string, runs []Run) trace.Process {
	out := trace.Process{Name: name, Lanes: []trace.Lane{{Name: "training steps"}}}
	for _, s := range p.plan.Streams {
		out.Lanes = append(out.Lanes, trace.Lane{Name: s.Name})
	}
	for _, s := range p.plan.Spaces {
		out.Counters = append(out.Counters, trace.Counter{Name: s.Name + " memory"})
	}
	var start time.Duration
	for i, run := range runs {
		title := fmt.Sprintf("step %d", i+1)
		out.Marks = append(out.Marks, trace.Mark{Name: title, At: start})
		out.Lanes[0].Slices = append(out.Lanes[0].Slices, trace.Slice{Name: title,
			Category: "step", Start: start, End: start + run.length()})
		p.draw(&out, run, start)
		start += run.length()
	}
	return out
}

// draw adds a run that begins at a time.
func (p *Profile) draw(out *trace.Process, run Run, start time.Duration) {
	places := make([]trace.Place, len(run))
	for i, s := range p.plan.Steps {
		lane := &out.Lanes[int(s.Stream)+1]
		places[i] = trace.Place{Lane: int(s.Stream) + 1, Slice: len(lane.Slices)}
		lane.Slices = append(lane.Slices, trace.Slice{Name: s.Name, Category: s.Do.What(),
			Start: start + run[i].Start, End: start + run[i].End, Args: p.arguments(i)})
		for _, before := range s.Wait {
			if !p.launches(before) {
				out.Flows = append(out.Flows, trace.Flow{From: places[before], To: places[i]})
			}
		}
	}
	for i := range out.Counters {
		points := &out.Counters[i].Points
		if n := len(*points); n > 0 && (*points)[n-1].At == start {
			*points = (*points)[:n-1] // the end of the run before, where this one begins
		}
		for _, level := range p.levels(space.ID(i), run) {
			*points = append(*points, trace.Point{At: start + level.At, Bytes: level.Bytes})
		}
	}
}

// arguments are what a viewer shows of a step.
func (p *Profile) arguments(i int) map[string]any {
	s := p.plan.Steps[i]
	n := p.graph.Node(s.Node)
	out := map[string]any{"what": s.Do.What(), "step": i, "partition": s.Part, "line": n.Pos}
	if bytes, ok := s.Do.Moves(); ok {
		out["bytes"] = bytes
		return out
	}
	out["flops"], out["shapes"] = n.Cost().FLOPs, shapes(n)
	return out
}
