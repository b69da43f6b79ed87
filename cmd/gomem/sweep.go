package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/machine"
	"github.com/gomem/gomem/space"
)

// curve is what budgets cost, from the smallest that works to one that is no budget
// any longer. Sizes are bytes, copies those of a training step.
type curve struct {
	Type      string         `json:"type"` // sweep
	Model     string         `json:"model"`
	Size      string         `json:"size"`
	Policy    compile.Policy `json:"policy"`
	MinDevice int64          `json:"min_device_bytes"`
	Vanilla   int64          `json:"vanilla_device_peak_bytes"`
	Machine   string         `json:"machine,omitempty"` // that times are of
	Kappa     float64        `json:"kappa,omitempty"`
	VanillaMS float64        `json:"vanilla_step_ms,omitempty"`
	Points    []point        `json:"points"` // by budget
	Complete  bool           `json:"complete"`

	given int64 // the budget that was given, or the model size's
}

// point is a plan.
type point struct {
	Budget      int64   `json:"device_budget_bytes"`
	Device      int64   `json:"device_peak_bytes"`
	Host        int64   `json:"host_peak_bytes"`
	Copied      int64   `json:"copied_bytes"` // beside inputs and results
	PredictedMS float64 `json:"predicted_step_ms,omitempty"`
	Slower      float64 `json:"slower,omitempty"` // the time over vanilla's
	Actions     actions `json:"actions"`
}

// sweepPoints is the number of budgets of a sweep, beside the one that was given.
const sweepPoints = 16

// sweep plans under many budgets.
func (c *planCmd) sweep(ctx context.Context, e *env, b *built, o gomem.Options) error {
	x, err := c.curve(ctx, e.stderr, b, o)
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	x.Complete = err == nil
	if c.Plot != "" && len(x.Points) > 0 {
		if err := x.plot(string(c.Plot)); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		err = cmp.Or(json.NewEncoder(e.stdout).Encode(x), err)
	case len(x.Points) > 0:
		x.print(e.stdout)
	}
	if err != nil {
		return &stoppedError{fmt.Sprintf("interrupted after %s",
			counted(len(x.Points), "budget"))}
	}
	return nil
}

// curve plans until a budget is reached that frees the plan of copies. What has been
// planned is there if the context ends.
func (c *planCmd) curve(ctx context.Context, w io.Writer, b *built, o gomem.Options) (curve,
	error) {
	x := curve{Type: "sweep", Model: b.model.Name, Size: b.model.Size,
		Policy: cmp.Or(o.Policy, compile.Thesis), given: o.DeviceBytes}
	said := newProgress(w)
	vanilla, err := planAll(ctx, w, b, vanillaOptions(o))
	if err != nil {
		return x, err
	}
	m, err := modelOf(c.Device, b, vanilla)
	if err != nil {
		return x, err
	}
	if m != nil {
		x.Machine, x.Kappa = m.Name(), m.Kappa()
		x.VanillaMS = milliseconds(stepTime(b, vanilla, m))
	}
	done := said.during("gomem: looking for the smallest budget")
	x.MinDevice, err = gomem.MinDevice(ctx, b.model.Graph, o, b.targets...)
	done()
	if err != nil {
		return x, inFlags(err)
	}
	x.Vanilla = vanilla.Peak(space.Device)
	budgets := budgets(x.MinDevice, x.Vanilla, o.DeviceBytes)
	for i, budget := range budgets {
		o.DeviceBytes = budget
		done := said.during(fmt.Sprintf("gomem: planning within %s (%d of %d)", size(budget), i+1,
			len(budgets)))
		p, err := planAll(ctx, io.Discard, b, o)
		done()
		if err != nil {
			return x, err
		}
		x.Points = append(x.Points, x.point(b, p, budget, m))
	}
	return x, nil
}

// point is a plan in numbers.
func (x curve) point(b *built, p planned, budget int64, m machine.Model) point {
	r := newReport(b.model, gomem.Options{}, p, p)
	y := point{Budget: budget, Device: r.DevicePeak, Host: r.HostPeak, Copied: r.copies(),
		Actions: actionsOf(p.training(), p.Graph)}
	if m != nil {
		y.PredictedMS = milliseconds(stepTime(b, p, m))
		y.Slower = y.PredictedMS / x.VanillaMS
	}
	return y
}

// budgets are the least and the most that are of interest, others between them, the
// denser the smaller, since there they cost the most, and the one that was given, if
// any.
func budgets(least, most, given int64) []int64 {
	list := []int64{least}
	const last = sweepPoints - 1
	for i := int64(1); i < last && most > least; i++ {
		list = append(list, least+(most-least)/(last*last)*i*i)
	}
	list = append(list, max(least, most))
	if given >= least && given < most {
		list = append(list, given)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// barColumns is the length of the longest bar of the chart.
const barColumns = 24

// print writes a table with a chart beside it: of the time, or if it is not known
// of what is copied.
func (x curve) print(w io.Writer) {
	printFields(w, []field{
		{"model", fmt.Sprintf("%s %s under policy %s", x.Model, x.Size, x.Policy)},
		{"smallest possible", exact(x.MinDevice)},
		{"vanilla needs", exact(x.Vanilla)},
		{"times", x.times()},
	})
	fmt.Fprintln(w)
	header, right := table.Row{"", "budget", "device", "host", "copied"}, []int{2, 3, 4, 5}
	if x.Machine != "" {
		header, right = append(header, "time"), append(right, 6)
	}
	t := newTable(right...)
	t.AppendHeader(append(header, ""))
	most := slices.Max(x.heights())
	for i, p := range x.Points {
		mark := ""
		if p.Budget == x.given {
			mark = ">"
		}
		row := table.Row{mark, short(p.Budget), short(p.Device), short(p.Host), short(p.Copied)}
		if x.Machine != "" {
			row = append(row, fmt.Sprintf("%.3f", p.Slower))
		}
		t.AppendRow(append(row, bar(x.heights()[i], most)))
	}
	printTable(w, t)
}

// times says what the times are.
func (x curve) times() string {
	if x.Machine == "" {
		return ""
	}
	return fmt.Sprintf("of vanilla's %.3g ms, predicted for %s (κ %.0f)", x.VanillaMS,
		x.Machine, x.Kappa)
}

// heights are what the chart is of.
func (x curve) heights() []float64 {
	var list []float64
	for _, p := range x.Points {
		if x.Machine == "" {
			list = append(list, float64(p.Copied))
		} else {
			list = append(list, p.Slower)
		}
	}
	return list
}

// bar is a part of the longest bar, in halves of a column.
func bar(value, most float64) string {
	halves := int(value/max(most, 1e-9)*2*barColumns + 0.5)
	return strings.Repeat("█", halves/2) + strings.Repeat("▌", halves%2)
}

// sweepable refuses flags that mean nothing beside others.
func (c *planCmd) sweepable() error {
	ext := filepath.Ext(string(c.Plot))
	switch {
	case c.Plot != "" && !c.Sweep:
		return usagef("--plot needs --sweep")
	case c.Plot != "" && ext != ".png" && ext != ".svg":
		return usagef("--plot %s: want a name that ends in .png or .svg", c.Plot)
	case c.Sweep && (c.Dump != "" || c.DumpPass != "" || c.Graph != ""):
		return usagef("a dump or graph is of one plan, --sweep of many: leave one out")
	}
	return nil
}
