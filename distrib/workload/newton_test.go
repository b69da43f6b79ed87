package workload

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gomem/gomem/distrib"
)

// TestNewton: by quasi-Newton steps one worker and several come to a loss that stochastic descent
// does not reach in as many epochs; all workers are told the same bits at every epoch, whatever the
// network's delays, so their replicas are the same.
func TestNewton(t *testing.T) {
	for form, less := range map[Secant]float64{BFGS: 0.15, DFP: 0.005} {
		m := covertype()
		m.Epochs = 60
		serial, err := m.Serial()
		if err != nil {
			t.Fatal(err)
		}
		task := Newton{m, form}
		alone := run(t, func(s distrib.Synchronizer, w Worker) error {
			return task.Run(context.Background(), s, w)
		}, m.Epochs)
		last := alone[m.Epochs]
		if want := serial[m.Epochs]; last.Mean() > want.Mean()-less || last.Count != m.Train.Len() {
			t.Errorf("%s: loss %.4f, by gradients %.4f", form, last.Mean(), want.Mean())
		}
		synctest.Test(t, func(t *testing.T) {
			plan := distrib.Plan{Topology: &distrib.Shards{}, Consistency: distrib.BSP{}}
			sum, told := together(t, 3, plan, func(s distrib.Synchronizer, w Worker) error {
				return task.Run(context.Background(), s, w)
			})
			if len(told) != m.Epochs+1 || told[m.Epochs].TestCount != 50 {
				t.Fatalf("%s: %d epochs are told of", form, len(told))
			}
			for epoch, p := range told {
				for _, other := range sum.parts[epoch] {
					if other.Loss != p.Loss || other.Errors != p.Errors {
						t.Errorf("%s: epoch %d: workers are told %v and %v", form, epoch, p, other)
					}
				}
			}
			if d := told[m.Epochs].Mean() - last.Mean(); d > 0.01 || d < -0.01 {
				t.Errorf("%s: three come to %.4f, one to %.4f", form, told[m.Epochs].Mean(),
					last.Mean())
			}
		})
	}
}

// TestNewtonRefuses: what no such task can have is said.
func TestNewtonRefuses(t *testing.T) {
	large := covertype()
	large.Test, large.Train.Features = nil, maxNewton
	rotating := covertype()
	rotating.Rotate = 1
	for want, n := range map[string]Newton{"28672 weights": {large, BFGS},
		"rotate": {rotating, DFP}} {
		if err := n.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	err := Newton{covertype(), BFGS}.Run(t.Context(), &alone{}, Worker{Of: 1, From: &State{}})
	if err == nil || !strings.Contains(err.Error(), "neither come nor go") {
		t.Error(err)
	}
}
