package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	kernels "github.com/gomem/gomem/internal/kernel/attention"
)

// attentionGrad is the gradients of queries, keys and values. Its operands are these, the
// logarithms of sums that the attention computed, the gradient of its result, for each row
// Σ result·gradient less the gradient of the logarithm, and what masks and drops.
type attentionGrad struct{ Of attention }

func (attentionGrad) Name() string { return "attention-grad" }

func (o attentionGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 6+o.Of.masks()); err != nil {
		return nil, err
	}
	out, err := o.Of.Infer(append(in[:3:3], in[6:]...))
	if err != nil {
		return nil, err
	}
	for i, t := range []graph.Type{out[1], out[0], out[1]} {
		if err := shaped(in[3+i], 3+i, t); err != nil {
			return nil, err
		}
	}
	return in[:3:3], nil
}

// shaped reports an operand that is not f32 with the axes of t.
func shaped(x graph.Type, i int, t graph.Type) error {
	if x.DType == graph.F32 && x.SameShape(t) {
		return nil
	}
	return fmt.Errorf("operand %d is %s, want %s%s", i, x, t, convertible(x, graph.F32))
}

// Cost: five products where the attention has two.
func (o attentionGrad) Cost(in, out []graph.Type) graph.Cost {
	x := o.Of.sizes(in[0], in[1], in[2])
	if o.Of.Rate != 0 {
		x.Keep = 1 - o.Of.Rate
	}
	return graph.Cost{FLOPs: o.Of.pairs(x) * int64(6*x.Size+4*x.ValueSize+15),
		Bytes: bytes(in, out), Scratch: kernels.ScratchBackward(x)}
}

func attentionGradCPU(o attentionGrad, c *kernel.Call) error {
	a := o.Of
	x := a.problem(c.In[0].Type, c.In[1].Type, c.In[2].Type, c.In[6:])
	kernels.Backward(c.Pool, x, a.rowsOf(c.In[0]), a.rowsOf(c.In[1]), a.rowsOf(c.In[2]),
		kernels.Gradients{Sums: a.rowsOf(c.In[3]), DOut: a.rowsOf(c.In[4]),
			Delta: a.rowsOf(c.In[5]), DQ: a.rowsOf(c.Out[0]), DK: a.rowsOf(c.Out[1]),
			DV: a.rowsOf(c.Out[2])}, floats(c.Scratch))
	return nil
}

// VJP is by composition: the matrices of weights, of which there are several, are values.
func (o attentionGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	a := o.Of
	a.Piece = attentionPiece{}
	for i, d := range dout {
		if !d.Valid() {
			dout[i] = Zeros(n.Graph(), n.Out[i])
		}
	}
	w := newWeights(a, n)
	return append(w.second(dout[0], dout[1], dout[2]), none(a.masks())...)
}

// weights are the matrices of an attention's gradient as values, f32[batch heads queries keys],
// with queries, keys and values f32[batch groups · size], of which the queries of a group's heads
// are rows beside each other.
type weights struct {
	attention
	sizes          kernels.Problem
	seed           graph.Value
	q, k, v, d     graph.Value
	delta          graph.Value // f32[batch heads queries 1]
	p              graph.Value // the weights
	slope, bend    graph.Value // the first and the second derivative of the cap, if there is one
	bare, gradient graph.Value // of weights less delta, and of logits
	inner          graph.Value // the gradient of the scaled products
}

func newWeights(a attention, n *graph.Node) *weights {
	w := &weights{attention: a, sizes: a.sizes(n.In[0].Type(), n.In[1].Type(), n.In[2].Type())}
	w.q, w.k, w.v, w.d = w.rows(n.In[0]), w.rows(n.In[1]), w.rows(n.In[2]), w.rows(n.In[4])
	w.delta = w.column(n.In[5])
	masks := n.In[6:]
	if a.Rate != 0 {
		w.seed = masks[len(masks)-1]
		masks = masks[:len(masks)-1]
	}
	logits := w.heads(Scale(MatMulT(w.q, w.k, false, true), a.Scale))
	if a.Softcap > 0 {
		t := Tanh(Scale(logits, 1/a.Softcap))
		logits = Scale(t, a.Softcap)
		w.slope = AddScalar(Neg(Square(t)), 1)
		w.bend = Scale(Mul(t, w.slope), -2/a.Softcap)
	}
	if a.Causal || a.Padded || a.Documented {
		// Without operands it is Apply that has to know the graph.
		logits = Add(logits, n.Graph().Apply(attentionMask{a, w.sizes.Batch, w.sizes.Queries,
			w.sizes.Keys}, masks...).Value(0))
	}
	// A row that sees nothing has a sum of −Inf: less that, its logits would be NaN.
	w.p = Exp(Sub(logits, Clip(w.column(n.In[3]), -3e38, 3e38)))
	w.bare = Sub(w.drop(w.heads(MatMulT(w.d, w.v, false, true))), w.delta)
	w.gradient = Mul(w.p, w.bare)
	w.inner = w.capped(w.gradient)
	return w
}

