// Command steps measures whole training steps beside PyTorch, and prints tables
// for docs/measurements/steps.md.
//
//	go run ./bench/steps [-model name] [-threads n] [-rounds n] [-compiled] [-python path]
//
// Three models are built on both sides, here as graphs and in peer.py with
// PyTorch's functions: they start from the same parameters, see the same tokens,
// and must agree on the loss of the first steps before they are timed. PyTorch
// runs in a process that waits on a pipe while gomem has its turn. Where it is
// missing, the tables say so.
//
// Besides the time of a step the tables tell the memory that it needs, and where
// its time goes: by operation and operand sizes, from a trace of gomem's compute
// stream and from PyTorch's profiler.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/bench/internal/turns"
)

type options struct {
	models  []config
	threads []int
	rounds  int
	python  string

	compiled bool // PyTorch's compiler is a side, too
}

func main() {
	gauge.Main("steps", func(ctx context.Context, args []string, w io.Writer) error {
		o, err := parse(args)
		if err != nil {
			return err
		}
		return run(ctx, o, args, w)
	})
}

func parse(args []string) (options, error) {
	f := flag.NewFlagSet("steps", flag.ContinueOnError)
	name := f.String("model", "", "`name` of the only model: "+strings.Join(names(), ", "))
	threads := f.Int("threads", 0, "`number` of threads; 0 means all of GOMAXPROCS, then one")
	rounds := f.Int("rounds", 9, "`number` of rounds, of a step of each side, to take medians of")
	python := f.String("python", "/usr/bin/python3", "Python `interpreter` that has PyTorch")
	compiled := f.Bool("compiled", false, "also beside PyTorch's torch.compile, of PyTorch 2")
	if err := f.Parse(args); err != nil {
		return options{}, err
	}
	o := options{models: configs(), threads: []int{*threads}, rounds: *rounds, python: *python,
		compiled: *compiled}
	if *name != "" {
		o.models = slices.DeleteFunc(o.models, func(c config) bool { return c.Kind != *name })
	}
	if *threads == 0 {
		o.threads = slices.Compact([]int{runtime.GOMAXPROCS(0), 1})
	}
	if len(o.models) == 0 {
		return o, fmt.Errorf("-model %q: want one of %s", *name, strings.Join(names(), ", "))
	}
	return o, gauge.Checked(f, *threads, *rounds)
}

func names() []string {
	var all []string
	for _, c := range configs() {
		all = append(all, c.Kind)
	}
	return all
}

// run makes the tables: step times as they are measured, then memory and
// profiles.
func run(ctx context.Context, o options, args []string, w io.Writer) error {
	command := strings.TrimSpace("go run ./bench/steps " + strings.Join(args, " "))
	fmt.Fprintf(w, "`%s`, %s %s/%s, %s, %d threads available, medians of %d rounds, load average "+
		"of the minute before %s\n", command, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		gauge.Processor(), runtime.GOMAXPROCS(0), o.rounds, gauge.Load())
	heading(w, "Step time", "ms, everything resident. The ratio is PyTorch's time over gomem's, "+
		"the median over rounds: above 1, gomem is the faster; that of processor time does not "+
		"count the time in which other programs have the processors. In the last column, rounds "+
		"of those counted in which other programs had more than 5 % of the machine.",
		"model", "threads", "gomem", "PyTorch", "compiled", "PyTorch / gomem", "best / best",
		"processor time", "losses differ by", "disturbed")
	var all []outcome
	for _, threads := range o.threads {
		for _, c := range o.models {
			r, err := measure(ctx, o, c, threads)
			if err != nil {
				return err
			}
			row(w, r.timeCells()...)
			all = append(all, r)
			debug.FreeOSMemory()
		}
	}
	reportMemory(w, all)
	reportProfiles(w, all)
	return nil
}

// outcome is what was measured of a model.
type outcome struct {
	config
	threads   int
	rounds    turns.Rounds
	agreement agreement
	memory    footprint
	profile   profile
	missing   error // why there is no peer
	peer      peerMemory
	operators []operator
}

// measure compares one model at one number of threads.
func measure(ctx context.Context, o options, c config, threads int) (outcome, error) {
	out := outcome{config: c, threads: threads}
	m, err := build(c)
	if err != nil {
		return out, err
	}
	if err := out.compare(ctx, o, m); err != nil {
		return out, fmt.Errorf("%s: %w", c.Kind, err)
	}
	if out.memory, err = footprintOf(ctx, m); err != nil {
		return out, err
	}
	out.profile, err = profileOf(ctx, m, threads)
	return out, err
}
