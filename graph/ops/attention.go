package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	kernels "github.com/gomem/gomem/internal/kernel/attention"
)

// AttentionOptions are those of [Attention].
type AttentionOptions struct {
	Scale   float32 // of the products of queries and keys; 0 means 1/√size
	Softcap float32 // c: a logit x is c·tanh(x/c), as in Gemma 2; 0 leaves it

	// Causal: a query sees no key after its own place. The queries are at the last places of
	// the keys, or from Position on.
	Causal   bool
	Position graph.Value // i32[] or i32[batch]: the place of the first query
	Window   int         // of causal attention: the most keys that a query sees, its own among them
	Sinks    int         // of a window: how many of the first keys it sees beside (Xiao 2023)

	Padding   graph.Value // i32[batch keys]: keys whose number is 0 are not seen
	Documents graph.Value // i32[batch keys]: keys whose number is not that of its place are not

	// Dropout is the share of weights that are dropped, as by [Dropout] of f32[batch heads
	// queries keys], with its Seed and Name, and Shared axes but the last.
	Dropout float32
	Seed    graph.Value
	Name    string
	Shared  []int

	// HeadsFirst says that the axes are [batch heads length size], not [batch length heads
	// size].
	HeadsFirst bool
}

// Attention is softmax(scale·q·kᵀ)·v for every head, under masks: of queries f32[batch queries
// heads size], keys f32[batch keys groups size] and values f32[batch keys groups size'] it makes
// f32[batch queries heads size']. Groups divide heads, each of which attends to the keys of its
// group (Ainslie and others 2023). A query that sees no key has zeros. The memory that it takes,
// that of its gradient included, grows with the length and not with its square: weights are
// computed in tiles, and again in the gradient (Dao and others 2022), from the logarithm of the
// sum of each row's exponentials, which is all that is kept. In bfloat16 on a GPU, weights and
// their gradients are rounded before they are multiplied by vectors.
func Attention(q, k, v graph.Value, o AttentionOptions) graph.Value {
	op := attention{Scale: o.Scale, Softcap: o.Softcap, Rate: o.Dropout, Causal: o.Causal,
		Window: o.Window, Sinks: o.Sinks, HeadsFirst: o.HeadsFirst}
	if op.Scale == 0 && q.Valid() && q.Type().Rank() > 0 && q.Type().Size(-1) > 0 {
		op.Scale = float32(1 / math.Sqrt(float64(q.Type().Size(-1))))
	}
	in := []graph.Value{q, k, v}
	add := func(has *bool, x graph.Value) {
		if *has = x != (graph.Value{}); *has {
			in = append(in, x)
		}
	}
	add(&op.Padded, o.Padding)
	add(&op.Documented, o.Documents)
	add(&op.Placed, o.Position)
	if o.Dropout != 0 {
		op.Salt = claimed(o.Seed, o.Name)
		in = append(in, o.Seed)
		for _, i := range o.Shared {
			if i = axis(i, 4); i < 0 {
				i = 3
			}
			op.Shared |= 1 << i
		}
	}
	if y := applyN(2, op, in...); y != nil {
		return y[0]
	}
	return graph.Value{}
}

// attention has the operands queries, keys, values, and those of what masks and drops; its results
// are rows, and the logarithm of the sum of the exponentials of each.
type attention struct {
	Scale, Softcap, Rate       float32
	Salt                       uint64
	Window, Sinks              int
	Shared                     uint8 // set of axes of the weights along which noise is one
	Causal, HeadsFirst         bool
	Padded, Documented, Placed bool
	Piece                      attentionPiece
}

// attentionPiece is where a part of the weights' axes batch, heads and queries is in the whole.
type attentionPiece struct{ Whole, At [3]int32 }

func (attention) Name() string { return "attention" }

// sizes are what an attention computes, by its queries, keys and values.
func (o attention) sizes(q, k, v graph.Type) kernels.Problem {
	heads, places := 2, 1
	if o.HeadsFirst {
		heads, places = 1, 2
	}
	return kernels.Problem{Batch: q.Size(0), Queries: q.Size(places), Heads: q.Size(heads),
		Keys: k.Size(places), Groups: k.Size(heads), Size: q.Size(3), ValueSize: v.Size(3),
		Scale: o.Scale, Softcap: o.Softcap}
}

// whole are the sizes of batch, heads and queries of which a problem is a part.
func (o attention) whole(x kernels.Problem) [3]int {
	if w := o.Piece.Whole; w != [3]int32{} {
		return [3]int{int(w[0]), int(w[1]), int(w[2])}
	}
	return [3]int{x.Batch, x.Heads, x.Queries}
}

