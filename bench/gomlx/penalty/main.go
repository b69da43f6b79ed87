// Penalty is examples/penalty with GoMLX.
package main

import (
	"fmt"
	"log"
	"math"
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

// network is a logit for every point; its slope there is penalised.
func network(scope *model.Scope, spec any, inputs []*Node) []*Node {
	x := inputs[0]
	logits := fnn.New(scope, x, 1).NumHiddenLayers(2, 64).Activation(activation.TypeTanh).Done()
	slope := Gradient(ReduceAllSum(logits), x)[0]
	penalty := ReduceAllMean(ReduceSum(Square(slope), -1))
	train.AddRegularizationLoss(MulScalar(penalty, 0.05))
	return []*Node{logits}
}

// moons are points on two half circles that reach into each other.
func moons(n int, rng *rand.Rand) (x, y *tensors.Tensor) {
	points, labels := make([]float32, 2*n), make([]float32, n)
	for i := range labels {
		angle, side := math.Pi*rng.Float64(), float64(i%2)
		labels[i] = float32(side)
		points[2*i] = float32(math.Cos(angle)*(1-2*side) + side + 0.1*rng.NormFloat64())
		points[2*i+1] = float32(math.Sin(angle)*(1-2*side) + side/2 + 0.1*rng.NormFloat64())
	}
	return tensors.FromFlatDataAndDimensions(points, n, 2),
		tensors.FromFlatDataAndDimensions(labels, n, 1)
}

func main() {
	backend := compute.MustNew()
	batches := func(n int, seed uint64) *dataset.InMemoryDataset {
		x, y := moons(n, rand.New(rand.NewPCG(seed, 0)))
		d, err := dataset.InMemoryFromData(backend, "moons", []any{x}, []any{y})
		if err != nil {
			log.Fatal(err)
		}
		return d.BatchSize(128, true)
	}
	trainer := train.NewTrainer(backend, model.NewStore(), network, loss.BinaryCrossentropyLogits,
		optimizer.Adam().LearningRate(0.005).Done(), nil,
		[]metric.Interface{metric.NewMeanBinaryLogitsAccuracy("accuracy", "acc")})
	loop := train.NewLoop(trainer)
	if _, err := loop.RunEpochs(batches(2304, 1).Shuffle(), 20); err != nil {
		log.Fatal(err)
	}
	results, err := trainer.Eval(batches(256, 2))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("accuracy %v, %v a step\n", results[len(results)-1],
		loop.MedianTrainStepDuration())
}
