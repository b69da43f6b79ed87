package ops_test

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// A classifier and its gradients. Nothing is computed yet: the values are nodes
// of a graph, and only types are known.
func Example() {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 32, 64))
	labels := g.Input("labels", tensor.Of(graph.I32, 32))
	w := g.Variable("w", tensor.Of(graph.F32, 64, 10), graph.Init{Dist: graph.Normal, Scale: 0.1})
	b := g.Variable("b", tensor.Of(graph.F32, 10), graph.Init{})

	logits := ops.Add(ops.MatMul(x, w), b)
	loss := ops.Mean(ops.CrossEntropy(logits, labels, 0.1))
	gradients := autodiff.Grad(loss, w, b)

	fmt.Println(logits.Type(), loss.Type())
	for _, d := range gradients {
		fmt.Println(d.Type())
	}
	fmt.Println(g.Err())
	// Output:
	// f32[32 10] f32[]
	// f32[64 10]
	// f32[10]
	// <nil>
}

// A mistake is recorded in the graph, with the line that made it; operations on
// its result do nothing more.
func Example_mistake() {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 32, 64))
	w := g.Variable("w", tensor.Of(graph.F32, 10, 64), graph.Init{})
	logits := ops.MatMul(x, w)
	loss := ops.Sum(ops.Relu(logits))
	fmt.Println(loss.Valid())
	fmt.Println(g.Err())
	// Output:
	// false
	// matmul: matmul[f32[32 64] f32[10 64]]: inner dimensions differ: 64 and 10 (ops/example_test.go:43)
}

// A step of a decoder: the keys of its past are a variable, to which the step adds those
// of its own token. It attends to both, and what lies behind the position is masked.
func ExampleWriteAt() {
	g := graph.New()
	past := g.State("keys", tensor.Of(graph.F32, 2, 1, 128, 16), graph.Init{}) // one head
	position := g.Input("position", tensor.Of(graph.I32))
	q := ops.Rotary(g.Input("q", tensor.Of(graph.F32, 2, 4, 1, 16)), position, ops.Rotation{})
	k := ops.Rotary(g.Input("k", tensor.Of(graph.F32, 2, 1, 1, 16)), position, ops.Rotation{})

	keys := ops.PutAt(past, k, position, 2)
	logits := ops.Add(ops.MatMulT(q, keys, false, true), ops.CausalMaskAt(position, 1, 128))
	shares := ops.Softmax(ops.Scale(logits, 0.25))
	update := ops.WriteAt(past, k, position, 2)

	fmt.Println(shares.Type(), update.OpName())
	fmt.Println(g.Err())
	// Output:
	// f32[2 4 1 128] write-at
	// <nil>
}