// masks is how many operands mask and drop.
func (o attention) masks() int {
	return flag(o.Padded) + flag(o.Documented) + flag(o.Placed) + flag(o.Rate != 0)
}

// check reports operands that are not those of an attention; masks are the last ones.
func (o attention) check(q, k, v graph.Type, masks []graph.Type) error {
	for i, t := range []graph.Type{q, k, v} {
		if t.DType != graph.F32 || t.Rank() != 4 {
			return fmt.Errorf("operand %d is %s, want f32 with four axes: batch, %s and size%s", i,
				t, o.axes(), convertible(t, graph.F32))
		}
	}
	x, y := o.sizes(q, k, v), o.sizes(q, v, v)
	switch {
	case k.Size(0) != x.Batch || v.Size(0) != x.Batch || y.Keys != x.Keys || y.Groups != x.Groups:
		return fmt.Errorf("keys are %s and values %s, want as many of both, and batches of %d", k,
			v, x.Batch)
	case k.Size(3) != x.Size:
		return fmt.Errorf("queries are %s and keys %s, want one size", q, k)
	case x.Groups < 1 || x.Heads%x.Groups != 0:
		return fmt.Errorf("%d heads of queries to %d of keys, want a multiple", x.Heads, x.Groups)
	}
	if err := o.attributes(x); err != nil {
		return err
	}
	return o.checkMasks(x, masks)
}

func (o attention) axes() string {
	if o.HeadsFirst {
		return "heads, length"
	}
	return "length, heads"
}

// attributes reports those that cannot be.
func (o attention) attributes(x kernels.Problem) error {
	whole := o.whole(x)
	switch {
	case math.IsNaN(float64(o.Scale)) || math.IsInf(float64(o.Scale), 0):
		return fmt.Errorf("scale %g of logits", o.Scale)
	case !(o.Softcap >= 0) || math.IsInf(float64(o.Softcap), 0):
		return fmt.Errorf("logits are capped at %g, want a number above 0, or none", o.Softcap)
	case !(o.Rate >= 0 && o.Rate < 1):
		return fmt.Errorf("dropout rate %v is outside [0, 1)", o.Rate)
	case o.Shared>>3 != 0:
		return fmt.Errorf("noise shared along keys")
	case o.Window < 0 || o.Sinks < 0 || o.Window == 0 && o.Sinks > 0:
		return fmt.Errorf("a window of %d keys and %d more, want a window of 1 or more, or none",
			o.Window, o.Sinks)
	case !o.Causal && (o.Window > 0 || o.Placed):
		return fmt.Errorf("a window or a position without a causal mask")
	case o.Causal && !o.Placed && whole[2] > x.Keys, o.Documented && whole[2] > x.Keys:
		return fmt.Errorf("attention, causal or by documents, of %d queries to %d keys", whole[2],
			x.Keys)
	case o.Documented && o.Placed:
		return fmt.Errorf("documents and a position: numbers of queries are those of the last keys")
	}
	for i, n := range []int{x.Batch, x.Heads, x.Queries} {
		if at := int(o.Piece.At[i]); at < 0 || n > whole[i]-at {
			return fmt.Errorf("a part of %d from %d on, of %d", n, at, whole[i])
		}
	}
	return nil
}

func (o attention) checkMasks(x kernels.Problem, masks []graph.Type) error {
	if len(masks) != o.masks() {
		return fmt.Errorf("%d operands that mask, want %d", len(masks), o.masks())
	}
	next := func() (t graph.Type) {
		t, masks = masks[0], masks[1:]
		return t
	}
	numbers := graph.Of(graph.I32, x.Batch, x.Keys)
	for _, named := range []struct {
		has  bool
		name string
	}{{o.Padded, "padding"}, {o.Documented, "documents"}} {
		if named.has {
			if t := next(); !t.SameShape(numbers) || t.DType != graph.I32 {
				return fmt.Errorf("%s is %s, want %s%s", named.name, t, numbers,
					convertible(t, graph.I32))
			}
		}
	}
	if o.Placed {
		t := next()
		if t.DType != graph.I32 || t.Rank() > 1 || t.Rank() == 1 && t.Size(0) != x.Batch {
			return fmt.Errorf("the position is %s, want i32[] or i32[%d]%s", t, x.Batch,
				convertible(t, graph.I32))
		}
	}
	if o.Rate != 0 {
		return checkSeed(next())
	}
	return nil
}

