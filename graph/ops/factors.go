package ops

import "github.com/gomem/gomem/graph"

// Factors are what v is made of if it is made of nothing but products aᵀ·b, which are
// summed over samples, the leading axes of a and b, and of gradients of rows of a table of at
// most 2²⁴, whose factors are the rows' numbers, i32[…], and their gradients: such a term, or
// several of them added, reshaped and concatenated. It is what the gradient of a weight of
// dense layers looks like. They are in order, a before b; one may be there more than once. Of
// any other value there are none.
func Factors(v graph.Value) []graph.Value {
	if !v.Valid() {
		return nil
	}
	switch op := v.Node.Op.(type) {
	case matMul:
		if op.outer(v.Node.In[0].Type()) {
			return v.Node.In
		}
	case embeddingGrad:
		if op.Rows <= mostExact {
			return v.Node.In
		}
	case binary:
		if op.Kind == add && len(terms(v)) > 1 {
			return factorsOf(v.Node.In)
		}
	case reshape, concat:
		return factorsOf(v.Node.In)
	}
	return nil
}

// mostExact is how many rows are numbered exactly by floats, which is what factors are sent as.
const mostExact = 1 << 24

// factorsOf are the factors of all values, none if one has none.
func factorsOf(values []graph.Value) (all []graph.Value) {
	for _, v := range values {
		some := Factors(v)
		if some == nil {
			return nil
		}
		all = append(all, some...)
	}
	return all
}

// Refactor is v, which has [Factors], made again of others, which may have more samples
// along their first axis.
func Refactor(v graph.Value, of func(factor graph.Value) graph.Value) graph.Value {
	n := v.Node
	switch n.Op.(type) {
	case matMul, embeddingGrad:
		return apply(n.Op, of(n.In[0]), of(n.In[1]))
	}
	var in []graph.Value
	for _, part := range n.In {
		in = append(in, Refactor(part, of))
	}
	return apply(n.Op, in...)
}

// outer reports whether the product is summed over all but the last axis of a, its first
// operand, and of the second.
func (o matMul) outer(a graph.Type) bool {
	return o.TransA && !o.TransB && (o.Reduce || a.Rank() == 2)
}
