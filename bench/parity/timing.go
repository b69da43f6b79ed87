package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/bench/internal/turns"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/planner"
)

// rate is small, so that all steps compute about the same.
const rate = 1e-6

// stepper is a side of the timing: gomem with a model, everything resident, by gradient
// descent.
type stepper struct {
	session *gomem.Session
	feeds   gomem.Feeds
	record  record // what the other side starts from
}

// newStepper compiles a training step, and initializes it.
func newStepper(ctx context.Context, s subject, threads int) (*stepper, error) {
	parameters := s.parameters()
	g := s.model.Graph
	speed := g.Input("descent", tensor.Of(graph.F32))
	var descent []*graph.Node
	for i, grad := range autodiff.Grad(s.objective.Loss, parameters...) {
		descent = append(descent, ops.SGD(parameters[i], grad, speed))
	}
	if err := g.Err(); err != nil {
		return nil, err
	}
	o := gomem.Options{Seed: 1, Threads: threads}.With(planner.Options{Policy: planner.Vanilla})
	targets := []gomem.Target{gomem.Updating("train", descent, s.objective.Loss)}
	noise := s.noise()
	if len(noise) > 0 {
		targets = append(targets, gomem.Target{Name: "noise", Fetches: noise})
	}
	session, err := gomem.Compile(ctx, g, o, targets...)
	if err != nil {
		return nil, err
	}
	t := &stepper{session: session, feeds: s.batch(newRand(2))}
	t.feeds[speed] = gomem.Scalar(rate)
	if err := t.describe(ctx, s, noise); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return t, nil
}

// describe records the model for the peer. Noise is the same at every step.
func (t *stepper) describe(ctx context.Context, s subject, noise []graph.Value) (err error) {
	if t.record, err = s.start(t.session); err != nil {
		return err
	}
	for _, v := range s.model.Data {
		t.record.add("input/"+v.Node.Name, t.feeds[v])
	}
	for _, p := range s.parameters() { // the names alone count
		t.record.add("gradient/"+p.Node.Name, tensor.FromF32([]float32{0}, 1))
	}
	if len(noise) == 0 {
		return nil
	}
	drawn, err := t.session.Step(ctx, "noise", gomem.Feeds{s.model.Seed: t.feeds[s.model.Seed]})
	for i, x := range drawn {
		t.record.add("noise/"+noise[i].Node.Op.Name(), x)
	}
	return err
}

// step runs a training step.
func (t *stepper) step(ctx context.Context) (time.Duration, float64, error) {
	start := time.Now()
	out, err := t.session.Step(ctx, "train", t.feeds)
	if err != nil {
		return 0, 0, err
	}
	return time.Since(start), float64(out[0].F32()[0]), nil
}

// order has the peer take a record's model for steps.
type order struct {
	Path     string `json:"path"`
	Threads  int    `json:"threads"`
	Compiled bool   `json:"compiled"`
}

// start has the peer take a model.
func (p *peer) start(r record, threads int, compiled bool) error {
	path := filepath.Join(p.dir, "steps.safetensors")
	if err := save(path, r); err != nil {
		return err
	}
	line, err := json.Marshal(order{path, threads, compiled})
	if err != nil {
		return err
	}
	return p.Ask(string(line), nil)
}

// step runs the peer's next step.
func (p *peer) step() (time.Duration, float64, error) {
	var s struct{ Seconds, Loss float64 }
	err := p.Ask("step", &s)
	return time.Duration(s.Seconds * 1e9), s.Loss, err
}

// timing is how long the steps of a model took.
type timing struct {
	name       string
	threads    int
	rounds     turns.Rounds
	apart      float64 // the first losses, relative to PyTorch's
	uncompiled error   // why there is no compiled side
}

// warmUp is how many steps each side runs before it is timed.
const warmUp = 3

// timed times a model's steps beside PyTorch's, eager and compiled.
func timed(ctx context.Context, o options, c parityCase, threads int) (t timing, err error) {
	t = timing{name: c.name, threads: threads}
	s, err := c.build()
	if err != nil {
		return t, err
	}
	mine, err := newStepper(ctx, s, threads)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, mine.session.Close()) }()
	sides := []func() (time.Duration, float64, error){
		func() (time.Duration, float64, error) { return mine.step(ctx) },
	}
	var pids []int
	for _, compiled := range []bool{false, true} {
		var p *peer
		if p, err = startPeer(ctx, o.python); err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, p.close()) }()
		err = p.start(mine.record, threads, compiled)
		if compiled && err == nil {
			_, _, err = p.step()
		}
		if compiled && err != nil {
			t.uncompiled = err
			continue
		}
		if err != nil {
			return t, err
		}
		sides, pids = append(sides, p.step), append(pids, p.PID())
	}
	debug.FreeOSMemory()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if t.apart, err = warm(sides); err != nil {
		return t, err
	}
	t.rounds, err = turns.Take(ctx, o.rounds, o.watch(pids...), untold(sides)...)
	return t, err
}

// warm runs the sides' first steps, and returns how far apart the first losses are of the
// sides that had no step before: gomem and PyTorch without its compiler.
func warm(sides []func() (time.Duration, float64, error)) (apart float64, err error) {
	for i := range warmUp {
		losses := make([]float64, len(sides))
		for j, step := range sides {
			if _, losses[j], err = step(); err != nil {
				return 0, err
			}
		}
		if i == 0 {
			apart = math.Abs(losses[0]-losses[1]) / max(math.Abs(losses[1]), 1e-30)
		}
	}
	if !(apart < tolerance) {
		return apart, fmt.Errorf("the losses of the first step are %.0e apart", apart)
	}
	return apart, nil
}

// untold are the sides without their losses.
func untold(sides []func() (time.Duration, float64, error)) []turns.Side {
	var list []turns.Side
	for _, step := range sides {
		list = append(list, func() (time.Duration, error) {
			d, _, err := step()
			return d, err
		})
	}
	return list
}

// timeAll times the models beside a PyTorch at its best, as p is one, and prints a row for each.
func timeAll(ctx context.Context, o options, p *peer, w io.Writer) error {
	if err := torch.AtItsBest(p.BLAS); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s %s/%s, %s, beside %s, size %s, medians of %d rounds, load %s\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, gauge.Processor(), p.About, o.size,
		o.rounds, gauge.Load())
	fmt.Fprintf(w, "| model | threads | gomem ms | PyTorch ms | compiled ms | gomem / PyTorch's "+
		"better | of processor time | losses differ by | disturbed |\n|---|%s\n",
		strings.Repeat("---:|", 8))
	for _, threads := range o.threads {
		for _, c := range o.cases {
			t, err := timed(ctx, o, c, threads)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Fprintf(w, "| %s |\n", strings.Join(t.cells(), " | "))
			debug.FreeOSMemory()
		}
	}
	return nil
}

func (t timing) cells() []string {
	ms := func(side int) string {
		return fmt.Sprintf("%.1f", gauge.Median(t.rounds.Seconds(side))*1e3)
	}
	rival, compiled := 1, "fails"
	if t.uncompiled == nil {
		compiled = ms(2)
		if t.rounds.Ratio(2, 1) < 1 {
			rival = 2
		}
	}
	return []string{t.name, fmt.Sprint(t.threads), ms(0), ms(1), compiled,
		fmt.Sprintf("%.2f", t.rounds.Ratio(0, rival)),
		fmt.Sprintf("%.2f", t.rounds.WorkRatio(0, rival)), fmt.Sprintf("%.0e", t.apart),
		fmt.Sprintf("%d of %d", t.rounds.Disturbed(), len(t.rounds))}
}
