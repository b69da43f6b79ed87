// Mlp tells pictures apart by a hidden layer: the smallest whole program. Its budget of
// device memory is less than a third of what training takes without one.
package main

import (
	"context"
	"log"
	"math/rand/v2"
	"os"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

const n, batch, budget = 6400, 64, 1 << 20

// network is 784 pixels, 256 hidden units, ten classes.
func network() *nn.Model {
	m := nn.NewModel()
	x, y := m.Input("x", graph.F32, batch, 784), m.Input("y", graph.I32, batch)
	net := func(c *nn.Ctx) graph.Value {
		return nn.Linear(c.In("out"), nn.Relu(nn.Linear(c.In("hidden"), x, 256)), 10)
	}
	m.Minimize(nn.CrossEntropy(net(m.Training()), y), nn.Adam{})
	logits := net(m.Evaluation())
	m.Evaluate(nn.CrossEntropy(logits, y), nn.Accuracy(logits, y))
	return m
}

// pictures are noise over stripes, as wide as the picture's class says.
func pictures() (*data.Examples, error) {
	rng := rand.New(rand.NewPCG(1, 0))
	x, y := gomem.NewTensor(graph.Of(graph.F32, n, 784)), gomem.NewTensor(graph.Of(graph.I32, n))
	for i := range x.F32() {
		y.I32()[i/784] = int32(i / 784 % 10)
		x.F32()[i] = 3*float32(rng.NormFloat64()) + float32(i%784/(i/784%10+1)%2)
	}
	return data.FromTensors(data.ExamplesOptions{Batch: batch}, x, y)
}

func main() {
	batches, err := pictures()
	if err == nil {
		_, err = train.Run(context.Background(), train.Options{
			Model: network(), Loader: batches, Epochs: 5, Observe: train.Show(os.Stdout),
			Session: gomem.Options{Policy: "auto", DeviceBytes: budget},
		})
	}
	if err != nil {
		log.Fatal(err)
	}
}
