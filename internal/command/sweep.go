package command

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
	"github.com/gomem/gomem/internal/chart"
	"github.com/gomem/gomem/internal/grid"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// curve is what budgets cost, from the smallest that works to one that is no budget
// any longer. Sizes are bytes, copies those of a training step.
type curve struct {
	Type      string         `json:"type"` // sweep
	Model     string         `json:"model"`
	Size      string         `json:"size"`
	Policy    planner.Policy `json:"policy"`
	MinDevice int64          `json:"min_device_bytes"`
	Vanilla   int64          `json:"vanilla_device_peak_bytes"`
	Machine   string         `json:"machine"` // that times are of
	Kappa     float64        `json:"kappa"`
	VanillaMS float64        `json:"vanilla_step_ms"` // 0: it has not been planned yet
	Points    []point        `json:"points"`          // by budget
	Complete  bool           `json:"complete"`

	given int64 // the budget that was given, or the model size's
}

// point is a plan.
type point struct {
	Budget       int64   `json:"device_budget_bytes"`
	Device       int64   `json:"device_peak_bytes"`
	Host         int64   `json:"host_peak_bytes"`
	Copied       int64   `json:"copied_bytes"` // beside inputs and results
	PredictedMS  float64 `json:"predicted_step_ms"`
	LowerBoundMS float64 `json:"lower_bound_ms"` // 0: it is not known
	Slower       float64 `json:"slower"`         // the predicted time over vanilla's
	Actions      actions `json:"actions"`
}

// maxPoints is the most budgets of a sweep, and usualPoints how many there are by default.
const maxPoints, usualPoints = 1000, 16

// sweep plans under many budgets.
func (c *planCmd) sweep(ctx context.Context, e *env, b *built, o gomem.Options) error {
	if c.Plot != "" { // better refused now than after all the planning
		f, err := createFile(string(c.Plot))
		if err != nil {
			return err
		}
		f.abandon()
	}
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
		Policy: cmp.Or(o.Policy, planner.Thesis), given: o.DeviceBytes}
	said := newProgress(w)
	vanilla, err := planAll(ctx, w, b, vanillaOptions(o))
	if err != nil {
		return x, err
	}
	x.VanillaMS = milliseconds(stepTime(b, vanilla))
	x.Machine, x.Kappa = vanilla.Results[0].Model.Name(), vanilla.Results[0].Model.Kappa()
	done := said.during("gomem: looking for the smallest budget")
	x.MinDevice, err = gomem.MinDevice(ctx, b.model.Graph, o, b.targets...)
	done()
	if err != nil {
		return x, b.inFlags(err, o)
	}
	x.Vanilla = vanilla.Peak(space.Device) + o.Beside()
	budgets := budgets(x.MinDevice, x.Vanilla, o.DeviceBytes, int64(cmp.Or(c.Points, usualPoints)))
	var series planner.Series
	for i, budget := range budgets {
		o.DeviceBytes = budget
		done := said.during(fmt.Sprintf("gomem: planning within %s (%d of %d)", size(budget), i+1,
			len(budgets)))
		p, err := series.Plan(ctx, b.model.Graph, o.Planning(), b.targets...)
		done()
		if err != nil {
			return x, b.inFlags(err, o)
		}
		x.Points = append(x.Points, x.point(b, o, planned{p}))
	}
	return x, nil
}

// point is the plan of some options in numbers.
func (x curve) point(b *built, o gomem.Options, p planned) point {
	r, budget := newReport(b.model, o, p, p), o.DeviceBytes
	took := milliseconds(stepTime(b, p))
	return point{Budget: budget, Device: r.DevicePeak, Host: r.HostPeak, Copied: r.copies(),
		PredictedMS: took, LowerBoundMS: milliseconds(lowerBound(b, p, p.bounds(b), budget)),
		Slower: took / x.VanillaMS, Actions: actionsOf(p.training(), p.Graph, p.Model)}
}

// budgets are some from the least to the most that are of interest, the denser the
// smaller, since there they cost the most, and the one that was given, if any.
func budgets(least, most, given, points int64) []int64 {
	list := []int64{least}
	last := points - 1
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

// print writes a table with a chart of the time beside it.
func (x curve) print(w io.Writer) {
	printFields(w, []field{
		{"model", fmt.Sprintf("%s %s under policy %s", x.Model, x.Size, x.Policy)},
		{"smallest possible", exact(x.MinDevice)},
		{"vanilla needs", exact(x.Vanilla)},
		{"times", x.times()},
	})
	fmt.Fprintln(w)
	t := grid.New(2, 3, 4, 5, 6)
	t.AppendHeader(table.Row{"", "budget", "device", "host", "copied", "time", ""})
	slowest := slices.MaxFunc(x.Points, func(a, b point) int {
		return cmp.Compare(a.Slower, b.Slower)
	})
	for _, p := range x.Points {
		mark := ""
		if p.Budget == x.given {
			mark = ">"
		}
		t.AppendRow(table.Row{mark, short(p.Budget), short(p.Device), short(p.Host),
			short(p.Copied), fmt.Sprintf("%.3f", p.Slower), bar(p.Slower, slowest.Slower)})
	}
	printTable(w, t)
	if slices.ContainsFunc(x.Points, func(p point) bool { return p.Slower < 0.995 }) {
		fmt.Fprintf(w, "\n%s\n", train.Folded(quicker, widthOf(w)))
	}
}

// quicker is why the time may be less than vanilla's.
const quicker = "Less than vanilla's time is no error: vanilla computes all on the device, as " +
	"the model has it, and the others update variables on the host meanwhile, or cut operations " +
	"into parts that take less."

// times says what the times are.
func (x curve) times() string {
	return fmt.Sprintf("of vanilla's %.3g ms, predicted for %s (κ %.0f)", x.VanillaMS, x.Machine,
		x.Kappa)
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
	case c.Points > 0 && !c.Sweep:
		return usagef("--points needs --sweep")
	case c.Points == 1 || c.Points > maxPoints:
		return usagef("--points %d: want a number from 2 to %d", c.Points, maxPoints)
	case c.Plot != "" && !c.Sweep:
		return usagef("--plot needs --sweep")
	case c.Plot != "" && !chart.Known(ext):
		return usagef("--plot %s: want a name that ends in .png or .svg", c.Plot)
	case c.Sweep && (c.Dump != "" || c.DumpPass != "" || c.Graph != ""):
		return usagef("a dump or graph is of one plan, --sweep of many: leave one out")
	}
	return nil
}

// advisable refuses flags that mean nothing beside --advise.
func (c *planCmd) advisable() error {
	if name := firstGiven([]option{{"sharding", c.Sharding}, {"dump", c.Dump != ""},
		{"dump-pass", c.DumpPass != ""}, {"graph", c.Graph != ""}}); c.Advise && name != "" {
		return usagef("--%s is of one plan, --advise of many: leave one of them out", name)
	}
	return nil
}
