package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/plan/space"
)

// The parts of a step from which on something is what limits it.
const (
	mostly   = 0.85 // computing
	alarming = 0.10 // copies that nothing hides, or idleness
	slow     = 0.10 // of the machine's speed, for an operation that takes
	heavy    = 0.05 // this part of the step
	gappy    = 0.05 // of a memory that is gaps

	worthwhile = 0.01 // of the time, or of the copies, to change a flag for
)

// advise says in plain words what limits, how that differs from what was predicted, what would
// make it free, and what would help.
func (r *Report) advise(difference string) []string {
	out := []string{}
	say := func(sentence string) {
		if sentence != "" {
			out = append(out, sentence)
		}
	}
	say(r.limit())
	say(difference)
	say(r.sluggish())
	say(r.free())
	say(r.savings())
	say(r.holders())
	return out
}

// clock is the measured one, else the predicted, else nil.
func (r *Report) clock() *Clock { return cmp.Or(r.Measured, r.Predicted) }

// limit says what the time of a step is spent on.
func (r *Report) limit() string {
	c := r.clock()
	if c == nil || c.StepMS <= 0 {
		return ""
	}
	exposed, idle := c.ExposedMS/c.StepMS, c.IdleMS/c.StepMS
	switch {
	case exposed >= alarming && exposed >= idle:
		return fmt.Sprintf("Copies limit: during %s of the step bytes move and nothing computes%s.",
			percent(exposed), r.worstCopies())
	case c.HostMS/c.StepMS >= alarming && c.HostMS/c.StepMS >= idle:
		return fmt.Sprintf("The host limits: during %s of the step it alone computes, updating "+
			"variables for which the device waits.", percent(c.HostMS/c.StepMS))
	case idle >= alarming:
		return fmt.Sprintf("Neither computing nor copies limit: during %s of the step nothing "+
			"runs, since operations are short or streams wait for each other. Fewer and larger "+
			"operations help: a larger batch, or fusion.", percent(idle))
	case c.ComputeMS/c.StepMS >= mostly:
		return fmt.Sprintf("Computing limits: operations run during %s of the step; copies that "+
			"nothing hides take %s.", percent(c.ComputeMS/c.StepMS), percent(exposed))
	}
	return fmt.Sprintf("Nothing stands out: operations run during %s of the step, copies alone "+
		"during %s, and nothing during %s.", percent(c.ComputeMS/c.StepMS), percent(exposed),
		percent(idle))
}

// worstCopies names the reason of the copies of which the most is exposed.
func (r *Report) worstCopies() string {
	exposed := func(c Copies) float64 {
		if t := cmp.Or(c.Measured, c.Predicted); t != nil {
			return t.MS - t.HiddenMS
		}
		return 0
	}
	if len(r.Copies) == 0 {
		return ""
	}
	worst := slices.MaxFunc(r.Copies, func(a, b Copies) int {
		return cmp.Compare(exposed(a), exposed(b))
	})
	return fmt.Sprintf(", most of them to %s: %s of copies that nothing hides",
		purposes(worst.Reason), duration(exposed(worst)))
}

// purposes says in words what copies of a reason are for.
func purposes(reason string) string {
	words := map[string]string{
		"swap-out": "swap values out", "swap-in": "swap values in", "stage": "stage variables",
		"feed": "feed inputs", "gradient": "move gradients", "fetch": "fetch results",
		"write-back": "write variables back",
	}
	return cmp.Or(words[reason], reason)
}

// sluggish names the kind of operation that takes long and is far from the
// machine's speed, though it computes a lot for each byte.
func (r *Report) sluggish() string {
	c := r.clock()
	if c == nil || r.Machine.PeakGFLOPS <= 0 {
		return ""
	}
	for _, k := range r.Kinds {
		intense := k.Bytes > 0 && float64(k.FLOPs)/float64(k.Bytes) >= 8
		if intense && k.ms() >= heavy*c.StepMS && k.GFLOPS < slow*r.Machine.PeakGFLOPS {
			return fmt.Sprintf("%s takes %s at %s of the machine's %s GFLOP/s.", k.Op,
				duration(k.ms()), figure(k.GFLOPS), figure(r.Machine.PeakGFLOPS))
		}
	}
	return ""
}

