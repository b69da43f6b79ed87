// Package turns times sides of a comparison that take turns in one run, each turn when nothing
// else runs, and keeps the rounds that other programs disturbed least.
package turns

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
)

// Side runs one step and says how long it took.
type Side func() (time.Duration, error)

// Round is one step of each side.
type Round struct {
	Times  []float64 // seconds
	Work   []float64 // processor time, in the system's ticks
	Others float64   // the largest share of the machine that other programs had
}

// quiet is the share of the machine that other programs may have in a round.
const quiet = 0.05

// Take runs the sides in turn, forwards and backwards by turns, until so
// many rounds were quiet, at most thrice as many, and returns the quietest, in
// the order in which they ran.
func Take(ctx context.Context, rounds int, w *Watch, sides ...Side) (Rounds, error) {
	var all Rounds
	for calm := 0; calm < rounds && len(all) < 3*rounds; {
		r, err := each(ctx, len(all)%2 == 1, w, sides)
		if err != nil {
			return nil, err
		}
		if r.Others <= quiet {
			calm++
		}
		all = append(all, r)
	}
	return quietest(all, rounds), nil
}

// quietest are the n rounds in which other programs had least, in order.
func quietest(all Rounds, n int) Rounds {
	shares := make([]float64, len(all))
	for i, r := range all {
		shares[i] = r.Others
	}
	slices.Sort(shares)
	all = slices.DeleteFunc(all, func(r Round) bool { return r.Others > shares[n-1] })
	return all[:n]
}

// each gives every side one turn.
func each(ctx context.Context, backwards bool, w *Watch, sides []Side) (Round, error) {
	r := Round{Times: make([]float64, len(sides)), Work: make([]float64, len(sides))}
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
		r.Others = max(r.Others, before.others(after))
		r.Work[i] = float64(after.ours - before.ours)
		r.Times[i] = d.Seconds()
	}
	return r, nil
}

// Rounds are those of a comparison.
type Rounds []Round

// Seconds is what a side's turns took, by number of the side.
func (rs Rounds) Seconds(side int) []float64 {
	return rs.column(func(r Round) float64 { return r.Times[side] })
}

// Ratio is the median over rounds of side a's time divided by b's, so that what slows a whole
// round down cancels.
func (rs Rounds) Ratio(a, b int) float64 {
	return gauge.Median(rs.column(func(r Round) float64 { return r.Times[a] / r.Times[b] }))
}

// WorkRatio is Ratio of the processor's time.
func (rs Rounds) WorkRatio(a, b int) float64 {
	return gauge.Median(rs.column(func(r Round) float64 { return r.Work[a] / r.Work[b] }))
}

// Disturbed is the number of rounds in which other programs ran.
func (rs Rounds) Disturbed() int {
	n := 0
	for _, r := range rs {
		if r.Others > quiet {
			n++
		}
	}
	return n
}

func (rs Rounds) column(of func(Round) float64) []float64 {
	var out []float64
	for _, r := range rs {
		out = append(out, of(r))
	}
	return out
}
