package nn

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Relu is max(x, 0).
func Relu(x graph.Value) graph.Value { return ops.Relu(x) }

// Gelu is x times the normal distribution's share below x (Hendrycks and Gimpel
// 2016); see [ops.Gelu].
func Gelu(x graph.Value) graph.Value { return ops.Gelu(x) }

// Silu is x·σ(x), also called swish.
func Silu(x graph.Value) graph.Value { return ops.Silu(x) }

// Tanh is the hyperbolic tangent.
func Tanh(x graph.Value) graph.Value { return ops.Tanh(x) }

// Sigmoid is σ(x) = 1/(1+e^−x).
func Sigmoid(x graph.Value) graph.Value { return ops.Sigmoid(x) }

// Softmax is e^x over its sum along the last axis.
func Softmax(x graph.Value) graph.Value { return ops.Softmax(x) }

// Flatten joins all axes but the first: f32[batch …] → f32[batch n].
func Flatten(x graph.Value) graph.Value {
	if !x.Valid() || x.Type().Rank() == 0 {
		return x
	}
	t := x.Type()
	return ops.Reshape(x, t.Shape[0], graph.Dim{Size: t.Elems() / t.Size(0)})
}

// DropoutOptions are those of [Dropout].
type DropoutOptions struct {
	Name  string // of the noise in its place: see [Ctx.Noise]
	Along []int  // axes along which all elements share their noise
}

// Dropout zeroes elements of x with probability rate in a training pass, and scales
// the others by 1/(1−rate). The noise is another for every execution and every
// place, and is never stored.
func Dropout(c *Ctx, x graph.Value, rate float32, options ...DropoutOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !c.Training() || rate == 0 {
		return x
	}
	defer c.Enter()()
	if c.model.Fine {
		return c.fineDropout(x, rate, c.Noise(o.Name), o.Along...)
	}
	return ops.Dropout(x, c.Seed(), rate, c.Noise(o.Name), o.Along...)
}
