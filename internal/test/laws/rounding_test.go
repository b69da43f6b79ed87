package laws_test

import (
	"context"
	"math"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// TestFactorsRound: where optimizers make steps of gradients that are but rounding, as Adam
// does, the losses of workers that exchange factors are no farther from those of workers
// that exchange gradients than these are from their own, begun one rounding apart.
func TestFactorsRound(t *testing.T) {
	longtest.Skip(t)
	gradients, err := exchanging(models.Training{Workers: 2})["wgan"]()
	if err != nil {
		t.Fatal(err)
	}
	factors, err := exchanging(models.Training{Workers: 2, Factoring: wherever{}})["wgan"]()
	if err != nil {
		t.Fatal(err)
	}
	want := lossesBeside(t, gradients, 0)
	above, below := lossesBeside(t, gradients, 1), lossesBeside(t, gradients, -1)
	for i, got := range lossesBeside(t, factors, 0) {
		near := max(math.Abs(above[i]-want[i]), math.Abs(below[i]-want[i]))
		if d := math.Abs(got - want[i]); !(d <= near) {
			t.Errorf("loss %d is %v, of gradients %v: %g apart; one rounding makes %g", i, got,
				want[i], d, near)
		}
	}
}

// lossesBeside are the losses of the first of two workers that train a model, whose
// variables begin so many roundings away from their usual values.
func lossesBeside(t *testing.T, m *models.Model, away float32) (losses []float64) {
	t.Helper()
	const executions = 3
	side(t, make([]gomem.Options, 2), func(ctx context.Context, o gomem.Options, rank int) error {
		o.Seed, o.Threads = 3, 1
		s, err := gomem.Compile(ctx, m.Graph, o, train.Targets(&m.Model)...)
		if err != nil {
			return err
		}
		defer s.Close()
		if err := nudge(s, away); err != nil {
			return err
		}
		for e := range executions {
			feeds := batch(m, 2*e+rank)
			feeds[m.Step] = gomem.Scalar(float32(e + 1))
			for _, objective := range m.Objectives {
				out, err := s.Step(ctx, objective.Name, feeds)
				if err != nil {
					return err
				}
				if rank == 0 {
					losses = append(losses, float64(out[0].F32()[0]))
				}
			}
		}
		return nil
	})
	return losses
}

// nudge moves all variables by a rounding, up or down; not at all if away is 0.
func nudge(s *gomem.Session, away float32) error {
	for _, v := range s.Variables() {
		x, err := s.Get(v)
		if err != nil {
			return err
		}
		for i, f := range x.F32() {
			if f != 0 && away != 0 { // what is zero is counts and means, not weights
				x.F32()[i] = math.Nextafter32(f, away*math.MaxFloat32)
			}
		}
		if err := s.Set(v, x); err != nil {
			return err
		}
	}
	return nil
}
