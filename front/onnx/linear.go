package onnx

import (
	"math"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// linearAttention keeps a matrix for each head of keys, [batch heads keys values], to which every
// step adds a product. It is unrolled.
func linearAttention(n *node) {
	rule := n.text("update_rule", "gated_delta")
	n.only("update_rule", rule, "linear", "gated", "delta", "gated_delta")
	n.int("chunk_size", 64) // a hint
	q, k, v := heads(n, 0, "q_num_heads"), heads(n, 1, "kv_num_heads"), heads(n, 2, "kv_num_heads")
	t, heads := k.Type(), k.Type().Size(1)
	steps := t.Size(2)
	if heads < 1 || q.Type().Size(1)%heads != 0 {
		fail("%d heads of queries share %d of keys", q.Type().Size(1), heads)
	}
	if steps > mostIterations {
		fail("it runs more than %d times", mostIterations)
	}
	scale := n.float("scale", 0)
	if scale == 0 {
		scale = float32(1 / math.Sqrt(float64(t.Size(3))))
	}
	state := ops.Zeros(n.b.g, tensor.Of(graph.F32, t.Size(0), heads, t.Size(3), v.Type().Size(3)))
	if n.has(3) {
		state = n.wide(3)
	}
	var decay, beta value
	if strings.HasPrefix(rule, "gated") {
		decay = ops.Exp(headsOf(n, 4, heads))
	}
	if strings.HasSuffix(rule, "delta") {
		beta = headsOf(n, 5, heads)
	}
	at := func(x value, i int) value { return ops.Slice(x, 2, i, i+1) }
	var out []value
	for i := range steps {
		if decay.Valid() {
			state = ops.Mul(state, ops.Transpose(at(decay, i), 0, 1, 3, 2))
		}
		key, step := at(k, i), at(v, i)
		if beta.Valid() {
			step = ops.Mul(at(beta, i), ops.Sub(step, ops.MatMul(key, state)))
		}
		state = ops.Add(state, ops.Mul(ops.Transpose(key, 0, 1, 3, 2), step))
		queries := ops.ReshapeSizes(at(q, i), t.Size(0), heads, -1, t.Size(3))
		out = append(out, ops.ReshapeSizes(ops.MatMul(queries, state), t.Size(0), 1,
			q.Type().Size(1)*v.Type().Size(3)))
	}
	y := ops.Scale(ops.Concat(1, out...), scale)
	last := n.x(0).Type().DType
	if n.has(3) {
		last = n.x(3).Type().DType
	}
	n.give(n.narrow(y), ops.Cast(state, last))
}

// headsOf is operand i, [batch length heads·width], as [batch heads length width]; what has one for
// all heads has one head.
func headsOf(n *node, i, heads int) value {
	x := n.wide(i)
	t := x.Type()
	if t.Rank() != 3 || t.Size(2) != 1 && t.Size(2)%heads != 0 {
		fail("operand %d is %s, want [batch length heads·width] of %d heads", i, t, heads)
	}
	if t.Size(2) == 1 {
		heads = 1
	}
	x = ops.ReshapeSizes(x, t.Size(0), t.Size(1), heads, t.Size(2)/heads)
	return ops.Transpose(x, 0, 2, 1, 3)
}
