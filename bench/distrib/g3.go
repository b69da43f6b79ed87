package main

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/workload"
)

// The factorisation of G3 and G4: R, which is shared, has 80 bytes a row.
const (
	mfNodes = 8
	mfRank  = 20
	mfCols  = 500
)

// ratings is an elements' task; epochs are one clock each, with 20 pushes in it.
func ratings(quick bool, epochs int) *workload.MF {
	m := &workload.MF{Data: workload.LowRank(1, 600, mfCols, 10, 30000, .1), Rank: mfRank, Seed: 3,
		Epochs: epochs, Pushes: 20, Lambda: .01}
	if quick {
		m.Epochs = 2
	}
	return m
}

// taskOf is a factorisation whose clocks take so long.
func taskOf(m *workload.MF, compute time.Duration, rates []float64) task {
	return task{epochs: m.Epochs, target: .1, compute: compute, rates: rates,
		at: func(rate float64) runner {
			c := *m
			c.Rate = rate
			return &c
		}}
}

// often is the same task with a clock where the other one has a push: what a plain server
// does with more bandwidth.
func often(m *workload.MF, rates []float64) task {
	c := *m
	c.Clocks, c.Pushes = m.Pushes, 1
	return taskOf(&c, time.Second/time.Duration(c.Clocks), rates)
}

// managed is managed communication with a budget a node, in bytes a second.
func managed(order distrib.Order, bytes float64) scheme {
	return engine(fmt.Sprintf("MC %v", order), func() distrib.Plan {
		return distrib.Plan{Consistency: distrib.SSP{}, Pacer: &distrib.LeakyBucket{
			Mbps: 8 * bytes / 1e6, Order: order, Queue: 4 * mfRank * mfCols / 20, Seed: 1}}
	})
}

// communication prints how soon a factorisation is done with managed communication.
func communication(t *testing.T, w io.Writer, quick bool) error {
	m := ratings(quick, 14)
	k := taskOf(m, time.Second, []float64{.03, .04, .06, .08, .12})
	model := 4 * mfRank * mfCols
	place := world{mfNodes, perSecond(model, 64*time.Millisecond)}
	fmt.Fprintf(w, "Factorisation, %d workers, one clock an epoch of 1 s, to a squared error of "+
		"%g; the best of step sizes %v. The network carries a model of %d kB in 64 ms, as 200 "+
		"Mbit/s carry 1.6 MB: budgets are in models an epoch, of each node, %.4g of which are "+
		"those 200.\n\n", mfNodes, k.target, k.rates, model/1000, 1/.064)
	budgets, orders := []float64{4, 8, 1 / .064}, []distrib.Order{distrib.Random,
		distrib.RoundRobin, distrib.AbsMag, distrib.RelMag}
	if quick {
		budgets, orders, k.rates = budgets[:1], orders[3:], k.rates[:1]
	}
	heading(w, "scheme", "budget", "step size", "epochs", "seconds", "MB")
	if err := compare(t, w, place, k, ssp("BSP, eager", 0), ""); err != nil {
		return err
	}
	if err := compare(t, w, place, often(m, k.rates), ssp("BSP, a clock a push", 0),
		""); err != nil {
		return err
	}
	for _, budget := range budgets {
		for _, order := range orders {
			s := managed(order, budget*float64(model))
			if err := compare(t, w, place, k, s, fmt.Sprintf("%.3g", budget)); err != nil {
				return err
			}
		}
	}
	return nil
}

// draws prints the same at a small budget for several problems, of which one is like another but
// for what is drawn: how many bytes each order takes for the same loss.
func draws(t *testing.T, w io.Writer, quick bool) error {
	const budget, problems = 4, 5
	model := 4 * mfRank * mfCols
	place := world{mfNodes, perSecond(model, 64*time.Millisecond)}
	rates := []float64{.02, .03, .04, .06, .08}
	fmt.Fprintf(w, "The factorisation of G3 for %d draws of data, %d models an epoch; the best of "+
		"step sizes %v, 20 epochs at most.\n\n", problems, budget, rates)
	orders, most, epochs := []distrib.Order{distrib.Random, distrib.AbsMag,
		distrib.RelMag}, uint64(problems), 20
	if quick {
		orders, most, rates, epochs = orders[2:], 1, rates[:1], 2
	}
	heading(w, "scheme", "draw", "step size", "epochs", "seconds", "MB")
	for seed := range most {
		m := ratings(quick, epochs)
		m.Data, m.Seed = workload.LowRank(1+seed, 600, mfCols, 10, 30000, .1), 3+seed
		k := taskOf(m, time.Second, rates)
		for _, order := range orders {
			s := managed(order, budget*float64(model))
			if err := compare(t, w, place, k, s, fmt.Sprint(1+seed)); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare prints a scheme at its best.
func compare(t *testing.T, w io.Writer, place world, k task, s scheme, setting string) error {
	r, err := best(t, place, s, k)
	if err != nil {
		return err
	}
	row(w, append([]string{s.name, setting}, r.cells()...)...)
	return nil
}
