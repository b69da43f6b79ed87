package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/train"
)

// throttledRounds is how many steps a median is of.
const throttledRounds = 7

// throttled measures how long a step takes with less memory on this machine, with copies
// slowed down to the weight that they had on the thesis' machine.
func throttled(ctx context.Context, w io.Writer, o options) error {
	fmt.Fprintln(w, "The first objective's step within so much less memory than `vanilla` "+
		"needs, planned by `auto` with measured times of operations: the median time on the CPU "+
		"device over `vanilla`'s, and in brackets what was simulated. Copies are slowed down to "+
		"a κ of 730, the thesis', over the root of how much smaller the model is. A dash: "+
		"nothing fits. Then the thesis' policy (partitions of 20 operations), and `auto` within "+
		"the same peak. All sides take turns.")
	dir, err := os.MkdirTemp("", "gomem-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	of, rounds, kinds := reductions, throttledRounds, slices.Clone(models5)
	for i := range kinds {
		if kinds[i].name == "deepspeech" {
			kinds[i].build = unrolled
		}
	}
	if o.quick {
		of, rounds, kinds = of[1:3], 3, kinds[:2]
	}
	var f figure
	for _, size := range []struct {
		name    string
		smaller float64
	}{{"s64", 64}, {"s512", 512}} {
		kappa := 730 / math.Sqrt(size.smaller)
		p := panel{title: fmt.Sprintf("auto at %s on the CPU device, κ = %.0f; dashed: simulated",
			size.name, kappa)}
		header(w, of, "load", size.name, "κ", "GB/s", "MiB", "ms")
		for _, kind := range kinds {
			m, err := kind.build(size.name)
			if err != nil {
				return err
			}
			l := &slowed{model: m, kappa: kappa, rounds: rounds, of: of, cache: dir}
			if err := l.row(ctx, w); err != nil {
				return fmt.Errorf("%s %s: %w", m.Name, size.name, err)
			}
			p.add(l.measured, l.simulated)
		}
		f.panels = append(f.panels, p)
	}
	return f.save(o.plot)
}

// unrolled is DeepSpeech in operations of a frame: fused, most of it is one that needs all.
func unrolled(size string) (*models.Model, error) {
	c, err := models.NewDeepSpeechConfig(size)
	c.Unrolled = true
	return built(c, err, models.DeepSpeech)
}

// slowed is a model whose copies are slowed down to a κ.
type slowed struct {
	model  *models.Model
	kappa  float64
	rounds int
	of     []int64
	cache  string // of what operations take

	local    *machine.Local
	speed    float64 // of copies, bytes a second
	sides    []*side
	sessions []*gomem.Session

	measured, simulated line
}

// side is a way to run the step: a plan, or none if nothing fits.
type side struct {
	planned *gomem.Planned
	ratio   float64 // the measured time, of vanilla's
	ms      float64
}

// row plans, measures and prints.
func (l *slowed) row(ctx context.Context, w io.Writer) error {
	defer l.close()
	if err := l.prepare(ctx); err != nil {
		return err
	}
	peak := l.sides[0].planned.Peak(space.Device)
	for _, r := range l.of {
		if err := l.plan(ctx, planner.Auto, peak*(100-r)/100); err != nil {
			return err
		}
	}
	if err := l.plan(ctx, planner.Thesis, 0); err != nil {
		return err
	}
	taken := l.sides[len(l.sides)-1].planned.Peak(space.Device)
	if err := l.plan(ctx, planner.Auto, taken); err != nil {
		return err
	}
	if err := l.measure(ctx, l.speed); err != nil {
		return err
	}
	l.print(w, peak, taken)
	return nil
}

// prepare plans vanilla, measures what its operations take, and works out how fast copies
// may be.
func (l *slowed) prepare(ctx context.Context) error {
	if err := l.plan(ctx, planner.Vanilla, 0); err != nil {
		return err
	}
	var err error
	if l.local, err = measured(ctx, l.sides[0].planned.Graph, l.cache); err != nil {
		return err
	}
	if err := l.measure(ctx, 0); err != nil {
		return err
	}
	// F·e/(2·b) for e = 4 bytes an element: F is the speed of a vanilla step.
	l.speed = 2 * flops(l.model) / (l.sides[0].ms / 1e3) / l.kappa
	l.local.Slow(l.speed)
	l.sides = nil
	return l.plan(ctx, planner.Vanilla, 0)
}

// plan adds the side of a policy within a budget of the device, or without one.
func (l *slowed) plan(ctx context.Context, p planner.Policy, budget int64) error {
	o := gomem.Options{Policy: p, DeviceBytes: budget}
	if l.local != nil {
		o.Machine = l.local
	}
	planned, err := gomem.Plan(ctx, l.model.Graph, o, train.Targets(&l.model.Model)[0])
	if _, refused := errors.AsType[*gomem.ErrOutOfMemory](err); refused {
		planned, err = nil, nil
	}
	l.sides = append(l.sides, &side{planned: planned})
	return err
}

// measure runs all sides in turn, with copies of a speed, or as fast as memory if that is
// zero. Peaks must be those that were predicted.
func (l *slowed) measure(ctx context.Context, speed float64) error {
	defer l.close()
	in, target := thesis.Feeds(l.model), train.Targets(&l.model.Model)[0].Name
	var run []*side
	var steps []func() error
	for _, s := range l.sides {
		if s.planned == nil {
			continue
		}
		session, err := gomem.Open(s.planned, gomem.Options{CopyBytesPerSecond: int64(speed)})
		if err != nil {
			return err
		}
		l.sessions = append(l.sessions, session)
		run = append(run, s)
		steps = append(steps, func() error { _, err := session.Step(ctx, target, in); return err })
	}
	times, err := interleaved(ctx, l.rounds, steps...)
	if err != nil {
		return err
	}
	for i, s := range run {
		s.ms, s.ratio = times[i].Seconds()*1e3, times[i].Seconds()/times[0].Seconds()
		for _, u := range l.sessions[i].Usage() {
			if u.Actual != u.Predicted {
				return fmt.Errorf("%s used %d bytes, predicted %d", u.Space, u.Actual, u.Predicted)
			}
		}
	}
	return nil
}

func (l *slowed) close() {
	for _, s := range l.sessions {
		s.Close()
	}
	l.sessions = nil
}

// print prints the row, and notes its lines.
func (l *slowed) print(w io.Writer, peak, taken int64) {
	vanilla, rest := l.sides[0], l.sides[1:]
	fmt.Fprintf(w, "| %s | %.0f | %.3g | %s | %.1f |", l.model.Name, l.kappa, l.speed/1e9,
		mib(peak), vanilla.ms)
	l.measured.name = l.model.Name
	l.simulated = line{name: "simulated", faint: true}
	for i, r := range l.of {
		l.measured.add(float64(r), rest[i].ratio)
		l.simulated.add(float64(r), l.predicted(rest[i]))
		fmt.Fprintf(w, " %s |", l.cell(rest[i]))
	}
	rest = rest[len(l.of):]
	fmt.Fprintf(w, " −%.1f %%: %s | %s | %s |\n", 100-100*float64(taken)/float64(peak),
		l.cell(rest[0]), l.cell(rest[1]), gauge.Load())
}

// predicted is the simulated time of a side's step, of vanilla's; 0 if there is no plan.
func (l *slowed) predicted(s *side) float64 {
	if s.planned == nil {
		return 0
	}
	return float64(s.planned.Results[0].Step) / float64(l.sides[0].planned.Results[0].Step)
}

// cell is a side in a table.
func (l *slowed) cell(s *side) string {
	if s.planned == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.2f)", s.ratio, l.predicted(s))
}
