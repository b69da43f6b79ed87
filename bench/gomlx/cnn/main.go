// Cnn is examples/cnn with GoMLX.
package main

import (
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/dataset"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

const batch, side = 32, 28

// network is seven convolutions with norms, the mean of every channel, and four classes.
func network(scope *model.Scope, spec any, inputs []*Node) []*Node {
	x := inputs[0]
	for i, stride := range []int{2, 1, 1, 1, 1, 1, 2} {
		block := scope.In("block%d", i)
		x = layers.Convolution(block, x).Channels(16).KernelSize(3).Strides(stride).PadSame().Done()
		x = activation.Relu(norm.LayerNorm(block, x, 1, 2, 3).Done())
	}
	return []*Node{layers.Dense(scope, ReduceMean(x, 1, 2), true, 4)}
}

// stripes are pictures of noise over stripes: across, upright, or along a diagonal.
func stripes(n int, rng *rand.Rand) (x, y *tensors.Tensor) {
	pixels, classes := make([]float32, n*side*side), make([]int32, n)
	for i := range pixels {
		k, row, column := i/(side*side), i/side%side, i%side
		class := k % 4
		classes[k] = int32(class)
		at := [4]int{row, column, row + column, row + side - column}[class]
		pixels[i] = float32(rng.NormFloat64()) + float32((at+k)/2%2)
	}
	return tensors.FromFlatDataAndDimensions(pixels, n, side, side, 1),
		tensors.FromFlatDataAndDimensions(classes, n, 1)
}

func main() {
	backend := compute.MustNew()
	batches := func(n int, seed uint64) *dataset.InMemoryDataset {
		x, y := stripes(n, rand.New(rand.NewPCG(seed, 0)))
		d, err := dataset.InMemoryFromData(backend, "stripes", []any{x}, []any{y})
		if err != nil {
			log.Fatal(err)
		}
		return d.BatchSize(batch, true)
	}
	accuracy := metric.NewSparseCategoricalAccuracy("accuracy", "acc")
	trainer := train.NewTrainer(backend, model.NewStore(), network,
		loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Done(), nil,
		[]metric.Interface{accuracy})
	loop := train.NewLoop(trainer)
	if _, err := loop.RunEpochs(batches(2880, 1).Shuffle(), 1); err != nil {
		log.Fatal(err)
	}
	results, err := trainer.Eval(batches(320, 2))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("accuracy %v, %v a step\n", results[1], loop.MedianTrainStepDuration())
}
