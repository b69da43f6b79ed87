package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/workload"
)

// task is a workload at a step size.
type task struct {
	epochs  int
	target  float64                   // mean loss
	at      func(rate float64) runner // the workload
	rates   []float64                 // that are tried
	compute time.Duration             // a clock's
	slow    slow
}

// runner is a worker's part of a workload.
type runner interface {
	Run(ctx context.Context, s distrib.Synchronizer, w workload.Worker) error
}

// result is how a scheme reached a target.
type result struct {
	rate   float64
	epochs int // 0: never
	took   time.Duration
	bytes  int64
	final  float64
}

// best runs a task at every step size and returns the result with the fewest epochs, and
// of those the one that took least time.
func best(t *testing.T, w world, s scheme, k task) (result, error) {
	top := result{final: math.Inf(1)}
	for _, rate := range k.rates {
		r, err := w.measure(t, s, k, rate)
		if err != nil {
			return top, fmt.Errorf("%s at %g: %w", s.name, rate, err)
		}
		if r.before(top) {
			top = r
		}
	}
	return top, nil
}

func (r result) before(o result) bool {
	switch {
	case r.epochs == 0 || o.epochs == 0:
		return r.epochs > 0 || o.epochs == 0 && r.final < o.final
	case r.epochs != o.epochs:
		return r.epochs < o.epochs
	}
	return r.took < o.took
}

// measure runs a task at one step size.
func (w world) measure(t *testing.T, s scheme, k task, rate float64) (result, error) {
	out, err := w.run(t, s, func(ctx context.Context, sync distrib.Synchronizer,
		who workload.Worker) error {
		if k.compute > 0 {
			who.Compute = k.slow.compute(k.compute, who.Rank)
		}
		return k.at(rate).Run(ctx, sync, who)
	})
	if err != nil {
		return result{}, err
	}
	r := result{rate: rate, took: out.took, bytes: out.bytes}
	for e := range k.epochs + 1 {
		p, took := out.at(e, w.nodes)
		if r.final = p.Mean(); r.final <= k.target {
			r.epochs, r.took, r.bytes = e, took, out.sent[e]
			break
		}
	}
	return r, nil
}

func (r result) cells() []string {
	if r.epochs == 0 {
		return []string{fmt.Sprint(r.rate), fmt.Sprintf("never (%.4f)", r.final), "", ""}
	}
	return []string{fmt.Sprint(r.rate), fmt.Sprint(r.epochs),
		fmt.Sprintf("%.2f", r.took.Seconds()), fmt.Sprintf("%.3f", float64(r.bytes)/1e6)}
}

// heading begins a table.
func heading(w io.Writer, columns ...string) {
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(columns, " | "),
		strings.Repeat("---|", len(columns)))
}

func row(w io.Writer, cells ...string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }

// perSecond is a network on which so many bytes take d.
func perSecond(bytes int, d time.Duration) memnet.Options {
	return memnet.Options{Bps: 8 * float64(bytes) / d.Seconds(), Latency: 100 * time.Microsecond}
}
