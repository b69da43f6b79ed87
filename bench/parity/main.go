// Command parity compares the loss and the gradients of every model with
// PyTorch's, and prints the table of docs/measurements/parity.md.
//
//	go run ./bench/parity [-model name] [-python path] [-time [-size s] [-threads n] [-rounds n]]
//
// Each model is built as for training, of its smallest size and without dropout
// and other noise, which the two sides could not share. The gradients of its loss
// by all parameters are fetched from one execution under the thesis policy. They
// go, with parameters, batch and the noise that is drawn in the graph, into a
// file for parity.py, which has the same models made of PyTorch's own operators
// and differentiates them in 64-bit floats.
//
// The error of a gradient is the largest of any element, relative to the
// gradient's largest element; or to that of all gradients where the truth is zero
// but for rounding, as for a bias that a norm subtracts again. The program fails if
// the error of a loss or of a gradient is 1e-4 or more. PyTorch's own results in
// 32-bit floats are measured against the same truth, to tell what is a matter of
// the format.
//
// With -time the models of a size train beside PyTorch's, step by step in turn, by gradient
// descent with everything resident: beside its operators one by one, and as torch.compile
// makes one program of the loss, where it can. That is of the table of steps.md.
//
// Optimizers, averages of norms and evaluations are not compared here. Where
// Python or PyTorch is missing the program says so and succeeds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/bench/internal/turns"
)

type options struct {
	cases  []parityCase
	python string

	time    bool
	size    string // of the models that are timed
	threads []int
	rounds  int
	watch   func(peers ...int) *turns.Watch
}

func main() {
	gauge.Main("parity", func(ctx context.Context, args []string, w io.Writer) error {
		o, err := parse(args, os.Stderr)
		if err != nil {
			return err
		}
		return run(ctx, o, w)
	})
}

func parse(args []string, usage io.Writer) (options, error) {
	f := flag.NewFlagSet("parity", flag.ContinueOnError)
	f.SetOutput(usage)
	name := f.String("model", "", "part of the `name` of the models to compare, such as wgan")
	python := f.String("python", "/usr/bin/python3", "Python `interpreter` that has PyTorch")
	timing := f.Bool("time", false, "time training steps instead, beside PyTorch, compiled too")
	size := f.String("size", "s64", "`size` of the models to time: s512, s64 or base")
	threads := f.Int("threads", 1, "`number` of threads to time; 0 means all, then one")
	rounds := f.Int("rounds", 5, "`number` of rounds, of a step of each side, to take medians of")
	if err := f.Parse(args); err != nil {
		return options{}, err
	}
	if err := gauge.Checked(f, *threads, *rounds); err != nil {
		return options{}, err
	}
	o := options{cases: cases(smallest), python: *python, time: *timing, size: *size,
		threads: []int{*threads}, rounds: *rounds, watch: turns.NewWatch}
	if *threads == 0 {
		o.threads = slices.Compact([]int{runtime.GOMAXPROCS(0), 1})
	}
	if o.time {
		o.cases = slices.DeleteFunc(cases(o.size), func(c parityCase) bool {
			return strings.HasSuffix(c.name, "fine") // computes what its coarse form does
		})
	}
	o.cases = slices.DeleteFunc(o.cases, func(c parityCase) bool {
		return !strings.Contains(c.name, *name)
	})
	if len(o.cases) == 0 {
		return o, fmt.Errorf("-model %q: no model has that in its name", *name)
	}
	return o, nil
}

// run compares the models, or says that there is nothing to compare with.
func run(ctx context.Context, o options, w io.Writer) (err error) {
	p, err := startPeer(ctx, o.python)
	if missing, ok := errors.AsType[*torch.ErrMissing](err); ok {
		fmt.Fprintln(w, "not compared:", missing)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() {
		if closed := p.close(); err == nil {
			err = closed
		}
	}()
	if o.time {
		return timeAll(ctx, o, p, w)
	}
	return table(ctx, p, o.cases, w)
}

// table compares the models and prints a row for each. The error says how many
// differ.
func table(ctx context.Context, p *peer, cases []parityCase, w io.Writer) error {
	heading(w, p.About)
	differ := 0
	for _, c := range cases {
		r, err := compare(ctx, p, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(r.cells(), " | "))
		if !r.agrees() {
			differ++
		}
	}
	if differ > 0 {
		return fmt.Errorf("%d of %d models differ by %.0e or more", differ, len(cases), tolerance)
	}
	return nil
}

// compare runs a model on both sides.
func compare(ctx context.Context, p *peer, c parityCase) (result, error) {
	s, err := c.build()
	if err != nil {
		return result{}, err
	}
	r, err := execute(ctx, s)
	if err != nil {
		return result{}, err
	}
	a, err := p.ask(r)
	return result{name: c.name, record: r, answer: a}, err
}
