package main

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/workload"
)

// The world of G2: exchanging the parameter takes half as long as computing, push and
// pull together.
const (
	staleNodes   = 8
	staleRows    = 256
	staleCols    = 1024
	staleCompute = 100 * time.Millisecond
)

func staleWorld() world {
	bits := 8 * 4 * staleRows * staleCols * 2 * (staleNodes - 1) / staleNodes
	return world{staleNodes, memnet.Options{Latency: 100 * time.Microsecond,
		Bps: float64(bits) / (staleCompute / 2).Seconds()}}
}

// steps is a job without learning: every clock pulls, computes, and pushes the parameter.
func steps(n int, compute time.Duration, s slow) job {
	return func(ctx context.Context, sync distrib.Synchronizer, w workload.Worker) error {
		p := &distrib.Param{Name: "w", Rows: staleRows, Cols: staleCols,
			Data: make([]float32, staleRows*staleCols)}
		if err := sync.Attach(p); err != nil {
			return err
		}
		work := s.compute(compute, w.Rank)
		for range n {
			if _, err := sync.Pull(ctx, distrib.Ref{}); err != nil {
				return err
			}
			if err := work(ctx, 1); err != nil {
				return err
			}
			u := make(distrib.Dense, len(p.Data))
			if err := sync.Push(ctx, distrib.Ref{}, u); err != nil {
				return err
			}
			if _, err := sync.Tick(ctx); err != nil {
				return err
			}
		}
		_, err := sync.Pull(ctx, distrib.Ref{})
		return err
	}
}

// staleness prints clocks a second under stragglers.
func staleness(t *testing.T, w io.Writer, quick bool) error {
	n, slows := 200, stragglers
	if quick {
		n, slows = 10, stragglers[3:]
	}
	schemes := []scheme{pushPull(), ring(), ssp("SSP 0", 0), ssp("SSP 1", 1), ssp("SSP 3", 3),
		ssp("SSP 6", 6)}
	alone, err := staleWorld().run(t, schemes[0], steps(n, 0, slow{}))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d workers, %v of computing a clock, %d MiB exchanged, which takes %.0f ms "+
		"alone; %d clocks.\n\n", staleNodes, staleCompute, 4*staleRows*staleCols>>20,
		alone.took.Seconds()/float64(n)*1e3, n)
	fmt.Fprint(w, "| stragglers |")
	for _, s := range schemes {
		fmt.Fprintf(w, " %s |", s.name)
	}
	fmt.Fprint(w, " goal |\n|---|")
	for range schemes {
		fmt.Fprint(w, "---|")
	}
	fmt.Fprintln(w, "---|")
	for _, sl := range slows {
		if err := staleRow(t, w, n, sl, schemes); err != nil {
			return err
		}
	}
	return nil
}

// staleGoals are how many times as many clocks a second SSP with s = 3 should have.
var staleGoals = map[string]string{"none": "1.4", "C1 (10%, 2x)": "1.7", "C2 (10%, 4x)": "1.9"}

func staleRow(t *testing.T, w io.Writer, n int, sl slow, schemes []scheme) error {
	fmt.Fprintf(w, "| %s |", sl.name)
	var base float64
	for i, s := range schemes {
		out, err := staleWorld().run(t, s, steps(n, staleCompute, sl))
		if err != nil {
			return err
		}
		rate := float64(n) / out.took.Seconds()
		if i == 0 {
			base = rate
		}
		fmt.Fprintf(w, " %.2f/s (%.2fx) |", rate, rate/base)
	}
	fmt.Fprintf(w, " %s |\n", staleGoals[sl.name])
	return nil
}
