package ops

import (
	"slices"

	"github.com/gomem/gomem/graph"
)

// Joining makes one product of sums of products: of XᵀY + ZᵀW it makes [X; Z]ᵀ[Y; W], which
// is what the gradient of a weight is that several layers or steps of a sequence have in
// common. In place of a matrix for each of them there is one, at the end. The sum is rounded
// in another order. Rows of a table that are looked up are added to it there. The zero value
// is ready; what several sums have in common is put together once.
type Joining struct {
	// Any joins whatever the bytes, and not only where what is multiplied has fewer.
	Any bool

	made []joint
}

// joint is values with the value that has the rows of all.
type joint struct {
	parts []graph.Value
	all   graph.Value
}

// Join is v, f32, with the products aᵀ·b among the terms of its sums joined (see [Factors]),
// and the gradients of rows that were looked up, if there are several and what is multiplied
// is fewer bytes than v. Terms of other kinds come first. It is v itself if there is nothing
// to join.
func (j *Joining) Join(v graph.Value) graph.Value {
	if !v.Valid() {
		return v
	}
	n := v.Node
	switch op := n.Op.(type) {
	case reshape, concat:
		in := make([]graph.Value, len(n.In))
		for i, part := range n.In {
			in[i] = j.Join(part)
		}
		if slices.Equal(in, n.In) {
			return v
		}
		return apply(n.Op, in...)
	case binary:
		if op.Kind == add {
			return j.sum(v)
		}
	}
	return v
}

// sum is a sum with its terms joined.
func (j *Joining) sum(v graph.Value) graph.Value {
	var products, lookups, all []graph.Value
	for _, t := range terms(v) {
		switch {
		case isOuter(t):
			products = append(products, t)
		case isLookup(t):
			lookups = append(lookups, t)
		default:
			all = append(all, t)
		}
	}
	if len(products)+len(lookups) < 2 ||
		!j.Any && operandBytes(products)+operandBytes(lookups) >= v.Type().Bytes() {
		return v
	}
	if len(products) > 0 {
		a, b := j.operands(products)
		all = append(all, MatMulT(a, b, true, false))
	}
	if len(lookups) > 0 {
		ids, rows := j.operands(lookups)
		all = append(all, apply(lookups[0].Node.Op, ids, rows))
	}
	sum := all[0]
	for _, t := range all[1:] {
		sum = Add(sum, t)
	}
	return sum
}

// operandBytes is those of all operands of nodes.
func operandBytes(nodes []graph.Value) (sum int64) {
	for _, v := range nodes {
		sum += bytes(v.Node.InTypes(), nil)
	}
	return sum
}

// terms are what v is the sum of, in order.
func terms(v graph.Value) []graph.Value {
	op, ok := v.Node.Op.(binary)
	if !ok || op.Kind != add {
		return []graph.Value{v}
	}
	for _, in := range v.Node.In {
		if !in.Type().Equal(v.Type()) {
			return []graph.Value{v} // repeated
		}
	}
	return append(terms(v.Node.In[0]), terms(v.Node.In[1])...)
}

// operands are the two operands of all nodes, each with its samples along the first axis.
func (j *Joining) operands(nodes []graph.Value) (a, b graph.Value) {
	var as, bs []graph.Value
	for _, v := range nodes {
		as, bs = append(as, v.Node.In[0]), append(bs, v.Node.In[1])
	}
	return j.all(as), j.all(bs)
}

// all puts values below each other: f32[… n] are rows of n, i32[…] elements.
func (j *Joining) all(parts []graph.Value) graph.Value {
	for _, m := range j.made {
		if slices.Equal(m.parts, parts) {
			return m.all
		}
	}
	flat := make([]graph.Value, len(parts))
	for i, v := range parts {
		switch t := v.Type(); {
		case t.DType == graph.I32:
			flat[i] = ReshapeSizes(v, t.Elems())
		default:
			flat[i] = ReshapeSizes(v, t.Elems()/max(1, t.Size(-1)), t.Size(-1))
		}
	}
	all := flat[0]
	if len(flat) > 1 {
		all = Concat(0, flat...)
	}
	j.made = append(j.made, joint{parts, all})
	return all
}

// isOuter reports whether v is a product that is summed over samples.
func isOuter(v graph.Value) bool {
	op, ok := v.Node.Op.(matMul)
	return ok && op.outer(v.Node.In[0].Type())
}

// isLookup reports whether v is the gradient of a table of which rows were looked up.
func isLookup(v graph.Value) bool {
	_, ok := v.Node.Op.(embeddingGrad)
	return ok
}
