// The example trains a perceptron that is written in Gorgonia, on Gorgonia's machine and on gomem
// within a third of the device memory that its step needs without a budget, and compares the
// losses of every step.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/front/gorgonia"
	"github.com/gomem/gomem/front/gorgonia/internal/nets"
	"github.com/gomem/gomem/planner"
)

const steps = 20

// network is the same every time: a graph of Gorgonia's, its learnables, a solver and data.
func network() *nets.Net {
	for _, k := range nets.Kinds() {
		if k.Name == "perceptron" {
			return k.New(k.Small)
		}
	}
	panic("there is no perceptron")
}

// learn trains by a plan, and returns the losses and the most device memory, in bytes.
func learn(o gomem.Options) (losses []float64, device int64, err error) {
	ctx, n := context.Background(), network()
	p, err := gorgonia.New(ctx, n.Loss, n.Learnables,
		gorgonia.Options{Solver: n.Solver, Gomem: o})
	if err != nil {
		return nil, 0, err
	}
	for step := range steps {
		if err := errors.Join(n.Feed(step), p.Step(ctx)); err != nil {
			return nil, 0, errors.Join(err, p.Close())
		}
		losses = append(losses, nets.Number(n.Loss.Value()))
	}
	return losses, p.Usage()[0].Actual, p.Close()
}

func main() {
	want, _, err := network().Train(steps, func() {})
	if err != nil {
		log.Fatal(err)
	}
	free, device, err := learn(gomem.Options{Policy: planner.Vanilla})
	if err != nil {
		log.Fatal(err)
	}
	budget := device / 3
	losses, peak, err := learn(gomem.Options{Policy: planner.Auto, Partition: 1, Effort: 50,
		DeviceBytes: budget})
	if err != nil {
		log.Fatal(err)
	}
	var off float64
	for i := range losses {
		if losses[i] != free[i] {
			log.Fatalf("step %d: loss %v within the budget, %v without", i, losses[i], free[i])
		}
		off = max(off, math.Abs(losses[i]-want[i]))
	}
	fmt.Printf("loss %.4f at first, %.4f after %d steps\n", losses[0], losses[steps-1], steps)
	fmt.Printf("the most that it differs from Gorgonia's machine: %.2g\n", off)
	fmt.Printf("device memory: %d bytes without a budget, budget %d, peak %d\n", device, budget,
		peak)
}
