package nn

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// FeedForwardOptions are those of [FeedForward].
type FeedForwardOptions struct {
	Activation func(graph.Value) graph.Value // nil means [Relu], or [Silu] if Gated
	// Gated multiplies the activation's results with another product of x (Shazeer
	// 2020): with [Silu] it is SwiGLU.
	Gated   bool
	Dropout float32 // of hidden units
	NoBias  bool
	Weight  Init // of all matrices; nil means [Glorot]
}

// FeedForward is two linear layers with so many hidden units between them, on every
// row: x f32[… n] → f32[… n]. Its parameters are w0 f32[n hidden], b0, w1 f32[hidden
// n] and b1, and w2 f32[n hidden] and b2 of the gate's.
func FeedForward(c *Ctx, x graph.Value, hidden int, options ...FeedForwardOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !rank("feed-forward layer", x, 1) {
		return graph.Value{}
	}
	defer c.Enter()()
	n := x.Type().Size(-1)
	layer := func(x graph.Value, out int, number string) graph.Value {
		return Linear(c, x, out, LinearOptions{WeightName: "w" + number, BiasName: "b" + number,
			NoBias: o.NoBias, Weight: o.Weight})
	}
	y := o.activate(layer(x, hidden, "0"))
	if o.Gated {
		y = ops.Mul(y, layer(x, hidden, "2"))
	}
	return layer(Dropout(c, y, o.Dropout, DropoutOptions{Name: "hidden"}), n, "1")
}

func (o FeedForwardOptions) activate(x graph.Value) graph.Value {
	switch {
	case o.Activation != nil:
		return o.Activation(x)
	case o.Gated:
		return Silu(x)
	}
	return Relu(x)
}
