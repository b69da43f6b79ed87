package onnx

import (
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
)

// attentions are operators of sequences that look at each other.
var attentions = each(map[string]func(n *node){
	"Attention": attention, "RotaryEmbedding": rotary, "LinearAttention": linearAttention,
	"CausalConvWithState": causalConv,
})

// heads are operand i as [batch heads length width], of [batch length heads·width] by so many.
func heads(n *node, i int, many string) value {
	x := n.wide(i)
	t := x.Type()
	h := n.int(many, 0)
	switch {
	case t.Rank() == 4:
		return x
	case t.Rank() != 3 || h < 1 || t.Size(2)%h != 0:
		fail("%d heads (%s) of operand %d, %s", h, many, i, t)
	}
	x = ops.ReshapeSizes(x, t.Size(0), t.Size(1), h, t.Size(2)/h)
	return ops.Transpose(x, 0, 2, 1, 3)
}

// packed is [batch heads length width] as [batch length heads·width].
func packed(x value) value {
	t := x.Type()
	x = ops.Transpose(x, 0, 2, 1, 3)
	return ops.ReshapeSizes(x, t.Size(0), t.Size(2), t.Size(1)*t.Size(3))
}

// attention is of heads of queries that share those of keys and values in groups: they are
// multiplied as more queries of one head, so keys are not repeated.
func attention(n *node) {
	q, k, v := heads(n, 0, "q_num_heads"), heads(n, 1, "kv_num_heads"), heads(n, 2, "kv_num_heads")
	if n.int("softmax_precision", 1) == int(onnx.Double) {
		fail("softmax_precision is that of f64: want one of f32 or less, which is computed in f32")
	}
	past := 0
	if n.has(4) {
		past = n.x(4).Type().Size(2)
		k, v = ops.Concat(2, n.wide(4), k), ops.Concat(2, n.wide(5), v)
	}
	t, kv := q.Type(), k.Type().Size(1)
	if kv < 1 || t.Size(1)%kv != 0 {
		fail("%d heads of queries share %d of keys", t.Size(1), kv)
	}
	scale := math.Sqrt(float64(n.float("scale", float32(1/math.Sqrt(float64(t.Size(3)))))))
	joined := ops.ReshapeSizes(q, t.Size(0), kv, t.Size(1)/kv*t.Size(2), t.Size(3))
	raw := ops.MatMulT(ops.Scale(joined, float32(scale)), ops.Scale(k, float32(scale)), false, true)
	raw = ops.ReshapeSizes(raw, t.Size(0), t.Size(1), t.Size(2), k.Type().Size(2))
	capped := raw
	if limit := n.float("softcap", 0); limit != 0 {
		capped = ops.Scale(ops.Tanh(ops.Scale(raw, 1/limit)), limit)
	}
	biased := masked(n, capped, past)
	probabilities := ops.MaskedSoftmax(biased)
	flat := ops.ReshapeSizes(probabilities, t.Size(0), kv, t.Size(1)/kv*t.Size(2),
		k.Type().Size(2))
	y := ops.MatMul(flat, v)
	y = ops.ReshapeSizes(y, t.Size(0), t.Size(1), t.Size(2), v.Type().Size(3))
	if n.x(0).Type().Rank() == 3 {
		y = packed(y)
	}
	mode := n.int("qk_matmul_output_mode", 0)
	if mode < 0 || mode > 3 {
		fail("qk_matmul_output_mode is %d: want 0 to 3", mode)
	}
	stage := []value{raw, capped, biased, probabilities}[mode]
	n.give(n.narrow(y), n.narrow(k), n.narrow(v), n.narrow(stage))
}

