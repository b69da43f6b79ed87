package main

import (
	"fmt"
	"io"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/workload"
)

const flowNodes = 8

// regression is the logistic regression of G5 and G6: weights of 20 x 1000.
func regression(quick bool) (task, int) {
	train, _ := workload.Linear(1, 4000, 0, 1000, 20, 30, .1)
	m := &workload.MLR{Train: train, Epochs: 20, Clocks: 10}
	if quick {
		m.Epochs = 1
	}
	return task{epochs: m.Epochs, target: .6, rates: []float64{.3}, at: func(rate float64) runner {
		c := *m
		c.Rate = rate
		return &c
	}}, 4 * 20 * 1000
}

// factorisation is G5's and G6's: R of 500 x 20, ten clocks an epoch.
func factorisation(quick bool) (task, int) {
	m := ratings(quick, 15)
	m.Pushes, m.Clocks = 1, 10
	return task{epochs: m.Epochs, target: .1, rates: []float64{.03}, at: func(rate float64) runner {
		c := *m
		c.Rate = rate
		return &c
	}}, 4 * mfRank * mfCols
}

// flow is Parameter Flow, stale by s clocks, with a filter of one bound, or of two where up
// is not 0, for links slower than fast. Step sizes do not fall, so the bound does not.
func flow(s int, low, up float32, fast float64) scheme {
	filter := distrib.DVF{Low: low, Up: up, Fast: fast,
		Rate: func(distrib.Clock) float32 { return 1 }}
	return engine(fmt.Sprintf("PF SSP %d", s), func() distrib.Plan {
		p := distrib.Plan{Down: distrib.Deltas, Consistency: distrib.SSP{S: s}}
		if low > 0 {
			p.Up, p.DownF = filter, filter
		}
		return p
	})
}

// filtered prints how many bytes Parameter Flow takes to an objective.
func filtered(t *testing.T, w io.Writer, quick bool) error {
	for _, c := range []struct {
		name   string
		make   func(bool) (task, int)
		deltas []float32
	}{
		{"Regression, weights of 20 x 1000", regression,
			[]float32{0, .001, .003, .01, .03, .1}},
		{"Factorisation, R of 500 x 20", factorisation,
			[]float32{0, .003, .01, .03, .04, .05, .07}},
	} {
		k, model := c.make(quick)
		if quick {
			c.deltas = c.deltas[1:2]
		}
		if err := filteredOf(t, w, c.name, k, model, c.deltas); err != nil {
			return err
		}
	}
	return nil
}

func filteredOf(t *testing.T, w io.Writer, name string, k task, model int,
	deltas []float32) error {
	fmt.Fprintf(w, "%s: %d workers, ten clocks an epoch, to a loss of %g at step size %g.\n\n",
		name, flowNodes, k.target, k.rates[0])
	heading(w, "scheme", "delta", "clocks", "MB", "fewer bytes", "clocks, ratio")
	base, err := world{nodes: flowNodes}.measure(t, pushPull(), k, k.rates[0])
	if err != nil {
		return err
	}
	line := func(name, delta string, r result) {
		if r.epochs == 0 {
			row(w, name, delta, fmt.Sprintf("never (%.4f)", r.final), "", "", "")
			return
		}
		row(w, name, delta, fmt.Sprint(10*r.epochs), fmt.Sprintf("%.2f", float64(r.bytes)/1e6),
			fmt.Sprintf("%.1f%%", 100*(1-float64(r.bytes)/float64(base.bytes))),
			fmt.Sprintf("%.2f", float64(r.epochs)/float64(base.epochs)))
	}
	line("push-pull BSP", "", base)
	for _, s := range []int{0, 3} {
		for _, delta := range deltas {
			r, err := world{nodes: flowNodes}.measure(t, flow(s, delta, 0, 0), k, k.rates[0])
			if err != nil {
				return err
			}
			line(fmt.Sprintf("PF SSP %d", s), fmt.Sprint(delta), r)
		}
	}
	fmt.Fprintln(w)
	return nil
}
