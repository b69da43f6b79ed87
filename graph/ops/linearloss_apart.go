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
		_, losses := fixedLoss{Of: o}.apart(in, make, "")
		return []graph.Value{losses}
	case fixedLoss:
		_, losses := o.apart(in, make, "")
		return []graph.Value{losses}
	case linearLossGrad:
		loss := o.loss()
		losses, g, dx := fixedLoss{Of: loss}.gradients(in, make, "rows")
		a, b := factorsOfW(loss, in[0], g)
		return []graph.Value{losses, dx, make("", loss.sum(in), a, b)}
	case fixedLossGrad:
		losses, _, dx := o.loss().gradients(in, make, "")
		return []graph.Value{losses, dx}
	}
	return nil
}

// OfRows is the gradient of a loss that makes that of rows alone, where an operation is one that
// makes that of a matrix, too, as its last result; else nil.
func OfRows(op graph.Op) graph.Op {
	if o, ok := op.(linearLossGrad); ok {
		return fixedLossGrad{Of: o.loss()}
	}
	return nil
}

// apart is the product and its losses.
func (o fixedLoss) apart(in []graph.Value, make Maker, what string) (logits, losses graph.Value) {
	logits = make("logits", o.product(false), in[0], in[1])
	return logits, make(what, crossEntropy{o.Of.Smoothing}, logits, in[2])
}

// gradients are those of logits and rows, and the losses.
func (o fixedLoss) gradients(in []graph.Value, make Maker, rows string) (losses, g,
	dx graph.Value) {
	logits, losses := o.apart(in, make, "losses")
	g = make("gradient", crossEntropyGrad{o.Of.Smoothing}, logits, in[2], in[3])
	return losses, g, make(rows, o.product(true), g, in[1])
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
	op       fixedLoss
	in       [3]graph.Value
}

// LossOf is the loss that a node computes; ok is false if it computes none. That of a gradient is
// the loss's own, but for Gradient.
func LossOf(n *graph.Node) (loss Loss, ok bool) {
	switch o := n.Op.(type) {
	case linearLoss:
		loss.op.Of = o
	case linearLossGrad:
		loss.op.Of, loss.Gradient = o.loss(), true
	case fixedLoss:
		loss.op = o
	case fixedLossGrad:
		loss.op, loss.Gradient = o.loss(), true
	default:
		return Loss{}, false
	}
	copy(loss.in[:], n.In)
	return loss, true
}
