package nn

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/libm"
)

// The fine lowering makes graphs of the granularity that TensorFlow 1 has, so
// that partitions of 5, 20 or 200 operations mean what they mean in Wei's thesis:
// norms and optimizers are composed of arithmetic, and dropout keeps its mask.
// It computes the same functions, up to rounding.

// fineDropout is [ops.Dropout], as a product with a mask.
func (c *Ctx) fineDropout(x graph.Value, rate float32, name string, along ...int) graph.Value {
	if !x.Valid() {
		return x
	}
	sizes := x.Type().Sizes()
	for _, axis := range along {
		sizes[axis] = 1
	}
	ones := ops.Ones(c.Graph(), tensor.Of(graph.F32, sizes...))
	return ops.Mul(x, ops.Dropout(ones, c.Seed(), rate, name))
}

// fineRMSNorm is [ops.RMSNorm], composed.
func fineRMSNorm(x, scale graph.Value, eps float32) graph.Value {
	square := ops.Scale(ops.SumKeep(ops.Square(x), -1), 1/float32(x.Type().Size(-1)))
	return ops.Mul(ops.Mul(x, ops.Rsqrt(ops.AddScalar(square, eps))), scale)
}

// fineMomentum is [ops.Momentum], composed.
func fineMomentum(u Update, mu float32, velocity graph.Value) []*graph.Node {
	w := u.Parameter
	next := ops.Add(ops.Scale(velocity, mu), u.Gradient)
	return []*graph.Node{
		ops.Assign(velocity, next),
		ops.Assign(w, ops.Sub(w, ops.Mul(next, u.Rate))),
	}
}

// fineAdam is [ops.Adam], composed.
func fineAdam(u Update, beta1, beta2, eps float32, first, second graph.Value) []*graph.Node {
	w, grad := u.Parameter, u.Gradient
	mean := ops.Add(ops.Scale(first, beta1), ops.Scale(grad, 1-beta1))
	square := ops.Add(ops.Scale(second, beta2), ops.Scale(ops.Square(grad), 1-beta2))
	deviation := ops.Sqrt(ops.Div(square, unbiased(u.Step, beta2)))
	change := ops.Div(ops.Div(mean, unbiased(u.Step, beta1)), ops.AddScalar(deviation, eps))
	return []*graph.Node{
		ops.Assign(first, mean),
		ops.Assign(second, square),
		ops.Assign(w, ops.Sub(w, ops.Mul(change, u.Rate))),
	}
}

// unbiased is 1 − beta^step.
func unbiased(step graph.Value, beta float32) graph.Value {
	if beta == 0 {
		return ops.AddScalar(ops.Scale(step, 0), 1)
	}
	return ops.AddScalar(ops.Neg(ops.Exp(ops.Scale(step, float32(libm.Log(float64(beta)))))), 1)
}

// The constants of [ops.Adafactor].
const (
	factorDecay = 0.8
	factorEps1  = 1e-30
	factorEps2  = 1e-3
)

// fineAdafactor is [ops.Adafactor], composed.
func fineAdafactor(u Update, state []graph.Value) []*graph.Node {
	w, grad := u.Parameter, u.Gradient
	fresh := ops.Exp(ops.Scale(ops.Log(u.Step), -factorDecay)) // the weight of this step's squares
	decay := ops.AddScalar(ops.Neg(fresh), 1)
	square := ops.AddScalar(ops.Square(grad), factorEps1)
	average := func(old, now graph.Value) graph.Value {
		return ops.Add(ops.Mul(old, decay), ops.Mul(now, fresh))
	}
	var change graph.Value
	var updates []*graph.Node
	if len(state) == 1 {
		second := average(state[0], square)
		updates = append(updates, ops.Assign(state[0], second))
		change = ops.Mul(grad, ops.Rsqrt(second))
	} else {
		p, q, _ := ops.AdafactorAxes(w.Type(), 1)
		rows, columns := average(state[0], ops.Mean(square, q)),
			average(state[1], ops.Mean(square, p))
		updates = append(updates, ops.Assign(state[0], rows), ops.Assign(state[1], columns))
		rows, columns = keepAxis(rows, q), keepAxis(columns, p)
		relative := ops.Div(rows, ops.Scale(ops.SumKeep(rows, p), 1/float32(w.Type().Size(p))))
		change = ops.Mul(ops.Mul(grad, ops.Rsqrt(relative)), ops.Rsqrt(columns))
	}
	scalar := tensor.Of(graph.F32)
	size := ops.Maximum(rms(w), ops.Full(w.Graph(), scalar, factorEps2))
	clip := ops.Maximum(rms(change), ops.Ones(w.Graph(), scalar))
	rate := ops.Div(ops.Mul(u.Rate, size), clip)
	return append(updates, ops.Assign(w, ops.Sub(w, ops.Mul(change, rate))))
}

// rms is the root mean square of all elements, f32[]. It is a product of x with
// itself rather than a sum of squares, which would take as much memory as x.
func rms(x graph.Value) graph.Value {
	if !x.Valid() {
		return x
	}
	n := x.Type().Elems()
	row := ops.ReshapeSizes(x, 1, n)
	return ops.Sqrt(ops.Scale(ops.Sum(ops.MatMulT(row, row, false, true)), 1/float32(n)))
}

// keepAxis puts an axis of size 1 back that a sum has dropped.
func keepAxis(x graph.Value, axis int) graph.Value {
	if !x.Valid() {
		return x
	}
	sizes := x.Type().Sizes()
	sizes = append(sizes[:axis:axis], append([]int{1}, sizes[axis:]...)...)
	return ops.ReshapeSizes(x, sizes...)
}
