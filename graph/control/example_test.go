package control_test

import (
	"context"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// The sum of squares so far, of every element of a sequence, and the gradient of the last one.
func ExampleScan() {
	g := graph.New()
	xs := g.Input("xs", graph.Of(graph.F32, 3))
	zero := ops.Zeros(g, graph.Of(graph.F32))
	last, sums := control.Scan(nil, []graph.Value{zero}, []graph.Value{xs},
		func(_, sum, x []graph.Value) (next, ys []graph.Value) {
			next = []graph.Value{ops.Add(sum[0], ops.Square(x[0]))}
			return next, next
		})
	d := autodiff.Grad(last[0], xs)[0]
	fed := tensor.FromF32([]float32{1, 2, 3}, 3)
	for _, v := range run(g, xs, fed, sums[0], d) {
		fmt.Println(v.F32())
	}
	// Output:
	// [1 5 14]
	// [2 4 6]
}

// run executes a graph with one input.
func run(g *graph.Graph, in graph.Value, fed tensor.View, fetches ...graph.Value) []tensor.View {
	s, err := gomem.Compile(context.Background(), g, gomem.Options{DeviceBytes: 1 << 20},
		gomem.Target{Name: "run", Fetches: fetches})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	out, err := s.Step(context.Background(), "run", gomem.Feeds{in: fed})
	if err != nil {
		panic(err)
	}
	return out
}
