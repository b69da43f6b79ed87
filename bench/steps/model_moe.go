package main

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

const (
	balanceWeight  = 0.01 // of the auxiliary losses
	capacityFactor = 1.25 // of the slots of an expert, over an even share
)

// routing is two experts for each token, i32[1 tokens], and their weights.
type routing struct{ first, second, weight1, weight2 graph.Value }

// languageModel is the loss of a causal language model whose feed-forward layers
// are mixtures of experts.
func languageModel(b *builder, experts func(x graph.Value, r routing) graph.Value) graph.Value {
	tokens, labels := b.input("tokens"), b.input("labels")
	// Two experts are always chosen: the threshold is 0, and the seed decides
	// nothing.
	seed := b.graph.Constant("seed", tensor.FromI32([]int32{0, 0}, 2))
	var balance []graph.Value
	mixture := func(x graph.Value) graph.Value {
		x = ops.ReshapeSizes(x, 1, b.Batch*b.Length, b.Width)
		r, loss := b.route(x, seed)
		balance = append(balance, loss)
		return ops.ReshapeSizes(experts(x, r), b.Batch, b.Length, b.Width)
	}
	causal := ops.CausalMask(b.graph, b.Length)
	x := b.embed(tokens)
	for i := range b.Layers {
		x = b.encode(fmt.Sprintf("layer%d", i), x, causal, mixture)
	}
	loss := b.entropy(x, labels)
	for _, l := range balance {
		loss = ops.Add(loss, ops.Scale(l, balanceWeight))
	}
	return loss
}

// route chooses the two experts with the largest gates, weighed by their gates
// over the sum of both. The loss is experts · Σ mean gate · share of first
// choices.
func (b *builder) route(x, seed graph.Value) (routing, graph.Value) {
	defer b.graph.Scope("gate")()
	w := b.parameter("weight", normal(1/math.Sqrt(float64(b.Width))), b.Width, b.Experts)
	gates := ops.Softmax(ops.MatMul(x, w))
	first, second := ops.Top2(gates, seed, "gate", 0)
	g1, g2 := ops.TakeLast(gates, first), ops.TakeLast(gates, second)
	total := ops.Add(g1, g2)
	share := ops.Mean(ops.OneHot(first, b.Experts), 1)
	loss := ops.Scale(ops.Sum(ops.Mul(ops.Mean(gates, 1), share)), float32(b.Experts))
	return routing{first, second, ops.Div(g1, total), ops.Div(g2, total)}, loss
}

// expertWeights are the two layers of all experts.
func (b *builder) expertWeights() (first, second graph.Value) {
	defer b.graph.Scope("experts")()
	in, out := normal(1/math.Sqrt(float64(b.Width))), normal(1/math.Sqrt(float64(b.Hidden)))
	first = b.parameter("first", in, b.Experts, b.Width, b.Hidden)
	return first, b.parameter("second", out, b.Experts, b.Hidden, b.Width)
}

// capacity is the number of slots of an expert.
func (b *builder) capacity() int {
	share := 2 * float64(b.Batch*b.Length) / float64(b.Experts)
	return max(4, int(math.Ceil(share*capacityFactor)))
}

// einsumExperts moves tokens to experts and back by products with matrices of
// tokens and slots. Tokens beyond an expert's slots are passed over.
func (b *builder) einsumExperts(x graph.Value, r routing) graph.Value {
	w1, w2 := b.expertWeights()
	slots := b.Experts * b.capacity()
	slot1, slot2 := ops.Positions(r.first, r.second, b.Experts, b.capacity())
	dispatch := ops.Dispatch(slot1, slot2, slots)
	combine := ops.Combine(slot1, slot2, r.weight1, r.weight2, slots)
	y := ops.MatMulT(dispatch, x, true, false)
	y = ops.ReshapeSizes(y, b.Experts, b.capacity(), b.Width)
	y = ops.MatMul(ops.Relu(ops.MatMul(y, w1)), w2)
	return ops.MatMul(combine, ops.ReshapeSizes(y, 1, slots, b.Width))
}

// gatheredExperts packs tokens by expert, and passes none over.
func (b *builder) gatheredExperts(x graph.Value, r routing) graph.Value {
	w1, w2 := b.expertWeights()
	tokens := b.Batch * b.Length
	rows, inv, offsets := ops.Route(r.first, r.second, b.Experts)
	y := ops.GatherRows(ops.ReshapeSizes(x, tokens, b.Width), rows, inv)
	y = ops.GroupedMatMul(ops.Relu(ops.GroupedMatMul(y, w1, offsets)), w2, offsets)
	weights := ops.Concat(1, ops.ReshapeSizes(r.weight1, tokens, 1),
		ops.ReshapeSizes(r.weight2, tokens, 1))
	return ops.CombineRows(y, weights, inv, rows)
}
