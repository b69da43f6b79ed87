// Early tells pictures apart by a network with two ways out: a picture of which the first
// layer is sure leaves there, and what follows is not computed.
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
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

const (
	n, batch, pixels, width, depth, classes = 6400, 64, 256, 128, 3, 8

	sure, budget = 0.9, 440 << 10
)

// dense is a layer without a bias.
func dense(x, weight graph.Value) graph.Value { return nn.Relu(ops.MatMul(x, weight)) }

// rest is what follows the first layer.
func rest(h graph.Value, weights []graph.Value) graph.Value {
	for _, w := range weights[:depth] {
		h = dense(h, w)
	}
	return ops.MatMul(h, weights[depth])
}

// weights are those of the first layer, of its way out, and of the rest.
func weights(c *nn.Ctx) []graph.Value {
	list := []graph.Value{c.Param("first", nn.He, pixels, width),
		c.Param("out0", nn.Glorot, width, classes)}
	for i := range depth {
		list = append(list, c.Param(fmt.Sprint("rest", i), nn.He, width, width))
	}
	return append(list, c.Param("out1", nn.Glorot, width, classes))
}

// network trains both ways out with whole batches, and evaluates picture by picture.
func network() *nn.Model {
	m := nn.NewModel()
	x, y := m.Input("x", graph.F32, batch, pixels), m.Input("y", graph.I32, batch)
	w := weights(m.Training())
	h := dense(x, w[0])
	m.Minimize(ops.Add(nn.CrossEntropy(ops.MatMul(h, w[1]), y), nn.CrossEntropy(rest(h, w[2:]), y)),
		nn.Adam{})
	_, out := control.Scan(weights(m.Evaluation()), nil, []graph.Value{x}, picture)
	m.Evaluate(nn.CrossEntropy(out[0], y), nn.Accuracy(out[0], y),
		nn.Metric{Name: "early", Value: ops.Mean(out[1])})
	return m
}

// picture gives the logits of one picture, and 1 if it left early.
func picture(w, _, x []graph.Value) (_, out []graph.Value) {
	h := dense(ops.ExpandDims(x[0], 0), w[0])
	first := ops.MatMul(h, w[1])
	most := ops.Max(nn.Softmax(first))
	leaves := ops.Greater(most, ops.Full(most.Graph(), most.Type(), sure))
	logits := control.Cond(leaves, append([]graph.Value{first, h}, w[2:]...),
		func(in []graph.Value) []graph.Value { return in[:1] },
		func(in []graph.Value) []graph.Value { return []graph.Value{rest(in[1], in[2:])} })
	return nil, []graph.Value{ops.Squeeze(logits[0], 0), ops.Cast(leaves, graph.F32)}
}

// pictures are noise over stripes, as wide as the class says; some have little noise.
func pictures() (*data.Examples, error) {
	rng := rand.New(rand.NewPCG(1, 0))
	x := gomem.NewTensor(graph.Of(graph.F32, n, pixels))
	y := gomem.NewTensor(graph.Of(graph.I32, n))
	for i := range n {
		class, noise := rng.IntN(classes), float32(0.5+2*rng.Float64())
		y.I32()[i] = int32(class)
		for k := range pixels {
			x.F32()[i*pixels+k] = noise*float32(rng.NormFloat64()) + float32(k/(class+1)%2)
		}
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
