// Mlp is examples/mlp with GoMLX.
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
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/fnn"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// network is 784 pixels, 256 hidden units, ten classes.
func network(scope *model.Scope, spec any, inputs []*Node) []*Node {
	h := fnn.New(scope, inputs[0], 10).NumHiddenLayers(1, 256).Activation(activation.TypeRelu)
	return []*Node{h.Done()}
}

// pictures are noise over stripes, as wide as the picture's class says.
func pictures(n int, rng *rand.Rand) (x, y *tensors.Tensor) {
	pixels, classes := make([]float32, n*784), make([]int32, n)
	for i := range pixels {
		classes[i/784] = int32(i / 784 % 10)
		pixels[i] = 3*float32(rng.NormFloat64()) + float32(i%784/(i/784%10+1)%2)
	}
	return tensors.FromFlatDataAndDimensions(pixels, n, 784),
		tensors.FromFlatDataAndDimensions(classes, n, 1)
}

func main() {
	backend := compute.MustNew()
	batches := func(n int, seed uint64) *dataset.InMemoryDataset {
		x, y := pictures(n, rand.New(rand.NewPCG(seed, 0)))
		d, err := dataset.InMemoryFromData(backend, "pictures", []any{x}, []any{y})
		if err != nil {
			log.Fatal(err)
		}
		return d.BatchSize(64, true)
	}
	accuracy := metric.NewSparseCategoricalAccuracy("accuracy", "acc")
	trainer := train.NewTrainer(backend, model.NewStore(), network,
		loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Done(), nil,
		[]metric.Interface{accuracy})
	loop := train.NewLoop(trainer)
	if _, err := loop.RunEpochs(batches(5760, 1).Shuffle(), 5); err != nil {
		log.Fatal(err)
	}
	results, err := trainer.Eval(batches(640, 2))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("accuracy %v, %v a step\n", results[1], loop.MedianTrainStepDuration())
}
