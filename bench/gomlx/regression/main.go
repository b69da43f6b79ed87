// Regression is examples/regression with GoMLX.
package main

import (
	"encoding/csv"
	"fmt"
	"log"
	"math"
	"os"
	"strconv"

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

// features are the columns before the price.
const features = 7

// network is the price by seven features.
func network(scope *model.Scope, spec any, inputs []*Node) []*Node {
	h := fnn.New(scope, inputs[0], 1).NumHiddenLayers(2, 128).Activation(activation.TypeGelu)
	return []*Node{h.Done()}
}

// read gives the columns with mean 0 and variance 1, the last one apart.
func read(path string) (x, y []float32, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, nil, err
	}
	rows = rows[1:]
	x, y = make([]float32, features*len(rows)), make([]float32, len(rows))
	for k := range features + 1 {
		column, sum, squares := make([]float64, len(rows)), 0.0, 0.0
		for i, row := range rows {
			if column[i], err = strconv.ParseFloat(row[k], 64); err != nil {
				return nil, nil, err
			}
			sum, squares = sum+column[i], squares+column[i]*column[i]
		}
		mean := sum / float64(len(rows))
		deviation := math.Sqrt(squares/float64(len(rows)) - mean*mean)
		for i, number := range column {
			if number = (number - mean) / deviation; k < features {
				x[i*features+k] = float32(number)
			} else {
				y[i] = float32(number)
			}
		}
	}
	return x, y, nil
}

func main() {
	x, y, err := read("../../examples/regression/houses.csv")
	if err != nil {
		log.Fatal(err)
	}
	backend := compute.MustNew()
	batches := func(from, to int) *dataset.InMemoryDataset {
		x := tensors.FromFlatDataAndDimensions(x[from*features:to*features], to-from, features)
		y := tensors.FromFlatDataAndDimensions(y[from:to], to-from, 1)
		d, err := dataset.InMemoryFromData(backend, "houses", []any{x}, []any{y})
		if err != nil {
			log.Fatal(err)
		}
		return d.BatchSize(50, true)
	}
	trainer := train.NewTrainer(backend, model.NewStore(), network, loss.MeanSquaredError,
		optimizer.Adam().Done(), nil, []metric.Interface{})
	loop := train.NewLoop(trainer)
	if _, err := loop.RunEpochs(batches(0, 450).Shuffle(), 60); err != nil {
		log.Fatal(err)
	}
	results, err := trainer.Eval(batches(450, 500))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("held-out loss %v, %v a step\n", results[0], loop.MedianTrainStepDuration())
}
