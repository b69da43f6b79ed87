package data_test

import (
	"fmt"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
)

// Ten numbers and their squares, in batches of four; the last one is filled up.
func ExampleFromTensors() {
	x, y := make([]float32, 10), make([]float32, 10)
	for i := range x {
		x[i], y[i] = float32(i), float32(i*i)
	}
	batches, err := data.FromTensors(data.ExamplesOptions{Batch: 4, HeldOut: -1, Pad: true},
		tensor.FromF32(x, 10), tensor.FromF32(y, 10))
	if err != nil {
		fmt.Println(err)
		return
	}
	for step := range batches.StepsPerEpoch() {
		b := batches.Train(step)
		fmt.Println(b.Inputs[0].F32(), b.Inputs[1].F32(), b.Inputs[2].F32(), b.Units)
	}
	// Output:
	// [2 0 5 8] [4 0 25 64] [1 1 1 1] 4
	// [4 6 7 9] [16 36 49 81] [1 1 1 1] 4
	// [3 1 0 0] [9 1 0 0] [1 1 0 0] 2
}
