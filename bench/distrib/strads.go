package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/strads"
)

// schedules prints how many rounds the Lasso takes by how its coefficients are scheduled.
func schedules(_ *testing.T, w io.Writer, quick bool) error {
	rows, cols := 300, 1000
	if quick {
		rows, cols = 30, 60
	}
	fmt.Fprintf(w, "Lasso of %d samples and %d features, of which 20 matter, each correlated "+
		"with the one before; 32 candidates a round, lambda a tenth of the largest; rounds to a "+
		"duality gap of 1e-6 of the beginning's objective, 20000 at most. Rises are epochs in "+
		"which the objective rose.\n\n", rows, cols)
	heading(w, "correlation", "schedule", "by priority", "uniformly", "factor", "rises")
	for _, correlated := range []float64{0, 0.5, 0.9} {
		p, err := correlatedDesign(rows, cols, correlated)
		if err != nil {
			return err
		}
		for _, name := range []string{"blocks", "independent", "unchecked"} {
			o := strads.Options{Candidates: 32}
			if o.Policy, err = strads.ParsePolicy(name); err != nil {
				return err
			}
			priority, rises, err := roundsOf(p, cols, o)
			if err != nil {
				return err
			}
			o.Uniform = true
			uniform, more, err := roundsOf(p, cols, o)
			if err != nil {
				return err
			}
			factor := ""
			if priority.Done && uniform.Done {
				factor = fmt.Sprintf("%.1fx", float64(uniform.Rounds)/float64(priority.Rounds))
			}
			row(w, fmt.Sprint(correlated), name, ended(priority), ended(uniform), factor,
				fmt.Sprint(rises+more))
		}
	}
	fmt.Fprintln(w, "\nThe paper says that priority saves an order of magnitude of iterations.")
	return nil
}

func ended(x strads.Progress) string {
	if !x.Done {
		return "never"
	}
	return fmt.Sprint(x.Rounds)
}

// correlatedDesign is a problem whose columns are each the one before in part.
func correlatedDesign(rows, cols int, correlated float64) (*strads.Problem, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float64, rows*cols), make([]float64, rows)
	for i := range x {
		x[i] = rng.NormFloat64()
		if i >= rows {
			x[i] = correlated*x[i-rows] + math.Sqrt(1-correlated*correlated)*x[i]
		}
	}
	for i := range y {
		y[i] = 0.5 * rng.NormFloat64()
		for k := range 20 {
			y[i] += float64(1-2*(k%2)) * x[k*cols/20*rows+i]
		}
	}
	most := 0.0
	for j := range cols {
		sum := 0.0
		for i, v := range y {
			sum += v * x[j*rows+i]
		}
		most = max(most, math.Abs(sum))
	}
	d, err := strads.Dense(rows, cols, x)
	return &strads.Problem{X: d, Y: y, L1: most / 10}, err
}

// roundsOf runs one worker by a schedule, and returns the end, which is not Done if it is none, and
// in how many epochs the objective rose.
func roundsOf(p *strads.Problem, cols int, o strads.Options) (last strads.Progress, rises int,
	err error) {
	m, err := collective.NewMux(memnet.New(1, memnet.Options{})[0], collective.Options{})
	if err != nil {
		return last, 0, err
	}
	defer m.Close()
	g, err := m.Group(distrib.NodeID(0))
	if err != nil {
		return last, 0, err
	}
	const most = 20_000
	far := fmt.Errorf("%d rounds", most)
	w := &strads.Worker{Problem: *p, Group: g, Options: o,
		Stop: strads.Stop{Epochs: most, Gap: 1e-6},
		After: func(_ context.Context, x strads.Progress) error {
			if x.Epoch > 0 && !(x.Objective <= last.Objective*(1+1e-12)) {
				rises++
			}
			last = x
			if !x.Done && (x.Rounds > most || !(x.Objective < 1e100)) {
				return far
			}
			return nil
		}}
	err = w.Run(context.Background(), &strads.Point{B: make([]float64, cols)})
	if err == far {
		err = nil
	}
	return last, rises, err
}
