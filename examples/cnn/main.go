// Cnn tells pictures apart by convolutions, wherever on them the stripes are, within a
// third of the device memory that training takes without a budget.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

const n, batch, side, budget = 3200, 32, 28, 2 << 20

// network is seven convolutions with norms, the mean of every channel, and four classes.
func network() *nn.Model {
	m := nn.NewModel()
	x := m.Input("x", graph.F32, batch, 1, side, side)
	y := m.Input("y", graph.I32, batch)
	net := func(c *nn.Ctx) graph.Value {
		h := x
		for i, stride := range []int{2, 1, 1, 1, 1, 1, 2} {
			block := c.In(fmt.Sprint("block", i))
			h = nn.Conv2D(block.In("conv"), h, 16, 3, nn.ConvOptions{Stride: stride})
			h = nn.Relu(nn.GroupNorm(block.In("norm"), h, 1))
		}
		return nn.Linear(c.In("out"), nn.GlobalMean(h), 4)
	}
	m.Minimize(nn.CrossEntropy(net(m.Training()), y), nn.Adam{})
	logits := net(m.Evaluation())
	m.Evaluate(nn.CrossEntropy(logits, y), nn.Accuracy(logits, y))
	return m
}

// stripes are pictures of noise over stripes: across, upright, or along a diagonal.
func stripes() (*data.Examples, error) {
	rng := rand.New(rand.NewPCG(1, 0))
	x := gomem.NewTensor(graph.Of(graph.F32, n, 1, side, side))
	y := gomem.NewTensor(graph.Of(graph.I32, n))
	for i := range x.F32() {
		k, row, column := i/(side*side), i/side%side, i%side
		class := k % 4
		y.I32()[k] = int32(class)
		at := [4]int{row, column, row + column, row + side - column}[class]
		x.F32()[i] = float32(rng.NormFloat64()) + float32((at+k)/2%2)
	}
	return data.FromTensors(data.ExamplesOptions{Batch: batch}, x, y)
}

func main() {
	batches, err := stripes()
	if err == nil {
		_, err = train.Run(context.Background(), train.Options{
			Model: network(), Loader: batches, Epochs: 1, EvalEvery: 30,
			Session: gomem.Options{Policy: "auto", DeviceBytes: budget},
			Observe: train.Show(os.Stdout),
		})
	}
	if err != nil {
		log.Fatal(err)
	}
}
