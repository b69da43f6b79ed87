package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// puts is an operation that puts updates, operand 2, into operand 0 where indices, operand 1,
// say.
type puts interface {
	graph.Op
	// with is the operation that does it in another way.
	with(how ScatterHow) graph.Op
	// from is what is where the indices say.
	from(x, indices graph.Value) graph.Value
	// last is which updates are the last of those of their places: bool, of a shape that
	// broadcasts to that of the updates.
	last(n *graph.Node) graph.Value
}

// scatterGrads are the gradients of x and the updates.
func scatterGrads(o puts, how ScatterHow, n *graph.Node, d graph.Value) []graph.Value {
	x, indices, updates := n.In[0], n.In[1], n.In[2]
	if x.Type().DType != graph.F32 {
		return none(3)
	}
	dx, du := d, o.from(d, indices)
	switch how {
	case ScatterSet:
		none := Zeros(n.Graph(), tensor.Of(graph.F32))
		dx = apply(o.with(ScatterSet), d, indices, Zeros(n.Graph(), updates.Type()))
		du = Where(o.last(n), du, none)
	case ScatterProduct:
		dx, du = scatterProductGrads(o, n, d)
	case ScatterMax, ScatterMin:
		y := n.Value(0)
		here, there := same32(x, y), same32(updates, o.from(y, indices))
		share := Div(d, apply(o.with(ScatterSum), here, indices, there))
		dx, du = Mul(here, share), Mul(there, o.from(share, indices))
	}
	return []graph.Value{dx, {}, du}
}

// same32 is 1 where a = b, and 0 elsewhere.
func same32(a, b graph.Value) graph.Value { return Cast(Equal(a, b), graph.F32) }

// scatterProductGrads divide a product by each factor. Of factors that are zero it is what the
// product is without them: they are made 1, all of them for x, and for an update one that is
// the only one of its place.
func scatterProductGrads(o puts, n *graph.Node, d graph.Value) (dx, du graph.Value) {
	x, indices, updates, y := n.In[0], n.In[1], n.In[2], n.Value(0)
	zero, one := Zeros(n.Graph(), tensor.Of(graph.F32)), Ones(n.Graph(), tensor.Of(graph.F32))
	noZero := func(v, is graph.Value) graph.Value { return Where(is, one, v) }
	product := func(x, updates graph.Value) graph.Value {
		return apply(o.with(ScatterProduct), x, indices, updates)
	}
	of := noZero(x, Equal(x, zero))
	dx = Mul(d, Div(product(of, updates), of))

	is := Equal(updates, zero)
	zeros := apply(o.with(ScatterSum), Zeros(n.Graph(), x.Type()), indices, Cast(is, graph.F32))
	only := And(is, Equal(o.from(zeros, indices), one))
	without := product(x, noZero(updates, only))
	du = Where(only, o.from(Mul(d, without), indices),
		Div(o.from(Mul(d, y), indices), noZero(updates, is)))
	return dx, du
}

// ordinals count the elements of a value from 1 on: i32.
func ordinals(g *graph.Graph, sizes ...int) graph.Value {
	n := tensor.Of(graph.F32, sizes...).Elems()
	return ReshapeSizes(CumSum(Cast(Ones(g, tensor.Of(graph.F32, n)), graph.I32), 0), sizes...)
}

// zeroI32 are zeros, i32.
func zeroI32(g *graph.Graph, sizes ...int) graph.Value {
	return Cast(Zeros(g, tensor.Of(graph.F32, sizes...)), graph.I32)
}
