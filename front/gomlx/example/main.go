// The example trains a Transformer that is written in GoMLX, on GoMLX's backend in Go and on gomem
// within a third of the device memory that its step needs without a budget, and compares the
// losses of every step.
package main

import (
	"fmt"
	"log"
	"math"

	gomem "github.com/gomem/gomem/front/gomlx"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
)

const (
	batch, length, symbols, width, heads, depth = 8, 32, 32, 32, 4, 4
	steps                                       = 20
)

// network is the logits of the symbol after each.
func network(ctx *context.Context, _ any, inputs []*graph.Node) []*graph.Node {
	x := layers.Embedding(ctx.In("symbols"), inputs[0], dtypes.Float32, symbols, width)
	place := graph.Iota(x.Graph(), inputs[0].Shape(), 1)
	x = graph.Add(x, layers.Embedding(ctx.In("places"), place, dtypes.Float32, length, width))
	for i := range depth {
		in := ctx.Inf("layer%d", i)
		h := layers.LayerNormalization(in.In("norm1"), x, -1).Done()
		h = layers.MultiHeadAttention(in, h, h, h, heads, width/heads).UseCausalMask().Done()
		x = graph.Add(x, h)
		h = layers.LayerNormalization(in.In("norm2"), x, -1).Done()
		h = layers.Dense(in.In("wide"), h, true, 4*width)
		x = graph.Add(x, layers.Dense(in.In("narrow"), graph.Tanh(h), true, width))
	}
	return []*graph.Node{layers.Dense(ctx.In("out"), x, true, symbols)}
}

// batchOf is sequences in which each symbol is the one before times 5 and 3, plus the sequence's
// number of the batch's, and the symbols after each.
func batchOf(step int) (x, y *tensors.Tensor) {
	ids, next := make([]int32, batch*length), make([]int32, batch*length)
	for i := range batch {
		symbol := (step*batch + i) % symbols
		for t := range length {
			ids[i*length+t] = int32(symbol)
			symbol = (5*symbol + 3 + i) % symbols
			next[i*length+t] = int32(symbol)
		}
	}
	return tensors.FromFlatDataAndDimensions(ids, batch, length),
		tensors.FromFlatDataAndDimensions(next, batch, length, 1)
}

// learn trains for some steps, and returns the losses.
func learn(b backends.Backend) ([]float64, error) {
	ctx := context.New()
	if err := ctx.SetRNGStateFromSeed(1); err != nil {
		return nil, err
	}
	trainer := train.NewTrainer(b, ctx, network, losses.SparseCategoricalCrossEntropyLogits,
		optimizers.Adam().LearningRate(0.003).Done(), nil, nil)
	var out []float64
	for step := range steps {
		x, y := batchOf(step)
		metrics, err := trainer.TrainStep(nil, []*tensors.Tensor{x}, []*tensors.Tensor{y})
		if err != nil {
			return nil, err
		}
		out = append(out, float64(tensors.ToScalar[float32](metrics[0])))
	}
	return out, nil
}

// within trains by a configuration, and returns the losses and the most memory.
func within(config string) ([]float64, int64, error) {
	b, err := gomem.New(config)
	if err != nil {
		return nil, 0, err
	}
	defer b.Finalize()
	losses, err := learn(b)
	return losses, b.Peak().Device, err
}

// run compares, and returns the budget and the peaks with and without it.
func run() error {
	reference, err := simplego.New("")
	if err != nil {
		return err
	}
	want, err := learn(reference)
	if err != nil {
		return err
	}
	_, free, err := within("policy=vanilla")
	if err != nil {
		return err
	}
	budget := free / 3
	have, peak, err := within(fmt.Sprintf("device=%d,policy=auto,effort=20", budget))
	if err != nil {
		return err
	}
	most := 0.0
	for i := range want {
		most = max(most, math.Abs(have[i]-want[i]))
	}
	fmt.Printf("loss %.4f at first, %.4f after %d steps\n", have[0], have[steps-1], steps)
	fmt.Printf("the most that it differs from GoMLX's backend in Go: %.1e\n", most)
	fmt.Printf("device memory: %d bytes without a budget, budget %d, peak %d\n", free, budget, peak)
	if most > 1e-4 || peak > budget || have[steps-1] > have[0]/2 {
		return fmt.Errorf("losses %v, want %v", have, want)
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
