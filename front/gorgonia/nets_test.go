package gorgonia

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/front/gorgonia/internal/nets"
	"github.com/gomem/gomem/planner"
	G "gorgonia.org/gorgonia"
)

const steps = 20

// train trains a net by plans, and returns the losses, the learnables' last numbers, and the
// device's bytes.
func train(t *testing.T, n *nets.Net, o gomem.Options) (losses []float64, weights [][]float64,
	device int64) {
	t.Helper()
	p, err := New(context.Background(), n.Loss, n.Learnables, Options{Solver: n.Solver, Gomem: o})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for step := range steps {
		if err := errors.Join(n.Feed(step), p.Step(context.Background())); err != nil {
			t.Fatal(err)
		}
		losses = append(losses, nets.Number(n.Loss.Value()))
	}
	for _, w := range n.Learnables {
		weights = append(weights, slices.Clone(numbers(w.Value())))
	}
	return losses, weights, p.Usage()[0].Actual
}

// TestNets: Gorgonia's examples have its losses, in 20 steps, and the same bits within a third of
// vanilla's memory.
func TestNets(t *testing.T) {
	for _, k := range nets.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			vanilla := gomem.Options{Policy: planner.Vanilla}
			losses, weights, device := train(t, k.New(k.Small), vanilla)
			theirs := k.New(k.Small)
			want, _, err := theirs.Train(steps, func() {})
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if !(math.Abs(losses[i]-want[i]) <= 1e-4*(1+math.Abs(want[i]))) {
					t.Fatalf("step %d: loss %v, Gorgonia's %v", i, losses[i], want[i])
				}
			}
			if last := losses[steps-1]; last >= losses[0] {
				t.Errorf("losses %v at first, %v after %d steps", losses[0], last, steps)
			}
			for i, n := range theirs.Learnables {
				near(t, n.Name(), number(weights[i]), n.Value(), 1e-3)
			}
			if k.Name == "regression" {
				return // one layer, whose input alone is most of the memory
			}
			less := gomem.Options{Policy: planner.Auto, DeviceBytes: device / 3, Effort: 20,
				Partition: 1}
			again, same, used := train(t, k.New(k.Small), less)
			if !slices.Equal(again, losses) || !slices.EqualFunc(same, weights, slices.Equal) {
				t.Error("other bits within a third of the memory")
			}
			t.Logf("device: %d bytes, then %d", device, used)
		})
	}
}

// number is a value of float64 numbers.
func number(x []float64) G.Value {
	return made(x, []int{len(x)}, func(x float64) G.Value { return G.NewF64(x) })
}
