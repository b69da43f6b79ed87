package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/gemm"
)

// linearLossGrad is the losses, and the gradients of rows and of the matrix from that of the
// losses: operands x, w, labels and the gradient. A block of logits becomes losses, then its own
// gradient, and then what it adds to both results, so that it is computed once.
type linearLossGrad linearLoss

func (linearLossGrad) Name() string { return "linear-cross-entropy-grad" }

func (o linearLossGrad) loss() linearLoss { return linearLoss(o) }

// lossesOf checks the operands of a loss's gradient, those of the loss and the gradient of the
// losses, whose type it returns.
func lossesOf(in []graph.Type, infer func([]graph.Type) ([]graph.Type, error)) (graph.Type,
	error) {
	if err := arity(in, 4); err != nil {
		return graph.Type{}, err
	}
	losses, err := infer(in[:3])
	if err != nil {
		return graph.Type{}, err
	}
	return losses[0], ofLosses(in[3], losses[0])
}

func (o linearLossGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	losses, err := lossesOf(in, o.loss().Infer)
	if err != nil {
		return nil, err
	}
	return []graph.Type{losses, in[0], in[1]}, nil
}

// ofLosses demands a gradient of losses.
func ofLosses(gradient, losses graph.Type) error {
	if gradient.DType != graph.F32 || !gradient.SameShape(losses) {
		return fmt.Errorf("gradient %s of losses %s%s", gradient, losses,
			convertible(gradient, graph.F32))
	}
	return nil
}

// Cost is that of three products, of the losses and of the gradient of the logits.
func (o linearLossGrad) Cost(in, out []graph.Type) graph.Cost {
	b := o.loss().blocks(in)
	return graph.Cost{FLOPs: b.flops(6) + 31*int64(b.n)*int64(b.v), Bytes: bytes(in, out),
		Scratch: b.logits(b.rows).Bytes()}
}

// CheckData wants labels that are classes.
func (o linearLossGrad) CheckData(in []tensor.View) error { return o.loss().CheckData(in[:3]) }

// VJP is by composition: logits, and their gradient, are values.
func (o linearLossGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, w, labels, d := n.In[0], n.In[1], n.In[2], n.In[3]
	loss, ofLogits := o.loss(), crossEntropyGrad{o.Smoothing}
	product := func(x, w graph.Value) graph.Value { return MatMulT(x, w, false, o.Trans) }
	logits := product(x, w)
	gradient := apply(ofLogits, logits, labels, d)
	var e, back, dd, dx, dw graph.Value
	if a := dout[1]; a.Valid() {
		e, dw = product(a, w), loss.product(a, gradient)
	}
	if b := dout[2]; b.Valid() {
		e, dx = plus(e, product(x, b)), MatMulT(gradient, b, false, !o.Trans)
	}
	if e.Valid() {
		all := ofLogits.VJP(gradient.Node, []graph.Value{e})
		back, dd = all[0], all[2]
	}
	if l := dout[0]; l.Valid() {
		back = plus(back, apply(ofLogits, logits, labels, l))
	}
	return []graph.Value{plus(dx, MatMulT(back, w, false, !o.Trans)),
		plus(dw, loss.product(x, back)), {}, dd}
}

// product is the gradient of the matrix, from rows and the gradient of their logits.
func (o linearLoss) product(x, gradient graph.Value) graph.Value {
	a, b := factorsOfW(o, x, gradient)
	return apply(matMul{TransA: true, Reduce: x.Type().Rank() > 2}, a, b)
}

func linearLossGradCPU(o linearLossGrad, c *kernel.Call) error {
	loss := o.loss()
	b := loss.blocks([]graph.Type{c.In[0].Type, c.In[1].Type})
	if b.n == 0 {
		clear(c.Out[2].F32())
	}
	fixed := fixedLoss{Of: loss}
	return fixed.each(c, b, func(lo, hi int, logits tensor.View) error {
		if err := fixed.backwards(c, b, lo, hi, logits); err != nil {
			return err
		}
		x, y := factorsOfW(loss, rowBlock(c.In[0], lo, hi, b.d), logits)
		dw := kernel.Call{In: []tensor.View{x, y}, Out: c.Out[2:3], Pool: c.Pool}
		// a block is a run of the sum, and the only one that its product has
		return loss.dw().compute(&dw, gemm.Product{Beta: float32(min(1, lo))})
	})
}

func init() { kernel.Register(kernel.CPU, linearLossGradCPU) }
