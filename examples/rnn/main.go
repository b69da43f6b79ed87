// Rnn reads texts of any length and says which vowel came last. The loop over letters is one
// operation, which ends with the longest text of its batch, however much room there is.
package main

import (
	"context"
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

const n, batch, letters, vowels, room, width, budget = 9600, 32, 26, 5, 64, 32, 276 << 10

// network reads a letter a step by an LSTM; a text that is over keeps its state.
func network() *nn.Model {
	m := nn.NewModel()
	x, y := m.Input("x", graph.I32, batch, room), m.Input("y", graph.I32, batch)
	length := m.Input("length", graph.I32, batch, 1)
	longest := ops.Max(length)
	net := func(c *nn.Ctx) graph.Value {
		table := c.Param("letters", nn.Glorot, letters, width)
		weight := c.Param("weight", nn.Glorot, 2*width, 4*width)
		zeros := ops.Zeros(c.Graph(), graph.Of(graph.F32, batch, width))
		step := func(same, states, xs []graph.Value) (next, ys []graph.Value) {
			both := ops.Concat(1, ops.Embedding(same[0], xs[0]), states[0])
			h, cell := ops.LSTMCell(ops.MatMul(both, same[1]), states[1], 1)
			reads := ops.Less(xs[1], same[2])
			return []graph.Value{ops.Where(reads, h, states[0]),
				ops.Where(reads, cell, states[1])}, nil
		}
		same, states := []graph.Value{table, weight, length}, []graph.Value{zeros, zeros}
		xs := []graph.Value{ops.Transpose(x, 1, 0), places(c.Graph())}
		last, _ := control.Scan(same, states, xs, step, control.Options{Count: longest})
		return nn.Linear(c.In("out"), last[0], vowels)
	}
	m.Minimize(nn.CrossEntropy(net(m.Training()), y), nn.Adam{},
		nn.MinimizeOptions{Rate: nn.Constant(0.004)})
	logits := net(m.Evaluation())
	m.Evaluate(nn.CrossEntropy(logits, y), nn.Accuracy(logits, y),
		nn.Metric{Name: "steps", Value: ops.Cast(longest, graph.F32)})
	return m
}

// places are the numbers of a text's letters, from 0.
func places(g *graph.Graph) graph.Value {
	v := gomem.NewTensor(graph.Of(graph.I32, room))
	for i := range v.I32() {
		v.I32()[i] = int32(i)
	}
	return g.Constant("places", v)
}

// texts are letters, the first five of which are vowels; most texts are short.
func texts() (*data.Examples, error) {
	return data.FromFunc(data.ExamplesOptions{Batch: batch}, n,
		func(i int, row []gomem.Tensor) {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			length := 1 + min(int(5*rng.ExpFloat64()), room-1)
			for i := range length {
				letter := rng.Int32N(letters)
				if i == 0 {
					letter %= vowels
				}
				if row[0].I32()[i] = letter; letter < vowels {
					row[1].I32()[0] = letter
				}
			}
			row[2].I32()[0] = int32(length)
		}, graph.Of(graph.I32, room), graph.Of(graph.I32), graph.Of(graph.I32, 1))
}

func main() {
	batches, err := texts()
	if err == nil {
		_, err = train.Run(context.Background(), train.Options{
			Model: network(), Loader: batches, Epochs: 1, EvalEvery: 100,
			Session: gomem.Options{Policy: "auto", DeviceBytes: budget},
			Observe: train.Show(os.Stdout),
		})
	}
	if err != nil {
		log.Fatal(err)
	}
}
