package nn

import (
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// AttentionOptions are those of [Attention].
type AttentionOptions struct {
	Heads int // into which the width is divided
	// KeyValueHeads are fewer heads of keys and values, each for a group of queries'
	// heads (Ainslie et al. 2023); 0 means Heads.
	KeyValueHeads int
	HeadWidth     int // of a head; 0 means width/Heads

	Memory graph.Value // what is attended to, f32[batch keys width']; none: x itself

	Causal  bool    // a position sees none after it
	Window  int     // of causal attention: the most keys that a position sees; 0: all before
	Sinks   int     // of a window: how many of the first keys are seen beside
	Softcap float32 // c: a logit x is c·tanh(x/c); 0 leaves it

	Padding graph.Value // ids i32[batch keys]: those that are 0 are not attended to
	// Documents are numbers i32[batch keys] of texts that are beside each other: a position sees
	// keys with its number. See [ops.AttentionOptions] for these, and for Softcap.
	Documents graph.Value

	Mask graph.Value // f32 that broadcasts to [batch heads queries keys], added to logits:
	// −Inf hides a key, and a query of which all are hidden gets zeros

	Rotary *ops.Rotation // positions of queries and keys; nil means none

	Dropout float32 // of attention weights
	Along   []int   // axes of the weights along which all share their noise

	// Plain computes attention by products of matrices and a softmax, one after the other, whose
	// weights are values of the graph, rather than by [ops.Attention]. A Mask, and noise that keys
	// share, have it so.
	Plain bool

	// Packed has the weights of all four projections in one parameter, qkvo f32[4 width
	// heads·size], that of the output transposed.
	Packed bool
	// Unscaled does not divide logits by √size; weights start accordingly.
	Unscaled bool

	Bias   bool // for all four projections
	Weight Init // nil means [Glorot]
	Output Init // of the last projection; nil means Weight
}

// Attention is multi-head attention (Vaswani et al. 2017) of x, f32[batch length
// width], to memory or to itself: softmax(q·kᵀ/√size)·v for each head, between
// projections q, f32[width heads·size], k and v, f32[width' heads'·size], and o,
// f32[heads·size width], with biases q-bias, k-bias, v-bias and o-bias if there are to
// be any.
func Attention(c *Ctx, x graph.Value, options ...AttentionOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !exact("attention", x, 3, "batch, length and width") {
		return graph.Value{}
	}
	if !o.Memory.Valid() {
		o.Memory = x
	}
	if !exact("memory of attention", o.Memory, 3, "batch, length and width") {
		return graph.Value{}
	}
	width := x.Type().Size(2)
	o.Plain = o.Plain || c.model.Fine
	if err := o.complete(width); err != nil {
		c.Graph().Fail(err)
		return graph.Value{}
	}
	defer c.Enter()()
	a := attention{Ctx: c, AttentionOptions: o}
	a.unpack(width)
	q := a.position(a.split(a.scale(a.project("q", x, o.Heads)), x, o.Heads))
	k := a.position(a.split(a.project("k", o.Memory, o.KeyValueHeads), o.Memory, o.KeyValueHeads))
	v := a.split(a.project("v", o.Memory, o.KeyValueHeads), o.Memory, o.KeyValueHeads)
	y := a.attend(q, k, v)
	if !y.Valid() {
		return y
	}
	shape := x.Type().Shape
	y = ops.Reshape(y, c.like(shape[0]), c.like(shape[1]), graph.Dim{Size: o.Heads * o.HeadWidth})
	return a.output(y, shape[2].Size)
}

// complete replaces zeros by what they mean, and reports heads that cannot be.
func (o *AttentionOptions) complete(width int) error {
	if o.KeyValueHeads == 0 {
		o.KeyValueHeads = o.Heads
	}
	switch {
	case o.Heads < 1 || o.KeyValueHeads < 1 || o.Heads%o.KeyValueHeads != 0:
		return errorf("attention with %d heads of queries and %d of keys: want 1 or more, the one "+
			"a multiple of the other", o.Heads, o.KeyValueHeads)
	case o.HeadWidth == 0 && width%o.Heads != 0:
		return errorf("attention of width %d with %d heads, which do not divide it", width,
			o.Heads)
	case o.Packed && (o.Bias || o.KeyValueHeads != o.Heads ||
		o.Memory.Type().Size(-1) != width):
		return errorf("packed attention has no biases, as many heads of keys as of queries, " +
			"and a memory as wide as what attends to it")
	case o.HeadWidth < 0:
		return errorf("attention with heads of width %d", o.HeadWidth)
	}
	if o.HeadWidth == 0 {
		o.HeadWidth = width / o.Heads
	}
	o.Plain = o.Plain || o.Mask.Valid() || slices.ContainsFunc(o.Along, func(axis int) bool {
		return axis == 3 || axis == -1
	})
	if o.Plain && (o.Window != 0 || o.Sinks != 0 || o.Softcap != 0 || o.Documents.Valid()) {
		return errorf("attention that is composed, by Plain, a Mask, noise that keys share or a " +
			"fine model, has no window, sinks, softcap or documents: say them by Mask")
	}
	return nil
}

// attention builds one attention.
type attention struct {
	*Ctx
	AttentionOptions
	packed map[string]graph.Value // the weights of projections, if they are packed
}

// unpack takes packed weights apart.
func (a *attention) unpack(width int) {
	if !a.Packed {
		return
	}
	parts := ops.Unstack(a.Param("qkvo", a.Weight.or(Glorot), 4, width, a.Heads*a.HeadWidth))
	a.packed = map[string]graph.Value{}
	for i, part := range parts {
		a.packed["qkvo"[i:i+1]] = part
	}
}

// scale is queries, divided by √size if that is not done later.
func (a attention) scale(q graph.Value) graph.Value {
	if a.Unscaled || !a.Plain {
		return q
	}
	return ops.Scale(q, float32(1/math.Sqrt(float64(a.HeadWidth))))
}

// output is the last projection.
func (a attention) output(y graph.Value, width int) graph.Value {
	if a.Packed {
		return ops.MatMulT(y, a.packed["o"], false, true)
	}
	return a.linear("o", y, width, a.Output.or(a.Weight))
}

// like is an axis as another, without a name in a model that has none.
func (c *Ctx) like(d graph.Dim) graph.Dim { return c.Dim(d.Name, d.Size) }

// project is a projection to so many heads.
func (a attention) project(name string, x graph.Value, heads int) graph.Value {
	if a.Packed {
		return ops.MatMul(x, a.packed[name])
	}
	return a.linear(name, x, heads*a.HeadWidth, a.Weight)
}

func (a attention) linear(name string, x graph.Value, out int, init Init) graph.Value {
	return Linear(a.Ctx, x, out, LinearOptions{WeightName: name, BiasName: name + "-bias",
		NoBias: !a.Bias, Weight: init})
}

// split takes a projection of x, [batch length heads·size], apart into [batch length heads
// size], or [batch heads length size] if products are to be taken of it.
func (a attention) split(projection, x graph.Value, heads int) graph.Value {
	if !projection.Valid() {
		return projection
	}
	s := x.Type().Shape
	projection = ops.Reshape(projection, a.like(s[0]), a.like(s[1]), a.Dim("heads", heads),
		graph.Dim{Size: a.HeadWidth})
	if !a.Plain {
		return projection
	}
	return ops.Transpose(projection, 0, 2, 1, 3)
}

// position turns queries or keys by their positions.
func (a attention) position(x graph.Value) graph.Value {
	if a.Rotary == nil {
		return x
	}
	r := *a.Rotary
	r.Heads = !a.Plain
	return Rotary(a.Ctx, x, r)
}

// attend is softmax(q·kᵀ)·v under the masks, [batch queries heads size].
func (a attention) attend(q, k, v graph.Value) graph.Value {
	switch {
	case !q.Valid() || !k.Valid() || !v.Valid():
		return graph.Value{}
	case a.Plain:
		return ops.Transpose(a.products(q, k, v), 0, 2, 1, 3)
	case a.Causal && q.Type().Size(1) != k.Type().Size(1):
		return a.uncausal(q.Type().Size(1), k.Type().Size(1))
	}
	o := ops.AttentionOptions{Causal: a.Causal, Window: a.Window, Sinks: a.Sinks,
		Softcap: a.Softcap, Padding: a.Padding, Documents: a.Documents}
	if a.Unscaled {
		o.Scale = 1
	}
	if a.Training() && a.Dropout != 0 {
		o.Dropout, o.Seed, o.Name, o.Shared = a.Dropout, a.Seed(), a.Noise("weights"), a.Along
	}
	return ops.Attention(q, k, v, o)
}

// uncausal reports a causal mask that no square has.
func (a attention) uncausal(queries, keys int) graph.Value {
	a.Graph().Fail(errorf("causal attention of %d positions to %d", queries, keys))
	return graph.Value{}
}

// products is softmax(q·kᵀ)·v, [batch heads queries size], by products. The queries of a group of
// heads are rows beside each other, so that a group's keys and values need not be repeated.
func (a attention) products(q, k, v graph.Value) graph.Value {
	whole := q.Type().Shape
	keys := k.Type().Shape[2]
	grouped := a.KeyValueHeads != a.Heads
	rows := a.Heads / a.KeyValueHeads * whole[2].Size
	if grouped {
		q = ops.Reshape(q, whole[0], a.Dim("heads", a.KeyValueHeads), graph.Dim{Size: rows},
			whole[3])
	}
	logits := ops.MatMulT(q, k, false, true)
	if grouped {
		logits = ops.Reshape(logits, whole[0], whole[1], whole[2], graph.Dim{Size: keys.Size})
	}
	softmax := ops.Softmax
	if a.Mask.Valid() {
		softmax = ops.MaskedSoftmax
	}
	weights := softmax(a.mask(logits, whole[2].Size, keys.Size))
	weights = Dropout(a.Ctx, weights, a.Dropout, DropoutOptions{Name: "weights", Along: a.Along})
	if grouped {
		weights = ops.Reshape(weights, whole[0], a.Dim("heads", a.KeyValueHeads),
			graph.Dim{Size: rows}, graph.Dim{Size: keys.Size})
	}
	y := ops.MatMul(weights, v)
	if grouped {
		y = ops.Reshape(y, whole...)
	}
	return y
}

// mask adds to logits what hides keys.
func (a attention) mask(logits graph.Value, queries, keys int) graph.Value {
	if a.Mask.Valid() {
		logits = ops.Add(logits, a.Mask)
	}
	if a.Padding.Valid() {
		logits = ops.Add(logits, a.once("padding/"+a.Padding.String(), func() graph.Value {
			return ops.PaddingMask(a.Padding)
		}))
	}
	if !a.Causal {
		return logits
	}
	if queries != keys {
		return a.uncausal(queries, keys)
	}
	return ops.Add(logits, a.once("causal/"+itoa(keys), func() graph.Value {
		return ops.CausalMask(a.Graph(), keys)
	}))
}
