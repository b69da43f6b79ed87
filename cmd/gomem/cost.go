package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/gomem/gomem"
)

// cost is what a budget costs.
type cost struct {
	// MinDevice is the smallest device budget that works with the options.
	MinDevice int64 `json:"min_device_bytes"`
	// Machine is the one that times are of; without one, there are none.
	Machine     string  `json:"machine,omitempty"`
	Kappa       float64 `json:"kappa,omitempty"` // see machine.Model
	PredictedMS float64 `json:"predicted_step_ms,omitempty"`
	// Slower is the predicted time of a step over vanilla's; 0 if it is not known.
	Slower  float64 `json:"slower,omitempty"`
	Actions actions `json:"actions"`
}

// costOf weighs a plan against vanilla's.
func costOf(ctx context.Context, device string, b *built, o gomem.Options,
	p, vanilla planned) (cost, error) {
	c := cost{Actions: actionsOf(p.training(), p.Graph)}
	m, err := modelOf(device, b, vanilla)
	if err != nil {
		return c, err
	}
	if m != nil {
		took := stepTime(b, p, m)
		c.Machine, c.Kappa = m.Name(), m.Kappa()
		c.PredictedMS = milliseconds(took)
		c.Slower = float64(took) / float64(max(stepTime(b, vanilla, m), 1))
	}
	c.MinDevice, err = gomem.MinDevice(ctx, b.model.Graph, o, b.targets...)
	return c, inFlags(err)
}

// costs is what the budget costs, in a line. Vanilla has nothing to pay for.
func (r report) costs(c cost) string {
	if r.Policy == baseline {
		return ""
	}
	free := "vanilla fits from "
	if r.Policy.Searches() {
		free = "fits without copying from "
	}
	parts := []string{free + short(r.VanillaDevice)}
	if effect := r.effect(c); r.DeviceBudget > 0 {
		parts = append(parts, fmt.Sprintf("at %s %s", short(r.DeviceBudget), effect))
	}
	return strings.Join(append(parts, "least "+short(c.MinDevice)), "; ")
}

// effect is what a plan does to the time of a step, or else how much it copies.
func (r report) effect(c cost) string {
	switch {
	case c.Slower > 0:
		return slower(c.Slower)
	case r.copies() == 0:
		return "it copies nothing"
	}
	return "it copies " + short(r.copies())
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
