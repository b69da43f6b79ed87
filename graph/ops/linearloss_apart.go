package ops

import "github.com/gomem/gomem/graph"

// Maker makes a node of an operation, and gives its first result. The node is named after what it
// computes; that which has the place of the whole has no such name.
type Maker func(what string, op graph.Op, in ...graph.Value) graph.Value

// Apart makes the operations that an operation stands for, where it is one that stands for several
// to the bit, and gives its results; else none. It makes each as often as it needs it.
func Apart(op graph.Op, in []graph.Value, make Maker) []graph.Value {
	switch o := op.(type) {
	case linearLoss:
		_, losses := o.apart(in, make, "")
		return []graph.Value{losses}
	case linearLossGrad:
		loss := o.loss()
		logits, losses := loss.apart(in, make, "losses")
		g := make("gradient", crossEntropyGrad{o.Smoothing}, logits, in[2], in[3])
		dx := make("rows", loss.dx(), g, in[1])
		a, b := factorsOfW(loss, in[0], g)
		return []graph.Value{losses, dx, make("", loss.sum(in), a, b)}
	}
	return nil
}

// apart is the product and its losses.
func (o linearLoss) apart(in []graph.Value, make Maker, what string) (logits, losses graph.Value) {
	logits = make("logits", o.logits(), in[0], in[1])
	return logits, make(what, crossEntropy{o.Smoothing}, logits, in[2])
}

// sum is the product that is the gradient of the matrix, with the runs that it has in blocks.
func (o linearLoss) sum(in []graph.Value) graph.Op {
	dw := o.dw()
	dw.Reduce = in[0].Type().Rank() > 2
	if b := o.blocks([]graph.Type{in[0].Type(), in[1].Type()}); b.run > 0 {
		return matMulPart{MatMul: dw, Block: b.run}
	}
	return dw
}

// Loss is what a loss of a linear layer, or its gradient, computes.
type Loss struct {
	Gradient bool // beside the losses
	op       linearLoss
	in       [3]graph.Value
}

// LossOf is the loss that a node computes; ok is false if it computes none. That of a gradient is
// the loss's own, but for Gradient.
func LossOf(n *graph.Node) (loss Loss, ok bool) {
	switch o := n.Op.(type) {
	case linearLoss:
		loss.op = o
	case linearLossGrad:
		loss.op, loss.Gradient = o.loss(), true
	default:
		return Loss{}, false
	}
	copy(loss.in[:], n.In)
	return loss, true
}