func (o attention) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 3+o.masks()); err != nil {
		return nil, err
	}
	q, k, v := in[0], in[1], in[2]
	if err := o.check(q, k, v, in[3:]); err != nil {
		return nil, err
	}
	s := q.Shape
	return []graph.Type{tensor.Named(graph.F32, s[0], s[1], s[2], v.Shape[3]),
		tensor.Named(graph.F32, s[0], s[1], s[2])}, nil
}

// pairs is how many weights there are that no causal mask hides.
func (o attention) pairs(x kernels.Problem) int64 {
	rows, keys := int64(x.Batch)*int64(x.Heads), int64(x.Keys)
	n := int64(x.Queries)
	if !o.Causal || o.Placed {
		return rows * n * keys
	}
	first := keys - int64(o.whole(x)[2]) + int64(o.Piece.At[2]) + 1
	seen := n*first + n*(n-1)/2
	if o.Window > 0 {
		seen = min(seen, n*min(keys, int64(o.Window)+int64(o.Sinks)))
	}
	return rows * seen
}

// Cost: beside the products, every weight takes about ten operations.
func (o attention) Cost(in, out []graph.Type) graph.Cost {
	x := o.sizes(in[0], in[1], in[2])
	return graph.Cost{FLOPs: o.pairs(x) * int64(2*x.Size+2*x.ValueSize+10),
		Bytes: bytes(in, out), Scratch: kernels.ScratchForward(x)}
}

// VJP computes the weights again. What the gradient of a row's weights has in common with all of
// them, Σ weight·gradient, is that of the result with its gradient.
func (o attention) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	o.Piece = attentionPiece{}
	y, sums, d, dsums := n.Value(0), n.Value(1), dout[0], dout[1]
	if !d.Valid() {
		d = Zeros(n.Graph(), y.Type())
	}
	delta := Sum(Mul(d, y), -1)
	if dsums.Valid() {
		delta = Sub(delta, dsums)
	}
	in := append([]graph.Value{n.In[0], n.In[1], n.In[2], sums, d, delta}, n.In[3:]...)
	return append(applyN(3, attentionGrad{o}, in...), none(o.masks())...)
}

// problem is a call's, with the operands that mask and drop.
func (o attention) problem(q, k, v graph.Type, masks []tensor.View) kernels.Problem {
	x := o.sizes(q, k, v)
	whole := o.whole(x)
	next := func() (data []int32) {
		data, masks = masks[0].I32(), masks[1:]
		return data
	}
	x.Rows = whole[2]
	x.Causal, x.Window, x.Sinks = o.Causal, o.Window, o.Sinks
	if x.Place = int(o.Piece.At[2]); !o.Placed {
		x.Place += x.Keys - whole[2]
	}
	if o.Padded {
		x.Padding = next()
	}
	if o.Documented {
		x.Documents = next()
	}
	if o.Placed {
		x.Places = next()
	}
	if o.Rate != 0 {
		x.Noise = o.noise(whole, x.Keys)
		x.Key = streamKey(next(), o.Salt)
	}
	return x
}

// noise numbers weights as those of [batch heads queries keys], of which some axes are one.
func (o attention) noise(whole [3]int, keys int) kernels.Noise {
	var by [3]int
	step := keys
	for i := 2; i >= 0; i-- {
		if o.Shared>>i&1 == 0 {
			by[i] = step
			step *= whole[i]
		}
	}
	n := kernels.Noise{Keep: 1 - o.Rate, ByBatch: by[0], ByHead: by[1], ByQuery: by[2]}
	for i, at := range o.Piece.At {
		n.From += int(at) * by[i]
	}
	return n
}

// rowsOf are the vectors of a value of four axes, or the numbers of one of three.
func (o attention) rowsOf(v tensor.View) kernels.Rows {
	r := o.strides(v.Type)
	r.F32 = v.F32()
	return r
}

func (o attention) strides(t graph.Type) kernels.Rows {
	n := 1
	if t.Rank() == 4 {
		n = t.Size(3)
	}
	r := kernels.Rows{Batch: t.Size(1) * t.Size(2) * n, Head: n, Next: t.Size(2) * n}
	if o.HeadsFirst {
		r.Head, r.Next = t.Size(2)*n, n
	}
	return r
}

func attentionCPU(o attention, c *kernel.Call) error {
	x := o.problem(c.In[0].Type, c.In[1].Type, c.In[2].Type, c.In[3:])
	kernels.Forward(c.Pool, x, o.rowsOf(c.In[0]), o.rowsOf(c.In[1]), o.rowsOf(c.In[2]),
		o.rowsOf(c.Out[0]), o.rowsOf(c.Out[1]), floats(c.Scratch))
	return nil
}

func init() {
	kernel.Register(kernel.CPU, attentionCPU)
	for _, s := range attentionSamples() {
		register(s)
	}
}
