package command

import (
	"fmt"
	"io"
	"time"

	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/simulate"
	"github.com/gomem/gomem/train"
)

// busy is how long a training step takes by the prices that plans were made by, and how
// long each kind of engine is busy meanwhile: operations on the device, copies towards
// it and away from it, and what runs or is copied beside it. Of several compute streams it is
// the sum, which may be more than a step.
type busy struct {
	Machine    string  `json:"machine"`
	Step       float64 `json:"step_ms"`
	Operations float64 `json:"operations_ms"`
	In         float64 `json:"in_ms"`
	Out        float64 `json:"out_ms"`
	Elsewhere  float64 `json:"elsewhere_ms"`
	Streams    int     `json:"compute_streams"` // the most of a plan
}

// busyOf adds up every objective as often as it is executed.
func busyOf(b *built, p planned) busy {
	x := busy{Machine: p.Results[0].Model.Name()}
	for i, o := range b.model.Objectives {
		r := p.Results[i]
		t := simulate.Simulate(r.Plan, p.Graph, r.Model)
		ms := func(d time.Duration) float64 { return milliseconds(time.Duration(o.Times) * d) }
		x.Step += ms(t.Step)
		streams := 0
		for k, s := range r.Plan.Streams {
			if s.Engine == space.Compute {
				streams++
			}
			*x.part(s.Engine) += ms(t.Busy[k])
		}
		x.Streams = max(x.Streams, streams)
	}
	return x
}

// part is where the time of an engine counts.
func (x *busy) part(e space.Engine) *float64 {
	switch e {
	case space.Compute:
		return &x.Operations
	case space.CopyIn:
		return &x.In
	case space.CopyOut:
		return &x.Out
	}
	return &x.Elsewhere
}

// print writes it in a sentence.
func (x busy) print(w io.Writer) {
	on := ""
	if x.Streams > 1 {
		on = fmt.Sprintf(" on %d streams together", x.Streams)
	}
	fmt.Fprintf(w, "\n%s\n", train.Folded(fmt.Sprintf("by the prices of %s, of a step's %.4g ms "+
		"the device computes for %.4g%s; copies in take %.4g, copies out %.4g, the host %.4g.",
		x.Machine, x.Step, x.Operations, on, x.In, x.Out, x.Elsewhere), widthOf(w)))
}
