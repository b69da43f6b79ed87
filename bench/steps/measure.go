package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
)

// side runs one step and says how long it took.
type side func() (time.Duration, error)

// round is one step of each side.
type round struct {
	times  []float64 // seconds
	work   []float64 // processor time, in the system's ticks
	others float64   // the largest share of the machine that other programs had
}

// quiet is the share of the machine that other programs may have in a round.
const quiet = 0.05

// interleave runs the sides in turn, forwards and backwards by turns, until so
// many rounds were quiet, at most thrice as many, and returns the quietest, in
// the order in which they ran.
func interleave(ctx context.Context, rounds int, w *watch, sides ...side) ([]round, error) {
	var all []round
	for calm := 0; calm < rounds && len(all) < 3*rounds; {
		r, err := turns(ctx, len(all)%2 == 1, w, sides)
		if err != nil {
			return nil, err
		}
		if r.others <= quiet {
			calm++
		}
		all = append(all, r)
	}
	return quietest(all, rounds), nil
}

// quietest are the n rounds in which other programs had least, in order.
func quietest(all []round, n int) []round {
	shares := make([]float64, len(all))
	for i, r := range all {
		shares[i] = r.others
	}
	slices.Sort(shares)
	all = slices.DeleteFunc(all, func(r round) bool { return r.others > shares[n-1] })
	return all[:n]
}

// turns gives every side one turn.
func turns(ctx context.Context, backwards bool, w *watch, sides []side) (round, error) {
	r := round{times: make([]float64, len(sides)), work: make([]float64, len(sides))}
	for j := range sides {
		i := j
		if backwards {
			i = len(sides) - 1 - j
		}
		if err := ctx.Err(); err != nil {
			return r, fmt.Errorf("interrupted: %w", err)
		}
		w.settle()
		before := w.usage()
		d, err := sides[i]()
		if err != nil {
			return r, err
		}
		after := w.usage()
		r.others = max(r.others, before.others(after))
		r.work[i] = float64(after.ours - before.ours)
		r.times[i] = d.Seconds()
	}
	return r, nil
}

// elapsed is the time of a side.
func elapsed(side int) func(round) float64 {
	return func(r round) float64 { return r.times[side] }
}

// worked is the processor time of a side.
func worked(side int) func(round) float64 {
	return func(r round) float64 { return r.work[side] }
}

// column is a number of every round.
func column(rounds []round, of func(round) float64) []float64 {
	var out []float64
	for _, r := range rounds {
		out = append(out, of(r))
	}
	return out
}

// ratio is the median over rounds of a divided by b, so that what slows a whole
// round down cancels.
func ratio(rounds []round, a, b func(round) float64) float64 {
	return gauge.Median(column(rounds, func(r round) float64 { return a(r) / b(r) }))
}

// disturbed is the number of rounds in which other programs ran.
func disturbed(rounds []round) int {
	n := 0
	for _, r := range rounds {
		if r.others > quiet {
			n++
		}
	}
	return n
}
