package planner_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// network is a step of training of eight layers, each of 64 units.
func network() (*graph.Graph, planner.Target) {
	g := graph.New()
	x := g.Input("x", graph.Of(graph.F32, 128, 64))
	h, weights := x, []graph.Value{}
	for i := range 8 {
		w := g.Variable(fmt.Sprint("w", i), graph.Of(graph.F32, 64, 64), graph.Init{})
		weights = append(weights, w)
		h = ops.Tanh(ops.MatMul(h, w))
	}
	loss := ops.Mean(ops.Square(h))
	train := planner.Target{Name: "train", Fetches: []graph.Value{loss}}
	rate := ops.Full(g, graph.Of(graph.F32), 0.1)
	for i, d := range autodiff.Grad(loss, weights...) {
		train.Updates = append(train.Updates, ops.SGD(weights[i], d, rate).ID)
	}
	return g, train
}

// What a step needs of the device under three policies: everything on the device, the thesis'
// rules, and the fastest plan within a budget of 160 KiB.
func ExamplePlan() {
	ctx := context.Background()
	g, train := network()
	for _, o := range []planner.Options{
		{Policy: planner.Vanilla},
		{Policy: planner.Thesis, Partition: 2},
		{Policy: planner.Auto, DeviceBytes: 160 << 10, Effort: 50},
	} {
		p, err := planner.Plan(ctx, g, o, train)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%-8s%4d KiB\n", o.Policy, p.Peak(space.Device)>>10)
	}
	// Output:
	// vanilla  480 KiB
	// thesis   128 KiB
	// auto     160 KiB
}

// The least budget of the device is exact: a byte less is refused, with what would help.
func ExampleMinDevice() {
	ctx := context.Background()
	g, train := network()
	o := planner.Options{Policy: planner.Thesis}
	least, err := planner.MinDevice(ctx, g, train, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, budget := range []int64{least, least - 1} {
		o.DeviceBytes = budget
		_, err := planner.Compile(ctx, g, train, o)
		if short, ok := errors.AsType[*planner.ErrOutOfMemory](err); ok {
			fmt.Println("refused:", short.Remedy)
		} else {
			fmt.Println("planned, error:", err)
		}
	}
	// Output:
	// planned, error: <nil>
	// refused: a partition size of 5 would fit: it needs 112KiB (114688 bytes)
}