// masked are logits [batch heads queries keys] without what a query does not look at, −∞ there.
// Queries begin behind what is in the past, or end where the keys do that are none of padding.
func masked(n *node, logits value, past int) value {
	t := logits.Type()
	queries, keys := t.Size(2), t.Size(3)
	j := steps(n, 1, keys)
	i := ops.AddScalar(steps(n, queries, 1), float32(past))
	var seen []value
	if n.has(6) {
		count := ops.ReshapeSizes(ops.Cast(n.x(6), graph.F32), t.Size(0), 1, 1, 1)
		seen = append(seen, ops.Less(j, count))
		if past == 0 {
			i = ops.Add(i, ops.AddScalar(count, -float32(queries)))
		}
	}
	if n.flag("is_causal", false) {
		seen = append(seen, ops.LessEqual(j, i))
	}
	if left := n.int("left_window_size", -1); left >= 0 {
		seen = append(seen, ops.GreaterEqual(j, ops.AddScalar(i, -float32(left))))
	}
	if right := n.int("right_window_size", -1); right >= 0 {
		seen = append(seen, ops.LessEqual(j, ops.AddScalar(i, float32(right))))
	}
	hidden := scalarOf(n.b.g, graph.F32, math.Inf(-1))
	if n.has(3) {
		if mask := n.wide(3); mask.Type().DType == graph.Bool {
			seen = append(seen, longer(n, mask, keys, n.b.g.Constant("hidden", truth(false))))
		} else {
			bias := longer(n, mask, keys, hidden)
			seen = append(seen, ops.NotEqual(bias, hidden))
			logits = ops.Add(logits, bias)
		}
	}
	for _, s := range seen {
		logits = ops.Where(s, logits, hidden)
	}
	return logits
}

// steps are 0, 1, 2, …, f32[rows columns].
func steps(n *node, rows, columns int) value {
	v := tensor.New(tensor.Of(tensor.F32, rows, columns))
	for i := range v.F32() {
		v.F32()[i] = float32(i)
	}
	return n.b.g.Constant("steps", v)
}

// longer is a mask of so many keys: what it does not have is hidden.
func longer(n *node, mask value, keys int, hidden value) value {
	rank := mask.Type().Rank()
	if have := mask.Type().Size(-1); rank > 0 && have < keys && have != 1 {
		return filled(mask, rank-1, 0, keys-have, hidden)
	}
	return mask
}

// rotary turns pairs of elements by angles whose cosines and sines are operands.
func rotary(n *node) {
	x := n.wide(0)
	flat := x.Type().Rank() == 3
	x = heads(n, 0, "num_heads")
	width := x.Type().Size(3)
	turned := n.int("rotary_embedding_dim", 0)
	if turned == 0 {
		turned = width
	}
	angle := func(i int) value {
		c := n.wide(i)
		if n.has(3) {
			c = ops.Take(c, n.index(3, c.Type().Size(0)), 0)
		}
		return ops.ExpandDims(c, 1)
	}
	cos, sin := angle(1), angle(2)
	rest := ops.Slice(x, 3, turned, width)
	var a, b value
	interleaved := n.flag("interleaved", false)
	if interleaved {
		a, b = ops.SliceStep(x, 3, 0, turned, 2), ops.SliceStep(x, 3, 1, turned, 2)
	} else {
		a, b = ops.Slice(x, 3, 0, turned/2), ops.Slice(x, 3, turned/2, turned)
	}
	re := ops.Sub(ops.Mul(cos, a), ops.Mul(sin, b))
	im := ops.Add(ops.Mul(sin, a), ops.Mul(cos, b))
	y := ops.Concat(3, re, im)
	if interleaved {
		y = ops.Concat(4, ops.ExpandDims(re, 4), ops.ExpandDims(im, 4))
		t := x.Type()
		y = ops.ReshapeSizes(y, t.Size(0), t.Size(1), t.Size(2), turned)
	}
	if turned < width {
		y = ops.Concat(3, y, rest)
	}
	if flat {
		y = packed(y)
	}
	n.give(n.narrow(y))
}

// causalConv convolves every channel with what was before, of which it keeps the end.
func causalConv(n *node) {
	x, w := n.wide(0), n.wide(1)
	t := x.Type()
	if t.Rank() != 3 || w.Type().Rank() != 3 {
		fail("operands are %s and %s, want [batch channels length] and [channels 1 k]", t, w.Type())
	}
	form := n.text("activation", "none")
	n.only("activation", form, "none", "silu", "swish")
	before := w.Type().Size(2) - 1
	if n.has(3) {
		x = ops.Concat(2, n.wide(3), x)
	} else {
		x = ops.Pad(x, 2, before, 0)
	}
	y := ops.Conv2D(ops.ExpandDims(x, 2), ops.ExpandDims(w, 2), ops.Conv{Groups: t.Size(1)})
	y = ops.Squeeze(y, 2)
	if n.has(2) {
		y = ops.Add(y, channels(n.wide(2), 3))
	}
	if form != "none" {
		y = ops.Silu(y)
	}
	long := x.Type().Size(2)
	n.give(n.narrow(y), n.narrow(ops.Slice(x, 2, long-before, long)))
}
