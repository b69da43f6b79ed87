package ops

import "github.com/gomem/gomem/graph"

// Factors are what v is made of if it is made of nothing but products aᵀ·b, which are
// summed over samples, the leading axes of a and b: such a product, or several of them
// reshaped and concatenated. It is what the gradient of a weight of dense layers looks like.
// They are in order, a before b; one may be there more than once. Of any other value there
// are none.
func Factors(v graph.Value) []graph.Value {
	if !v.Valid() {
		return nil
	}
	switch op := v.Node.Op.(type) {
	case matMul:
		if op.outer(v.Node.In[0].Type()) {
			return v.Node.In
		}
	case reshape, concat:
		var all []graph.Value
		for _, in := range v.Node.In {
			some := Factors(in)
			if some == nil {
				return nil
			}
			all = append(all, some...)
		}
		return all
	}
	return nil
}

// Refactor is v, which has [Factors], made again of others, which may have more samples
// along their first axis.
func Refactor(v graph.Value, of func(factor graph.Value) graph.Value) graph.Value {
	n := v.Node
	if _, product := n.Op.(matMul); product {
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
