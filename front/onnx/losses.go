package onnx

import (
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
)

// losses are operators that training has.
var losses = map[string]operator{
	"NegativeLogLikelihoodLoss": {build: likelihoodLoss},
	"SoftmaxCrossEntropyLoss":   {build: crossEntropy},
	"Dropout":                   {build: dropout, random: true},
}

// noLabel is a label that no position has.
const noLabel = math.MinInt32

// ignored is the label that does not count.
func ignored(n *node) int {
	if a := n.attribute("ignore_index", onnx.IntKind); a != nil {
		return int(a.Int)
	}
	return noLabel
}

// lastChannels moves the channels behind all other axes.
func lastChannels(x value) value {
	rank := x.Type().Rank()
	if rank < 2 {
		fail("%s has no classes", x.Type())
	}
	return ops.Transpose(x, moved(1, rank-1, rank)...)
}

// reduced is a loss of positions, whose counts are their weights.
func reduced(n *node, losses, counts value) value {
	kind := n.text("reduction", "mean")
	n.only("reduction", kind, "none", "sum", "mean")
	switch kind {
	case "sum":
		return ops.Sum(losses)
	case "mean":
		return ops.Div(ops.Sum(losses), ops.Sum(counts))
	}
	return losses
}

func likelihoodLoss(n *node) {
	x, labels := lastChannels(n.wide(0)), ops.Cast(n.x(1), graph.I32)
	none := ops.Equal(labels, n.b.i32(ignored(n)))
	at := ops.Where(none, n.b.i32(-1), labels)
	losses := ops.Neg(ops.TakeLast(x, at))
	counts := ops.Ones(n.b.g, tensor.Of(graph.F32, labels.Type().Sizes()...))
	if n.has(2) {
		counts = ops.Take(n.wide(2), ops.Where(none, n.b.i32(0), labels), 0)
		losses = ops.Mul(losses, counts)
	}
	counts = ops.Where(none, like(counts, 0), counts)
	n.give(n.narrow(reduced(n, losses, counts)))
}

func crossEntropy(n *node) {
	x := lastChannels(n.wide(0))
	weights := value{}
	if n.has(2) {
		weights = n.wide(2)
	}
	labels := ops.Cast(n.x(1), graph.I32)
	losses, counts := ops.CrossEntropyIgnoring(x, labels, weights, ignored(n), 0)
	n.give(n.narrow(reduced(n, losses, counts)))
	if n.wants(1) {
		rank := x.Type().Rank()
		n.give(n.narrow(ops.Transpose(ops.LogSoftmax(x), moved(rank-1, 1, rank)...)))
	}
}

// dropout acts in training passes, unless the file says that it does not train. Its noise is the
// run's, not that of the file's seed.
func dropout(n *node) {
	x := n.wide(0)
	n.int("seed", 0)
	n.flag("is_test", false)
	n.list("consumed_inputs")
	train, rate := n.b.ctx.Training(), float64(n.float("ratio", 0.5))
	if n.version() >= 12 {
		rate = n.scalar(1, 0.5)
		train = train && n.scalar(2, 1) != 0
	}
	if !train || rate == 0 {
		n.give(n.x(0), ops.BroadcastTo(n.b.g.Constant("mask", truth(true)),
			x.Type().Sizes()...))
		return
	}
	drop := func(x value) value {
		return ops.Dropout(x, n.b.ctx.Seed(), float32(rate), n.b.ctx.Noise("dropout"))
	}
	if !n.wants(1) {
		n.give(n.narrow(drop(x)))
		return
	}
	mask := drop(ops.Ones(n.b.g, x.Type()))
	n.give(n.narrow(ops.Mul(x, mask)), ops.Cast(mask, graph.Bool))
}