// second is the gradients of all operands, from those of the gradients of queries, keys and
// values.
func (w *weights) second(a, b, c graph.Value) []graph.Value {
	a, b, c = w.rows(a), w.rows(b), w.rows(c)
	e := Scale(w.heads(Add(MatMulT(a, w.k, false, true), MatMulT(w.q, b, false, true))),
		w.attention.Scale)
	toGradient := w.capped(e)
	f := Mul(toGradient, w.p)
	ofWeights := Mul(w.p, Add(Mul(toGradient, w.bare),
		w.drop(w.heads(MatMulT(w.d, c, false, true)))))
	z := w.capped(ofWeights)
	if w.Softcap > 0 {
		z = Add(z, Mul(Mul(e, w.gradient), w.bend))
	}
	dropped, z2, inner := w.grouped(w.drop(f)), w.grouped(z), w.grouped(w.inner)
	product := func(x, m graph.Value, trans bool) graph.Value { return MatMulT(x, m, trans, false) }
	scaled := func(x, y graph.Value) graph.Value { return Scale(Add(x, y), w.attention.Scale) }
	return []graph.Value{
		w.likeQueries(scaled(product(z2, w.k, false), product(inner, b, false)), w.sizes.Size),
		w.likeKeys(scaled(product(z2, w.q, true), product(inner, a, true))),
		w.likeKeys(product(dropped, w.d, true)),
		w.likeRows(Neg(Sum(ofWeights, -1))),
		w.likeQueries(Add(product(dropped, w.v, false),
			product(w.grouped(w.drop(w.p)), c, false)), w.sizes.ValueSize),
		w.likeRows(Neg(Sum(f, -1))),
	}
}

// capped multiplies by the slope of the cap.
func (w *weights) capped(x graph.Value) graph.Value {
	if w.Softcap > 0 {
		return Mul(x, w.slope)
	}
	return x
}

// drop multiplies by the noise.
func (w *weights) drop(x graph.Value) graph.Value {
	if w.Rate == 0 {
		return x
	}
	return apply(dropout{Rate: w.Rate, Salt: w.Salt, Shared: uint32(w.Shared)}, x, w.seed)
}

// rows makes [batch groups · size] of vectors.
func (w *weights) rows(x graph.Value) graph.Value {
	if !w.HeadsFirst {
		x = Transpose(x, 0, 2, 1, 3)
	}
	t := x.Type()
	return ReshapeSizes(x, t.Size(0), w.sizes.Groups, t.Size(1)/w.sizes.Groups*t.Size(2), t.Size(3))
}

// heads takes the rows of groups apart, grouped puts them together.
func (w *weights) heads(x graph.Value) graph.Value {
	return ReshapeSizes(x, w.sizes.Batch, w.sizes.Heads, w.sizes.Queries, x.Type().Size(3))
}

func (w *weights) grouped(x graph.Value) graph.Value {
	return ReshapeSizes(x, w.sizes.Batch, w.sizes.Groups,
		w.sizes.Heads/w.sizes.Groups*w.sizes.Queries, x.Type().Size(3))
}

// column is numbers of rows, [batch heads queries 1].
func (w *weights) column(x graph.Value) graph.Value {
	if !w.HeadsFirst {
		x = Transpose(x, 0, 2, 1)
	}
	return ReshapeSizes(x, w.sizes.Batch, w.sizes.Heads, w.sizes.Queries, 1)
}

// likeQueries, likeKeys and likeRows give gradients the axes of their operands.
func (w *weights) likeQueries(x graph.Value, size int) graph.Value {
	return w.like(ReshapeSizes(x, w.sizes.Batch, w.sizes.Heads, w.sizes.Queries, size), 0, 2, 1, 3)
}

func (w *weights) likeKeys(x graph.Value) graph.Value { return w.like(x, 0, 2, 1, 3) }

func (w *weights) likeRows(x graph.Value) graph.Value { return w.like(x, 0, 2, 1) }

func (w *weights) like(x graph.Value, axes ...int) graph.Value {
	if w.HeadsFirst {
		return x
	}
	return Transpose(x, axes...)
}

func init() { kernel.Register(kernel.CPU, attentionGradCPU) }
