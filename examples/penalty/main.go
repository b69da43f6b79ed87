// Penalty fits a curve between two moons that may not be steep: the gradient of the
// network by its input is a part of the loss, so the loss's gradient is one of a gradient.
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

const n, batch, budget = 2560, 128, 104 << 10

// network is a logit for every point, and the mean square of its slope there.
func network() *nn.Model {
	m := nn.NewModel()
	x, y := m.Input("x", graph.F32, batch, 2), m.Input("y", graph.F32, batch, 1)
	net := func(c *nn.Ctx) (logits, slope graph.Value) {
		h := x
		for i := range 2 {
			h = nn.Tanh(nn.Linear(c.In(fmt.Sprint("hidden", i)), h, 64))
		}
		logits = nn.Linear(c.In("out"), h, 1)
		gradient := autodiff.Grad(ops.Sum(logits), x)[0]
		return logits, ops.Mean(ops.Sum(ops.Square(gradient), 1))
	}
	logits, slope := net(m.Training())
	loss := ops.Add(nn.BinaryCrossEntropy(logits, y), ops.Scale(slope, 0.05))
	m.Minimize(loss, nn.Adam{}, nn.MinimizeOptions{Rate: nn.Constant(0.005)})
	logits, slope = net(m.Evaluation())
	right := ops.Cast(ops.Equal(ops.Round(nn.Sigmoid(logits)), y), graph.F32)
	m.Evaluate(nn.BinaryCrossEntropy(logits, y),
		nn.Metric{Name: "accuracy", Value: ops.Mean(right)},
		nn.Metric{Name: "slope", Value: slope})
	return m
}

// moons are points on two half circles that reach into each other.
func moons() (*data.Examples, error) {
	rng := rand.New(rand.NewPCG(1, 0))
	x := gomem.NewTensor(graph.Of(graph.F32, n, 2))
	y := gomem.NewTensor(graph.Of(graph.F32, n, 1))
	for i := range y.F32() {
		angle, side := math.Pi*rng.Float64(), float64(i%2)
		y.F32()[i] = float32(side)
		x.F32()[2*i] = float32(math.Cos(angle)*(1-2*side) + side + 0.1*rng.NormFloat64())
		x.F32()[2*i+1] = float32(math.Sin(angle)*(1-2*side) + side/2 + 0.1*rng.NormFloat64())
	}
	return data.FromTensors(data.ExamplesOptions{Batch: batch}, x, y)
}

func main() {
	batches, err := moons()
	if err == nil {
		_, err = train.Run(context.Background(), train.Options{
			Model: network(), Loader: batches, Epochs: 20, EvalEvery: 90,
			Session: gomem.Options{Policy: "auto", DeviceBytes: budget},
			Observe: train.Show(os.Stdout),
		})
	}
	if err != nil {
		log.Fatal(err)
	}
}
