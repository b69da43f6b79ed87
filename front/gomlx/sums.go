package gomlx

import (
	"slices"

	"github.com/gomem/gomem/front/gomlx/internal/hlo"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// GoMLX writes the gradient of a product of matrices as what it is element by element: both are
// repeated along each other's axes, multiplied, and added up. What is multiplied is as large as all
// axes together, and XLA never makes it, as it fuses the three. Here a sum of such products becomes
// a product of matrices, which nothing of that size is needed for.

// origins is what values were made of, where a sum of them would ask.
type origins struct {
	times    map[graph.Value][2]graph.Value // both factors of a product
	repeated map[graph.Value]graph.Value    // what is repeated along axes of size 1
}

func newOrigins() origins {
	return origins{map[graph.Value][2]graph.Value{}, map[graph.Value]graph.Value{}}
}

// multiply is a · b.
func (o origins) multiply(a, b graph.Value) graph.Value {
	v := ops.Mul(a, b)
	o.times[v] = [2]graph.Value{a, b}
	return v
}

// repeat is x with axes of size 1 repeated until it has sizes.
func (o origins) repeat(x graph.Value, sizes []int) graph.Value {
	v := ops.BroadcastTo(x, sizes...)
	if v != x {
		o.repeated[v] = x
	}
	return v
}

// before is what x repeats, or x.
func (o origins) before(x graph.Value) graph.Value {
	if w, ok := o.repeated[x]; ok {
		return w
	}
	return x
}

// sum adds up x over axes, as a product of matrices where x is products of what was repeated.
func (o origins) sum(x graph.Value, axes []int) graph.Value {
	f, ok := o.times[x]
	if !ok || small(x.Type().DType) {
		return reduce(hlo.Sum, x, axes)
	}
	a, b := o.before(f[0]), o.before(f[1])
	if v, ok := sumOfProducts(a, b, x.Type(), axes); ok {
		return v
	}
	return reduce(hlo.Sum, x, axes)
}

// sumOfProducts is the sum over axes of a · b, which repeated have a type; false unless either has
// an axis that the other has not.
func sumOfProducts(a, b graph.Value, t graph.Type, axes []int) (graph.Value, bool) {
	rank := t.Rank()
	if a.Type().Rank() != rank || b.Type().Rank() != rank {
		return graph.Value{}, false
	}
	a, b = alone(a, b, axes), alone(b, a, axes)
	x, y := factor{value: a}, factor{value: b}
	var onlyX, onlyY, both, kept []int
	for i := range rank {
		n, m, summed := a.Type().Size(i), b.Type().Size(i), slices.Contains(axes, i)
		switch {
		case n == m && summed:
			x.contracted, y.contracted = append(x.contracted, i), append(y.contracted, i)
		case n == m:
			x.batch, y.batch, both = append(x.batch, i), append(y.batch, i), append(both, i)
		case m == 1:
			onlyX = append(onlyX, i)
		default:
			onlyY = append(onlyY, i)
		}
		if !summed {
			kept = append(kept, i)
		}
	}
	if len(onlyX) == 0 || len(onlyY) == 0 {
		return graph.Value{}, false
	}
	x.value, y.value = ops.Squeeze(a, onlyY...), ops.Squeeze(b, onlyX...)
	x.contracted, x.batch = places(x.contracted, onlyY), places(x.batch, onlyY)
	y.contracted, y.batch = places(y.contracted, onlyX), places(y.batch, onlyX)
	v, err := general(x, y)
	if err != nil {
		return graph.Value{}, false
	}
	made := slices.Concat(both, onlyX, onlyY)
	order := make([]int, 0, len(kept))
	for _, a := range kept {
		order = append(order, slices.Index(made, a))
	}
	return ordered(v, order), true
}

// alone is x added up over those axes that y has not.
func alone(x, y graph.Value, axes []int) graph.Value {
	var over []int
	for _, i := range axes {
		if x.Type().Size(i) != 1 && y.Type().Size(i) == 1 {
			over = append(over, i)
		}
	}
	if len(over) == 0 {
		return x
	}
	sizes := x.Type().Sizes()
	for _, i := range over {
		sizes[i] = 1
	}
	return ops.ReshapeSizes(reduce(hlo.Sum, x, over), sizes...)
}

// places are where axes are once others are left out.
func places(axes, left []int) []int {
	var out []int
	for _, a := range axes {
		at := a
		for _, l := range left {
			if l < a {
				at--
			}
		}
		out = append(out, at)
	}
	return out
}
