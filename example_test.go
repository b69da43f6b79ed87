package gomem_test

import (
	"context"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
)

// Example trains a small perceptron on a function of two variables, under a
// budget.
func Example() {
	ctx := context.Background()
	g := graph.New()
	matrix := func(r, c int) graph.Type {
		return graph.Type{DType: graph.F32, Shape: []graph.Dim{{Size: r}, {Size: c}}}
	}
	x, y := g.Input("x", matrix(64, 2)), g.Input("y", matrix(64, 1))
	normal := func(s float64) graph.Init { return graph.Init{Dist: graph.Normal, Scale: s} }
	w1, w2 := g.Variable("w1", matrix(2, 32), normal(1)),
		g.Variable("w2", matrix(32, 1), normal(0.2))
	guess := ops.MatMul(ops.Tanh(ops.MatMul(x, w1)), w2)
	loss := ops.Mean(ops.Square(ops.Sub(guess, y)))
	rate := ops.Full(g, graph.Type{DType: graph.F32}, 0.05)
	for i, d := range autodiff.Grad(loss, w1, w2) {
		ops.SGD([]graph.Value{w1, w2}[i], d, rate)
	}

	s, err := gomem.Compile(ctx, g, gomem.Options{DeviceBytes: 24 << 10}, gomem.Training(g, loss))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	in, out := gomem.NewTensor(x.Type()), gomem.NewTensor(y.Type())
	for i := range 64 {
		a, b := float32(i%8)/4-1, float32(i/8)/4-1
		in.F32()[2*i], in.F32()[2*i+1], out.F32()[i] = a, b, a*b
	}
	var first, last float32
	for step := range 500 {
		fetched, err := s.Step(ctx, "train", gomem.Feeds{x: in, y: out})
		if err != nil {
			fmt.Println(err)
			return
		}
		last = fetched[0].F32()[0]
		if step == 0 {
			first = last
		}
	}
	fmt.Println("the loss fell to a tenth:", last < first/10)
	for _, u := range s.Usage() {
		fmt.Printf("%s: predicted %d bytes, used %d\n", u.Space, u.Predicted, u.Actual)
	}
	// Output:
	// the loss fell to a tenth: true
	// device: predicted 17476 bytes, used 17476
	// host: predicted 1152 bytes, used 1152
}

// ExampleCompile_outOfMemory shows what is said of a budget that cannot be met.
func ExampleCompile_outOfMemory() {
	g := graph.New()
	x := g.Input("x", graph.Type{DType: graph.F32, Shape: []graph.Dim{{Size: 256}, {Size: 256}}})
	sum := ops.Sum(ops.MatMul(x, x))
	o := gomem.Options{DeviceBytes: 300 << 10}
	_, err := gomem.Compile(context.Background(), g, o, gomem.Evaluation(sum))
	fmt.Println(err)
	// Output:
	// gomem: eval needs 512KiB (524288 bytes) of device memory, the budget is 300KiB; matmul (matmul) sets it: x f32[256 256] 256KiB, matmul f32[256 256] 256KiB; use a smaller batch or model, or a larger budget
}