// free says what device budget makes all copies unnecessary.
func (r *Report) free() string {
	need, device := r.Facts.VanillaDevice, r.Spaces[space.Device]
	switch {
	case need <= 0:
		return ""
	case !r.moves():
		return "The plan copies nothing but inputs and results: more memory would not make it " +
			"faster."
	case device.Budget > 0 && need > device.Budget:
		s := fmt.Sprintf("With a device budget of %s (now %s) nothing need be copied", size(need),
			size(device.Budget))
		if r.Facts.MinDevice > 0 {
			s += fmt.Sprintf("; the least with these flags is %s", size(r.Facts.MinDevice))
		}
		return s + "."
	}
	return fmt.Sprintf("All of it fits the device without copies, in %s: --policy vanilla copies "+
		"nothing.", size(need))
}

// moves reports whether the plan copies more than inputs and results.
func (r *Report) moves() bool {
	return slices.ContainsFunc(r.Copies, func(c Copies) bool {
		return c.Reason != "feed" && c.Reason != "fetch"
	})
}

// copied is how many bytes the plan copies.
func (r *Report) copied() int64 {
	var total int64
	for _, c := range r.Copies {
		total += c.Bytes
	}
	return total
}

// savings names the change of a flag that saves the most time, or copies where times
// are not known, within the budgets; and the one that saves the most memory.
func (r *Report) savings() string {
	var quicker, smaller *Change
	for i := range r.Facts.Changes {
		c := &r.Facts.Changes[i]
		if !c.Fits {
			continue
		}
		if r.saves(c) > worthwhile && (quicker == nil || r.saves(c) > r.saves(quicker)) {
			quicker = c
		}
		if c.DeviceBytes < r.Spaces[space.Device].Bytes &&
			(smaller == nil || c.DeviceBytes < smaller.DeviceBytes) {
			smaller = c
		}
	}
	var said []string
	if quicker != nil {
		said = append(said, r.quicker(quicker))
	}
	if smaller != nil && smaller != quicker {
		said = append(said, fmt.Sprintf("%s would need %s of device memory instead of %s",
			smaller.Flag, size(smaller.DeviceBytes), size(r.Spaces[space.Device].Bytes)))
	}
	if said == nil {
		return ""
	}
	return strings.Join(said, "; ") + "."
}

// saves is the part of the predicted time that a change saves; of the copies, if
// times are not known.
func (r *Report) saves(c *Change) float64 {
	if r.Predicted != nil && c.StepMS > 0 {
		return 1 - c.StepMS/max(r.Predicted.StepMS, 1e-9)
	}
	return 1 - float64(c.CopiedBytes)/float64(max(r.copied(), 1))
}

// quicker says what a change saves.
func (r *Report) quicker(c *Change) string {
	in := fmt.Sprintf("in %s of device memory", size(c.DeviceBytes))
	if r.Predicted != nil && c.StepMS > 0 {
		return fmt.Sprintf("%s is predicted to take %s a step instead of %s, %s", c.Flag,
			duration(c.StepMS), duration(r.Predicted.StepMS), in)
	}
	return fmt.Sprintf("%s would copy %s a step instead of %s, %s", c.Flag, size(c.CopiedBytes),
		size(r.copied()), in)
}

// holders says what the device's peak consists of.
func (r *Report) holders() string {
	device := r.Spaces[space.Device]
	if len(device.Peak.Largest) == 0 || device.Peak.Live == 0 {
		return ""
	}
	most := slices.MaxFunc(Categories(), func(a, b Category) int {
		return cmp.Compare(device.Peak.Categories[a], device.Peak.Categories[b])
	})
	h := device.Peak.Largest[0]
	s := fmt.Sprintf("At the device's peak %s is %s; the largest value is %s, %s",
		percent(float64(device.Peak.Categories[most])/float64(device.Peak.Live)), most, h.Value,
		size(h.Bytes))
	if h.Pos != "" {
		s += ", of " + h.Pos
	}
	if gaps := float64(device.Peak.Gaps) / float64(device.Bytes); gaps >= gappy {
		s += fmt.Sprintf("; %s of the peak is gaps between values", percent(gaps))
	}
	return s + "."
}
