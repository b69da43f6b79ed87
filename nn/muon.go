package nn

import (
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// Muon steps matrices by their momentum made orthogonal (Jordan et al. 2024):
//
//	m ← mu·m + (1−mu)·grad
//	x ← NewtonSchulz((1−mu)·grad + mu·m)
//	w ← w − rate·decay·w − rate·0.2·√max(rows, columns)·x
//
// The scale is that of Liu et al. (2025), PyTorch's match_rms_adamw: with it a step is about as
// large as one of AdamW, so that both have one learning rate, and it is the same for a matrix and
// its transpose. All other parameters are AdamW's: those that are no matrices, such as biases,
// filters and stacks of experts' matrices, and tables, see [Ctx.Table].
//
// The iterations are products of matrices in f32, some 30·rows·columns·min(rows, columns)
// operations a step, or an execution where gradients are accumulated. Every plan has them on the
// host, since a GPU's products have bits of their own.
type Muon struct {
	Mu    float32 // share of the momentum that is kept; 0 means 0.95
	Decay float32 // of weights, times the learning rate; 0 means 0.1
	Rest  AdamW   // for other parameters; 0 as its Decay means that of the matrices
	// Exempt says which matrices are among the other parameters, too; nil: none.
	Exempt func(parameter graph.Value) bool
}

// Update is the update of a parameter.
func (o Muon) Update(u Update) []*graph.Node {
	w, decay := u.Parameter, orDefault(o.Decay, 0.1)
	if w.Type().Rank() != 2 || u.Table || o.Exempt != nil && o.Exempt(w) {
		o.Rest.Decay = orDefault(o.Rest.Decay, decay)
		return o.Rest.Update(u)
	}
	mu := orDefault(o.Mu, 0.95)
	if !(mu >= 0 && mu < 1) || !(decay >= 0) {
		w.Graph().Fail(errorf("muon with momentum %v and weight decay %v: want one in [0, 1) and "+
			"one from 0", mu, decay))
		return nil
	}
	momentum := u.State("momentum", w.Type())
	fresh := ops.Scale(u.Gradient, 1-mu)
	next := ops.Add(ops.Scale(momentum, mu), fresh)
	x := orthogonal(ops.Add(ops.Scale(next, mu), fresh))
	size := max(w.Type().Size(0), w.Type().Size(1))
	change := ops.Add(ops.Scale(x, float32(0.2*math.Sqrt(float64(size)))), ops.Scale(w, decay))
	return []*graph.Node{
		ops.Assign(momentum, next, u.Gate),
		ops.Assign(w, ops.Sub(w, ops.Mul(change, u.Rate)), u.Gate),
	}
}

// Rate is 0.001.
func (Muon) Rate() Schedule { return Constant(0.001) }

// The iterations of Newton and Schulz by Jordan et al., whose coefficients bring singular values
// from 0 up to 1 to about 1, between 0.7 and 1.2, in the fewest steps.
const (
	schulzSteps = 5
	schulzA     = 3.4445
	schulzB     = -4.7750
	schulzC     = 2.0315
)

// orthogonal is x, f32[rows columns], with singular values of about 1: products of the smaller of
// x·xᵀ and xᵀ·x with x.
func orthogonal(x graph.Value) graph.Value {
	if !x.Valid() {
		return x
	}
	tall := x.Type().Size(0) > x.Type().Size(1)
	norm := ops.Sqrt(ops.SumSquares(x)) // no singular value is more
	x = ops.Div(x, ops.Maximum(norm, ops.Full(x.Graph(), tensor.Of(graph.F32), 1e-7)))
	for range schulzSteps {
		gram := ops.MatMulT(x, x, tall, !tall)
		factor := ops.Add(ops.Scale(gram, schulzB), ops.Scale(ops.MatMul(gram, gram), schulzC))
		var higher graph.Value
		if tall {
			higher = ops.MatMul(x, factor)
		} else {
			higher = ops.MatMul(factor, x)
		}
		x = ops.Add(ops.Scale(x, schulzA), higher)
	}
	return x
}
