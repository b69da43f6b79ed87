package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/machine/calibrate"
	"github.com/gomem/gomem/train"
)

// budgetRounds is how many steps a median is of.
const budgetRounds = 15

// budgetParts are the budgets, in parts of a hundred of what vanilla needs.
var budgetParts = []int64{100, 50, 25}

// budgets measures how long a step takes within a budget on this machine, beside what its plan
// says.
func budgets(ctx context.Context, w io.Writer) error {
	fmt.Fprintf(w, "The first objective's step within parts of the memory that `vanilla` needs, "+
		"planned by `auto` with measured prices, on the CPU device: the median of %d steps, all "+
		"sides of a model in turns. The last columns are over the step with all memory: what the "+
		"plans say, the median of what the steps of the same turn took, and of the time for which "+
		"processors worked for them, which what else runs on the machine does not add to.\n\n",
		budgetRounds)
	fmt.Fprintln(w, "| model | budget | MiB | peak MiB | plan | in MB | out MB | predicted ms | "+
		"measured ms | predicted | measured | worked | load |\n"+
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	dir, err := os.MkdirTemp("", "gomem-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, kind := range models6() {
		m, err := kind.build()
		if err == nil {
			err = (&budgeted{model: m, cache: dir}).rows(ctx, w)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	return nil
}

// budgeted is a model within several budgets.
type budgeted struct {
	model *models.Model
	cache string // of what operations take
	sides []*side
	parts []int64
}

// rows plans, measures and prints.
func (b *budgeted) rows(ctx context.Context, w io.Writer) error {
	target := train.Targets(&b.model.Model)[0]
	most, err := gomem.Plan(ctx, b.model.Graph, gomem.Options{Policy: planner.Vanilla}, target)
	if err != nil {
		return err
	}
	m, err := calibrate.Open(ctx, calibrate.Options{Cache: b.cache, Limit: time.Minute})
	if err != nil {
		return err
	}
	if err := m.Measure(ctx, most.Graph.Nodes()); err != nil {
		return err
	}
	for _, part := range budgetParts {
		bytes := (most.Peak(space.Device)*part + 99) / 100
		p, err := b.plan(ctx, m, bytes, target)
		if _, refused := errors.AsType[*gomem.ErrOutOfMemory](err); refused {
			continue
		}
		if err != nil {
			return err
		}
		b.sides, b.parts = append(b.sides, &side{planned: p}), append(b.parts, part)
	}
	times, err := b.measure(ctx, target.Name)
	if err != nil {
		return err
	}
	for i := range b.sides {
		b.print(w, i, times, most.Peak(space.Device))
	}
	return nil
}

// plan plans with what was measured. The graph that is taken may have operations that were not:
// they are measured, and it is planned again.
func (b *budgeted) plan(ctx context.Context, m *calibrate.Machine, bytes int64,
	target gomem.Target) (*gomem.Planned, error) {
	for {
		local := m.Local()
		o := gomem.Options{Policy: planner.Auto, DeviceBytes: bytes, Machine: local}
		p, err := gomem.Plan(ctx, b.model.Graph, o, target)
		if err != nil || known(local, p.Graph) {
			return p, err
		}
		before := len(local.Measured)
		if err := m.Measure(ctx, p.Graph.Nodes()); err != nil {
			return nil, err
		}
		if len(m.Local().Measured) == before {
			return p, nil // some cannot be measured
		}
	}
}

// known reports whether all operations of a graph have been measured.
func known(l *machine.Local, g *graph.Graph) bool {
	for _, n := range g.Nodes() {
		if _, ok := l.Measured[machine.Signature(n)]; n.Executes() && !ok {
			return false
		}
	}
	return true
}

// measure is what the steps of all sides took, in turns.
func (b *budgeted) measure(ctx context.Context, target string) ([]taken, error) {
	in := thesis.Feeds(b.model)
	all := make([]taken, len(b.sides))
	var steps []func() error
	for i, s := range b.sides {
		session, err := gomem.Open(s.planned, gomem.Options{})
		if err != nil {
			return nil, err
		}
		defer session.Close()
		steps = append(steps, func() error {
			before := gauge.CPUTime()
			_, err := session.Step(ctx, target, in)
			all[i].work = append(all[i].work, gauge.CPUTime()-before)
			return err
		})
	}
	times, err := timed(ctx, budgetRounds, steps...)
	for i := range times {
		all[i].times, all[i].work = times[i], all[i].work[1:] // the first warms up
	}
	return all, err
}

// taken is what each step of a side took, and for how long processors worked for it.
type taken struct{ times, work []time.Duration }

// print prints a side's row.
func (b *budgeted) print(w io.Writer, i int, all []taken, most int64) {
	r := b.sides[i].planned.Results[0]
	in, out := copied(r.Plan)
	fmt.Fprintf(w, "| %s | %d %% | %s | %s | %s | %.1f | %.1f | %s | %s | %.3f | %.3f | %.3f | "+
		"%s |\n",
		b.model.Name, b.parts[i], mib(most*b.parts[i]/100), mib(r.Plan.Spaces[space.Device].Bytes),
		ordered(r), float64(in)/1e6, float64(out)/1e6, ms(r.Step), ms(median(all[i].times)),
		r.Step.Seconds()/b.sides[0].planned.Results[0].Step.Seconds(),
		slower(all[i].times, all[0].times), slower(all[i].work, all[0].work), gauge.Load())
}

// ordered is how a plan orders its operations, or its partitions, if that is decided.
func ordered(r *planner.Result) string {
	switch {
	case r.Order != "":
		return r.Order
	case r.Options.Partition > 0:
		return fmt.Sprintf("%s, partitions of %d", r.Options.Strategy, r.Options.Partition)
	}
	return string(r.Options.Policy)
}

// slower is the median, over turns, of times over others.
func slower(times, others []time.Duration) float64 {
	var ratios []float64
	for n, t := range times {
		ratios = append(ratios, t.Seconds()/others[n].Seconds())
	}
	return median(ratios)
}

// copied is how many bytes a step copies to the device and away from it.
func copied(p *plan.Plan) (in, out int64) {
	t := p.Traffic()
	return t.In(), t.Out()
}

// kind is a model by its name.
type kind struct {
	name  string
	build func() (*models.Model, error)
}

// models6 are the five models, and a language model of a step that takes as long as theirs.
func models6() []kind {
	var all []kind
	for _, k := range models5 {
		all = append(all, kind{k.name, func() (*models.Model, error) { return k.build("s64") }})
	}
	return append(all, kind{"lstm-lm", func() (*models.Model, error) {
		c, err := models.NewLSTMLMConfig("s64")
		c.Units, c.Vocab = 500, 5000
		return built(c, err, models.LSTMLM)
	}})
}
