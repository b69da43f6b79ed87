package profile

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomem/gomem/plan"
)

// telling is the share of a part's difference from which on a kind of operation explains it.
const telling = 0.25

// difference says how far the prediction of the time is off, and where most of that comes from:
// the part of the step that differs most in the direction in which the step does, and the kind
// of operation that does so within it.
type difference struct {
	whole, part, kind gap
}

// differ compares a run with what was predicted of it; both have clocks.
func (a *analysis) differ(predicted, measured *Clock) difference {
	d := difference{whole: gap{"the step", measured.StepMS, predicted.StepMS}}
	parts := partsOf(predicted, measured)
	d.part = d.whole.foremost(parts)
	for i, onHost := range []bool{false, true} {
		if d.part == parts[i] {
			d.kind = d.part.foremost(a.kindGaps(onHost))
		}
	}
	if math.Abs(d.kind.by()) < telling*math.Abs(d.part.by()) {
		d.kind = gap{}
	}
	return d
}

// partsOf are the parts of a step, which add up to it: the operations on the device first, then
// those on the host.
func partsOf(predicted, measured *Clock) []gap {
	return []gap{
		{"operations on the device", measured.ComputeMS - measured.HostMS,
			predicted.ComputeMS - predicted.HostMS},
		{"operations on the host alone", measured.HostMS, predicted.HostMS},
		{"copies that nothing hides", measured.ExposedMS, predicted.ExposedMS},
		{"time in which nothing runs", measured.IdleMS, predicted.IdleMS},
	}
}

// kindGaps are those of the kinds of operations on the device, or of those on the host while
// none runs on the device, which is what the parts have of them.
func (a *analysis) kindGaps(onHost bool) []gap {
	measured, predicted := a.kindTimes(a.measured, onHost), a.kindTimes(a.predicted, onHost)
	var out []gap
	for _, op := range slices.Sorted(maps.Keys(measured)) {
		out = append(out, gap{op, measured[op], predicted[op]})
	}
	return out
}

// kindTimes are the milliseconds of a run by the kind of operation.
func (a *analysis) kindTimes(run Run, onHost bool) map[string]float64 {
	var device busy
	if onHost {
		device = union(a.onDevice(run))
	}
	out := map[string]float64{}
	for i, s := range run {
		do, ok := a.plan.Steps[i].Do.(plan.Launch)
		if !ok || a.onHost(a.plan.Steps[i].Stream) != onHost {
			continue
		}
		took := s.length()
		if onHost {
			took -= device.within(s)
		}
		out[do.Op] += milliseconds(took)
	}
	return out
}

// String is the difference in a sentence.
func (d difference) String() string {
	s := fmt.Sprintf("The step took %s; %s were predicted (%+.0f %%)", duration(d.whole.measured),
		duration(d.whole.predicted), 100*d.whole.by()/d.whole.predicted)
	if math.Abs(d.whole.by()) < worthwhile*d.whole.predicted || d.part.name == "" {
		return s + "."
	}
	how := "the largest part"
	if 2*math.Abs(d.part.by()) >= math.Abs(d.whole.by()) {
		how = "most"
	}
	s += fmt.Sprintf(": %s of the difference is %s", how, d.part)
	if d.kind.name != "" {
		s += "; first " + d.kind.String()
	}
	return s + "."
}

// gap is what was measured and predicted of something, in milliseconds.
type gap struct {
	name                string
	measured, predicted float64
}

// by is how much more was measured than predicted.
func (g gap) by() float64 { return g.measured - g.predicted }

// foremost is the first of the gaps that explain this one best: those of its sign, since a part
// that was faster is no reason for being slower. It is none if no gap has the sign.
func (g gap) foremost(list []gap) gap {
	var best gap
	for _, x := range list {
		if x.by()*math.Copysign(1, g.by()) > math.Abs(best.by()) {
			best = x
		}
	}
	return best
}

// String is the gap in words.
func (g gap) String() string {
	return fmt.Sprintf("%s, %s measured and %s predicted", g.name, duration(g.measured),
		duration(g.predicted))
}
