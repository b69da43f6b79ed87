package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/planner/bound"
	"github.com/gomem/gomem/train"
)

// cost is what a budget costs.
type cost struct {
	// MinDevice is the smallest device budget that works with the options; 0: not known yet.
	MinDevice int64   `json:"min_device_bytes,omitempty"`
	Machine   string  `json:"machine"` // that times are of
	Kappa     float64 `json:"kappa"`   // see machine.Model
	// PredictedMS is the time of a training step, and LowerBoundMS less than any plan of
	// the same order and budget has; 0 if it is not known.
	PredictedMS  float64 `json:"predicted_step_ms"`
	LowerBoundMS float64 `json:"lower_bound_ms"`
	Slower       float64 `json:"slower"` // the predicted time over vanilla's
	Actions      actions `json:"actions"`
}

// costOf weighs a plan, with the bounds of its objectives, against vanilla's.
func costOf(ctx context.Context, b *built, o gomem.Options, p, vanilla planned,
	bounds []*bound.Bounds) (cost, error) {
	c := weighed(b, o, p, vanilla, bounds)
	var err error
	c.MinDevice, err = leastOf(ctx, p, o)
	return c, err
}

// weighed is costOf without the smallest budget, which takes as long as many plans.
func weighed(b *built, o gomem.Options, p, vanilla planned, bounds []*bound.Bounds) cost {
	m := p.Results[0].Model
	return cost{
		Machine: m.Name(), Kappa: m.Kappa(),
		PredictedMS:  milliseconds(stepTime(b, p)),
		LowerBoundMS: milliseconds(lowerBound(b, p, bounds, o.DeviceBytes)),
		Slower:       ratio(stepTime(b, p), stepTime(b, vanilla)),
		Actions:      actionsOf(p.training(), p.Graph, p.Model),
	}
}

// leastOf is the smallest device budget that works with the options.
func leastOf(ctx context.Context, p planned, o gomem.Options) (int64, error) {
	least, err := gomem.MinDeviceOf(ctx, p.Planned, o)
	return least, inFlags(err)
}

// ratio is a time over another.
func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// costs is what the budget costs, in a line. Vanilla has nothing to pay for,
// and of a process of several the whole model's says nothing.
func (r report) costs(c cost) string {
	if r.Policy == baseline || r.apart {
		return ""
	}
	free := "vanilla fits from "
	if r.Policy.Searches() && !r.divided {
		free = "fits without copying from "
	}
	parts := []string{free + short(r.VanillaDevice)}
	if r.DeviceBudget > 0 {
		parts = append(parts, fmt.Sprintf("at %s %s", short(r.DeviceBudget), r.effect(c)))
	}
	if c.MinDevice > 0 {
		parts = append(parts, "least "+short(c.MinDevice))
	}
	return strings.Join(parts, "; ")
}

// effect is what a plan does to the time of a step.
func (r report) effect(c cost) string {
	if r.copies() == 0 && c.Actions.Recomputed == 0 {
		return "nothing is copied"
	}
	return slower(c.Slower)
}

// slower is a ratio of times in words.
func slower(ratio float64) string {
	percent := 100 * (ratio - 1)
	switch {
	case ratio >= 2:
		return fmt.Sprintf("%.1f times the time", ratio)
	case percent >= 0.5:
		return fmt.Sprintf("about %.0f%% slower", percent)
	case percent <= -0.5:
		return fmt.Sprintf("about %.0f%% faster", -percent)
	}
	return "no slower"
}

// short is a size of few figures.
func short(bytes int64) string {
	x := float64(bytes)
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	for x >= 1024 && len(units) > 1 {
		x, units = x/1024, units[1:]
	}
	switch {
	case x >= 100 || len(units) == 6:
		return fmt.Sprintf("%.0f%s", x, units[0])
	}
	return fmt.Sprintf("%.3g%s", x, units[0])
}

// copies are what a plan copies beside inputs and results, in bytes.
func (r report) copies() int64 {
	return r.SwapIn + r.SwapOut + r.Stage + r.Gradients + r.WriteBack
}

// late looks for the smallest budget once there was a step, beside those that follow.
type late struct {
	ctx  context.Context
	find func(context.Context) (int64, error) // nil: it is known

	least *soon[int64]
	stop  context.CancelFunc
}

func (l *late) observe(e train.Event) {
	if e.Kind != train.Step || l.find == nil || l.least != nil {
		return
	}
	ctx, stop := context.WithCancel(l.ctx)
	l.stop, l.least = stop, begin(func() (int64, error) { return l.find(ctx) })
}

// found waits for it; 0 if there is none, or nobody waits any more.
func (l *late) found() int64 {
	if l.least == nil {
		return 0
	}
	least, err := l.least.wait()
	if err != nil {
		return 0
	}
	return least
}

// end ends the search.
func (l *late) end() {
	if l.least != nil {
		l.stop()
		<-l.least.done
	}
}
