package profile

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// Input is what a profile is made of. All but the plan and its graph may be
// missing.
type Input struct {
	Plan        *plan.Plan   // one that plan.Verify accepts
	Graph       *graph.Graph // the plan's
	Model, Size string       // what the graph is, for people
	Machine     Machine
	Predicted   Run     // of a simulated machine
	Measured    []Run   // of traced steps
	Used        []int64 // by space: the peak of the run
	Facts       Facts
}

// Profile is a plan and its runs, explained.
type Profile struct {
	Report Report

	analysis
}

// analysis is what all parts of a profile need.
type analysis struct {
	plan      *plan.Plan
	graph     *graph.Graph
	held      holdings
	predicted Run
	measured  Run // the median
	runs      []Run
}

// New explains. The error is that of a plan, a run or a graph that do not belong
// together.
func New(in Input) (*Profile, error) {
	if err := in.check(); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	p := &Profile{analysis: analysis{plan: in.Plan, graph: in.Graph,
		held: replay(in.Plan, in.Graph), predicted: in.Predicted, measured: median(in.Measured),
		runs: in.Measured}}
	p.Report = Report{
		Type: "profile", Model: in.Model, Size: in.Size, Parameters: ops.Parameters(in.Graph),
		Plan: in.Plan.Title, Steps: len(in.Plan.Steps), Partitions: in.Plan.Parts,
		Machine: in.Machine, Facts: in.Facts,
		Predicted: p.clock(p.predicted, min(1, len(p.predicted))),
		Measured:  p.clock(p.measured, len(in.Measured)),
		Parts:     p.parts(), Copies: p.copies(), Again: p.again(), Ops: p.ops(),
		Kinds: p.kinds(),
	}
	for i, s := range in.Plan.Spaces {
		x := Space{Name: s.Name, Bytes: s.Bytes, Budget: s.Budget, Peak: p.peak(space.ID(i)),
			Predicted: p.timeline(space.ID(i), p.predicted),
			Measured:  p.timeline(space.ID(i), p.measured)}
		if s.Budget == math.MaxInt64 {
			x.Budget = 0
		}
		if i < len(in.Used) {
			x.Used = in.Used[i]
		}
		p.Report.Spaces = append(p.Report.Spaces, x)
	}
	p.Report.Advice = p.Report.advise(p.difference())
	return p, nil
}

// difference says how far the predicted time is off; nothing without both clocks.
func (p *Profile) difference() string {
	predicted, measured := p.Report.Predicted, p.Report.Measured
	if predicted == nil || measured == nil || predicted.StepMS <= 0 {
		return ""
	}
	return p.differ(predicted, measured).String()
}

// check reports what does not belong together.
func (in Input) check() error {
	if in.Plan == nil || in.Graph == nil {
		return fmt.Errorf("no plan or no graph")
	}
	if d := in.Graph.Digest(); in.Plan.Digest != d {
		return fmt.Errorf("the plan is for another graph, %q: this one is %q", in.Plan.Digest, d)
	}
	for i, r := range append([]Run{in.Predicted}, in.Measured...) {
		if (r != nil || i > 0) && len(r) != len(in.Plan.Steps) {
			return fmt.Errorf("a run has %d steps, the plan %d", len(r), len(in.Plan.Steps))
		}
		for k, s := range r {
			if s.Start < 0 || s.End < s.Start {
				return fmt.Errorf("step %d is done from %v to %v", k, s.Start, s.End)
			}
		}
	}
	return nil
}

// launches reports whether a step runs an operation.
func (a *analysis) launches(i int) bool {
	_, ok := a.plan.Steps[i].Do.(plan.Launch)
	return ok
}

// spans are those of the steps that run operations, or of those that copy.
func (a *analysis) spans(run Run, launches bool) []Span {
	var out []Span
	for i, s := range run {
		if a.launches(i) == launches {
			out = append(out, s)
		}
	}
	return out
}

