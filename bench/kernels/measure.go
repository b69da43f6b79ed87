package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
)

// side is one of the things compared: it runs its kernel once to warm up, then
// so many times, and says how long those took.
type side func(repetitions int) (time.Duration, error)

// timed is the side of a function of this program, by a clock.
func timed(clock func() time.Duration, launch func()) side {
	return func(repetitions int) (time.Duration, error) {
		launch()
		start := clock()
		for range repetitions {
			launch()
		}
		return clock() - start, nil
	}
}

// clock is what a table is timed by: the processor's time for one thread, so that what
// else runs on the machine does not count, and the wall's for several, which wait for each
// other. Peers do the same.
func clock(threads int) func() time.Duration {
	if threads == 1 {
		return gauge.CPUTime
	}
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// How long a side runs before the other has its turn, and how long the machine
// rests between: threads of both sides spin a while after their work.
const (
	burst = 8 * time.Millisecond
	rest  = 12 * time.Millisecond
)

// repetitions is how often a launch fits into a burst.
func repetitions(s side) (int, error) {
	n := 1
	for {
		d, err := s(n)
		if err != nil || d >= burst/4 {
			return max(1, int(float64(n)*float64(burst)/float64(max(d, 1)))), err
		}
		n *= 4
	}
}

// interleave runs the sides in turn, forwards and backwards by turns, and
// returns the seconds of a launch for every side and round. A nil side has none.
func interleave(ctx context.Context, w *watch, rounds int, sides ...side) ([][]float64, error) {
	times := make([][]float64, len(sides))
	counts := make([]int, len(sides))
	for i, s := range sides {
		var err error
		if s == nil {
			continue
		}
		if counts[i], err = repetitions(s); err != nil {
			return nil, err
		}
	}
	for round := range rounds {
		for j := range sides {
			i := j
			if round%2 == 1 {
				i = len(sides) - 1 - j
			}
			if sides[i] == nil {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("interrupted: %w", err)
			}
			w.turn()
			d, err := sides[i](counts[i])
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], d.Seconds()/float64(counts[i]))
		}
	}
	return times, nil
}

// least is the smallest, NaN of nothing.
func least(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	return slices.Min(x)
}

// ratio is the median over rounds of a's time divided by b's, so that what slows
// a whole round down cancels; NaN if either has none.
func ratio(a, b []float64) float64 {
	q := make([]float64, 0, len(a))
	for i := range min(len(a), len(b)) {
		q = append(q, a[i]/b[i])
	}
	return gauge.Median(q)
}

// rival is what a kernel is compared with.
type rival struct {
	peer     *peer
	question string
	launch   func()  // instead of a peer
	work     float64 // of one launch, in the unit of the comparison; zero: the same
	same     bool    // the results must agree
}

// comparison is one row of a table.
type comparison struct {
	name   string
	work   float64 // of one launch: operations, bytes or elements
	launch func()
	result []float32
	rivals []rival
	clock  func() time.Duration
}

// outcome is what was measured: work a second, of gomem and then of every rival,
// and how fast gomem is beside each rival, in the median and in each one's best
// round. NaN is a rival that is missing.
type outcome struct {
	rates, ratios, best []float64
}

// compare checks that all compute the same, and measures.
func (c *comparison) compare(ctx context.Context, w *watch, rounds int) (outcome, error) {
	c.launch()
	mine, sides := sumsOf(c.result), []side{timed(c.clock, c.launch)}
	for _, r := range c.rivals {
		s, err := r.side(c, mine)
		if err != nil {
			return outcome{}, err
		}
		sides = append(sides, s)
	}
	times, err := interleave(ctx, w, rounds, sides...)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{rates: []float64{c.work / gauge.Median(times[0])}}
	for i, r := range c.rivals {
		work := r.work
		if work == 0 {
			work = c.work
		}
		o.rates = append(o.rates, work/gauge.Median(times[i+1]))
		o.ratios = append(o.ratios, c.work/work*ratio(times[i+1], times[0]))
		o.best = append(o.best, c.work/work*least(times[i+1])/least(times[0]))
	}
	return o, nil
}

// side prepares a rival, and checks its result.
func (r *rival) side(c *comparison, want sums) (side, error) {
	if r.launch != nil {
		return timed(c.clock, r.launch), nil
	}
	if r.peer.missing {
		return nil, nil
	}
	got, err := r.peer.prepare(r.question)
	if err != nil {
		return nil, err
	}
	if r.same && !got.near(want) {
		return nil, fmt.Errorf("%s: the result differs from that of %s: sum %g, not %g (of "+
			"magnitudes %g)", c.name, r.peer.name, want.value, got.value, got.magnitude)
	}
	return r.peer.side(r.question), nil
}
