// Regression learns the price of a house by what a CSV file says of it. R², the part of
// the prices' variance that is explained, is 1 less the held-out loss.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/csv"
	"log"
	"math"
	"os"
	"strconv"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

const features, batch, budget = 7, 50, 112 << 10

//go:embed houses.csv
var houses []byte

// network is the price by seven features.
func network() *nn.Model {
	m := nn.NewModel()
	x, y := m.Input("x", graph.F32, batch, features), m.Input("y", graph.F32, batch, 1)
	net := func(c *nn.Ctx) graph.Value {
		h := nn.Gelu(nn.Linear(c.In("hidden0"), x, 128))
		h = nn.Gelu(nn.Linear(c.In("hidden1"), h, 128))
		return nn.Linear(c.In("out"), h, 1)
	}
	m.Minimize(nn.MSE(net(m.Training()), y), nn.Adam{})
	m.Evaluate(nn.MSE(net(m.Evaluation()), y))
	return m
}

// read gives the columns with mean 0 and variance 1, the last one apart.
func read() (*data.Examples, error) {
	rows, err := csv.NewReader(bytes.NewReader(houses)).ReadAll()
	if err != nil {
		return nil, err
	}
	rows = rows[1:]
	x := gomem.NewTensor(graph.Of(graph.F32, len(rows), features))
	y := gomem.NewTensor(graph.Of(graph.F32, len(rows), 1))
	for k := range features + 1 {
		column, sum, squares := make([]float64, len(rows)), 0.0, 0.0
		for i, row := range rows {
			if column[i], err = strconv.ParseFloat(row[k], 64); err != nil {
				return nil, err
			}
			sum, squares = sum+column[i], squares+column[i]*column[i]
		}
		mean := sum / float64(len(rows))
		deviation := math.Sqrt(squares/float64(len(rows)) - mean*mean)
		for i, number := range column {
			if number = (number - mean) / deviation; k < features {
				x.F32()[i*features+k] = float32(number)
			} else {
				y.F32()[i] = float32(number)
			}
		}
	}
	return data.FromTensors(data.ExamplesOptions{Batch: batch}, x, y)
}

func main() {
	batches, err := read()
	if err == nil {
		_, err = train.Run(context.Background(), train.Options{
			Model: network(), Loader: batches, Epochs: 60, EvalEvery: 90,
			Session: gomem.Options{Policy: "auto", DeviceBytes: budget},
			Observe: train.Show(os.Stdout),
		})
	}
	if err != nil {
		log.Fatal(err)
	}
}
