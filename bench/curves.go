package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/bound"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/order"
	"github.com/gomem/gomem/planner/program"
)

// reductions of the device's memory, in percent of what vanilla needs.
var reductions = []int64{30, 50, 65, 75, 80, 85, 90, 95}

// curves prints how long a step of the thesis' models takes with less memory, on
// machines that are known by their prices.
func curves(ctx context.Context, w io.Writer, o options) error {
	fmt.Fprintln(w, "The first objective's step within so much less memory than `vanilla` "+
		"needs, planned by `auto` at the thesis' sizes: simulated time of the packed and "+
		"verified plan over `vanilla`'s; in brackets the lower bound (package bound, of the "+
		"graph that is not cut) where it is above 1.00. A dash: nothing fits. Then the thesis' "+
		"policy (partitions of 20 operations), and `auto` within the same peak.")
	var f figure
	var packed calendars
	names := []string{machine.TitanX, machine.TitanXThesis, machine.H200}
	of := append([]int64{0}, reductions...) // there, updates on the host may be faster
	if o.quick {
		names, of = names[:1], of[2:4]
	}
	for _, name := range names {
		p := panel{title: fmt.Sprintf("auto on %s, simulated", name)}
		profile, err := machine.Named(name)
		if err != nil {
			return err
		}
		header(w, of, "slowest plan", name, "operations", "GB", "ms")
		for _, m := range thesisModels {
			l := newWorkload(m.name, profile)
			l.packed = &packed
			if err := l.row(ctx, w, of, m.build); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			p.add(l.curve)
		}
		f.panels = append(f.panels, p)
	}
	fmt.Fprintf(w, "\n%s\n", &packed)
	return f.save(o.plot)
}

// header prints the first lines of a table of reductions.
func header(w io.Writer, of []int64, last string, first ...string) {
	cells := first
	for _, r := range of {
		cells = append(cells, fmt.Sprintf("%d %%", r))
	}
	cells = append(cells, "thesis", "auto", last)
	fmt.Fprintf(w, "\n| %s |\n%s|\n", strings.Join(cells, " | "),
		strings.Repeat("|---", len(cells)))
}

// workload is a model on a machine.
type workload struct {
	name    string
	graph   *graph.Graph
	target  planner.Target
	options planner.Options
	slowest float64 // seconds that the slowest plan took to make
	packed  *calendars
	curve   line
}

func newWorkload(name string, profile *machine.Profile) *workload {
	return &workload{name: name, options: planner.Options{Machine: profile, Model: name},
		packed: &calendars{}}
}

// row prints a model.
func (l *workload) row(ctx context.Context, w io.Writer, of []int64,
	build func() (*models.Model, error)) error {
	l.curve.name = l.name
	m, err := build()
	if err != nil {
		return err
	}
	first := m.Objectives[0]
	l.graph = m.Graph
	l.target = planner.Target{Name: first.Name, Fetches: []graph.Value{first.Loss}}
	for _, n := range first.Updates {
		l.target.Updates = append(l.target.Updates, n.ID)
	}
	vanilla, err := l.plan(ctx, planner.Vanilla, 0)
	if err != nil {
		return err
	}
	peak, unit := vanilla.Peak(space.Device), float64(vanilla.Results[0].Step)
	fmt.Fprintf(w, "| %s | %d | %.2f | %s |", l.name, vanilla.Results[0].Plan.Launches(),
		float64(peak)/1e9, ms(vanilla.Results[0].Step))
	least, err := l.bounds(ctx, vanilla)
	if err != nil {
		return err
	}
	for _, r := range of {
		budget := peak * (100 - r) / 100
		ratio, err := l.cell(ctx, w, budget, unit)
		if err != nil {
			return err
		}
		l.curve.add(float64(r), ratio)
		if b := float64(least.Time(budget)) / unit; b > 1.005 && b < 100 {
			fmt.Fprintf(w, " (%.2f)", b)
		}
		fmt.Fprint(w, " |")
	}
	return l.beside(ctx, w, peak, unit)
}

// beside prints the thesis' policy and auto within its peak.
func (l *workload) beside(ctx context.Context, w io.Writer, peak int64, unit float64) error {
	thesis, err := l.plan(ctx, planner.Thesis, 0)
	if err != nil {
		return err
	}
	taken := thesis.Peak(space.Device)
	fmt.Fprintf(w, " −%.1f %%: %.2f |", 100-100*float64(taken)/float64(peak),
		float64(thesis.Results[0].Step)/unit)
	if _, err := l.cell(ctx, w, taken, unit); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, " | %.1f s |\n", l.slowest)
	return err
}

// cell prints how long a step takes within a budget, and returns that; 0 if there is no
// plan.
func (l *workload) cell(ctx context.Context, w io.Writer, budget int64,
	unit float64) (float64, error) {
	p, err := l.plan(ctx, planner.Auto, budget)
	if _, refused := errors.AsType[*planner.ErrOutOfMemory](err); refused {
		_, err = fmt.Fprint(w, " –")
		return 0, err
	}
	if err != nil {
		return 0, err
	}
	l.slowest = max(l.slowest, p.Results[0].Took.Seconds())
	l.packed.add(p.Results[0], fmt.Sprintf("%s on %s within %.3f GB", l.name,
		p.Results[0].Model.Name(), float64(budget)/1e9))
	ratio := float64(p.Results[0].Step) / unit
	_, err = fmt.Fprintf(w, " %.3f", ratio)
	return ratio, err
}

func (l *workload) plan(ctx context.Context, p planner.Policy, budget int64) (*planner.Planned,
	error) {
	o := l.options
	o.Policy, o.DeviceBytes = p, budget
	return planner.Plan(ctx, l.graph, o, l.target)
}

// bounds are the lower bounds of the graph that vanilla runs, in order of creation.
func (l *workload) bounds(ctx context.Context, v *planner.Planned) (*bound.Bounds, error) {
	p := program.New(v.Graph, v.Targets[0].Fetches, v.Targets[0].Updates)
	if _, err := program.Run(ctx, p, []program.Pass{program.DeadCode(), placement.Pass(true),
		order.Creation()}); err != nil {
		return nil, err
	}
	return bound.New(p, v.Results[0].Model), nil
}

// thesisModels are the models at the sizes and batches of the thesis' table 6.6.
var thesisModels = []struct {
	name  string
	build func() (*models.Model, error)
}{
	{"resnet", func() (*models.Model, error) {
		c, err := models.NewResNetConfig("base")
		c.Images = 57
		return built(c, err, models.ResNet)
	}},
	{"transformer", func() (*models.Model, error) {
		c, err := models.NewTransformerConfig("base")
		c.Pairs, c.Length = 352, 32
		return built(c, err, models.Transformer)
	}},
	{"deepspeech", func() (*models.Model, error) {
		c, err := models.NewDeepSpeechConfig("base")
		c.Frames, c.Labels, c.Unrolled = 165, 40, true
		return built(c, err, models.DeepSpeech)
	}},
	{"wgan", func() (*models.Model, error) {
		c, err := models.NewWGANConfig("base")
		c.Images = 90
		return built(c, err, models.WGAN)
	}},
	{"moe", func() (*models.Model, error) {
		c, err := models.NewMoEConfig("base")
		c.Pairs = 4
		return built(c, err, models.MoE)
	}},
}