// onHost reports whether a stream runs operations on the host.
func (a *analysis) onHost(id plan.StreamID) bool {
	e := a.plan.Streams[id].Engine
	return !e.Copies() && e.Writes() != space.Device
}

// copying reports whether a stream copies.
func (a *analysis) copying(id plan.StreamID) bool { return a.plan.Streams[id].Engine.Copies() }

// onDevice are the spans of the operations on the device.
func (a *analysis) onDevice(run Run) []Span {
	var out []Span
	for i, s := range run {
		if id := a.plan.Steps[i].Stream; !a.copying(id) && !a.onHost(id) {
			out = append(out, s)
		}
	}
	return out
}

// clock says where the time of a run goes.
func (a *analysis) clock(run Run, runs int) *Clock {
	if run == nil {
		return nil
	}
	computing, copying := union(a.spans(run, true)), union(a.spans(run, false))
	hidden := copying.both(computing)
	c := &Clock{
		StepMS: milliseconds(run.length()), Runs: runs,
		ComputeMS: milliseconds(computing.length()), CopyMS: milliseconds(copying.length()),
		HostMS:    milliseconds(computing.length() - union(a.onDevice(run)).length()),
		HiddenMS:  milliseconds(hidden),
		ExposedMS: milliseconds(copying.length() - hidden),
		IdleMS: milliseconds(run.length() - computing.length() - copying.length() +
			hidden),
	}
	took, steps := make([]time.Duration, len(a.plan.Streams)), make([]int, len(a.plan.Streams))
	for i, s := range a.plan.Steps {
		took[s.Stream] += run[i].length()
		steps[s.Stream]++
	}
	for i, s := range a.plan.Streams {
		c.Streams = append(c.Streams, Stream{s.Name, steps[i], milliseconds(took[i])})
	}
	return c
}

// holders is how many values a peak names.
const holders = 10

// peak says what sets the peak of a space.
func (a *analysis) peak(in space.ID) Peak {
	sets := a.plan.Peak(in, 0)
	out := Peak{Step: sets.Step, At: sets.At, Live: max(0, sets.Live),
		Gaps: sets.Bytes - max(0, sets.Live), Categories: map[Category]int64{}}
	if sets.Live < 0 {
		return out // nothing runs
	}
	s := a.plan.Steps[out.Step]
	out.Partition, out.Pos = s.Part, a.graph.Node(s.Node).Pos
	out.PredictedMS, out.MeasuredMS = begins(a.predicted, out.Step), begins(a.measured, out.Step)
	for id := range a.plan.Slots {
		slot := &a.plan.Slots[id]
		if slot.Space != in || out.Step < slot.From || out.Step > slot.To {
			continue
		}
		h := a.held.holder(a.plan, plan.SlotID(id), out.Step)
		out.Categories[h.Category] += h.Bytes
		out.Largest = append(out.Largest, h)
	}
	slices.SortStableFunc(out.Largest, func(x, y Holder) int { return sign(y.Bytes - x.Bytes) })
	out.Slots = len(out.Largest)
	out.Largest = out.Largest[:min(holders, out.Slots)]
	return out
}

func sign(x int64) int {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	}
	return 0
}

// begins is when a step of a run begins, if there is a run.
func begins(run Run, step int) *float64 {
	if run == nil {
		return nil
	}
	ms := milliseconds(run[step].Start)
	return &ms
}

// shapes are the sizes of a node's operands and of its first result.
func shapes(n *graph.Node) string {
	var in []string
	for _, t := range n.InTypes() {
		in = append(in, sizes(t))
	}
	s := strings.Join(in, ", ")
	if len(n.Out) > 0 {
		s += " → " + sizes(n.Out[0])
	}
	return s
}

func sizes(t graph.Type) string {
	if t.Rank() == 0 {
		return "1"
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(t.Sizes()), "[]"), " ", "×")
}
