package gomlx

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/front/gomlx/internal/hlo"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomlx/gomlx/backends"
)

// products are the products of values along axes.
type products struct{ *computation }

// Dot is the product of vectors and matrices: along the last axis of x, and of y the first.
func (c products) Dot(x, y backends.Op) (backends.Op, error) {
	const t = backends.OpTypeDot
	v, err := c.values(t, x, y)
	if err != nil {
		return nil, err
	}
	a, b := v[0].Type(), v[1].Type()
	if a.Rank() < 1 || a.Rank() > 2 || b.Rank() < 1 || b.Rank() > 2 {
		return c.made(t, graph.Value{}, fmt.Errorf("%s by %s, want vectors or matrices", a, b))
	}
	out, err := general(factor{v[0], []int{a.Rank() - 1}, nil}, factor{v[1], []int{0}, nil})
	return c.made(t, out, err)
}

// DotGeneral is the sum of products along the axes that are contracted, for every element of the
// axes of a batch, which come first in the result, and then of x's others and of y's.
func (c products) DotGeneral(x backends.Op, xContracted, xBatch []int, y backends.Op,
	yContracted, yBatch []int) (backends.Op, error) {
	const t = backends.OpTypeDotGeneral
	v, err := c.values(t, x, y)
	if err != nil {
		return nil, err
	}
	out, err := general(factor{v[0], xContracted, xBatch}, factor{v[1], yContracted, yBatch})
	return c.made(t, out, err)
}

// factor is an operand of a product, with the axes that are contracted and those of the batch.
type factor struct {
	value             graph.Value
	contracted, batch []int
}

// check rejects axes that there are none of, or that are there twice; those below 0 count from
// the end.
func (f *factor) check() error {
	rank := f.value.Type().Rank()
	seen := make([]bool, rank)
	for _, list := range []*[]int{&f.contracted, &f.batch} {
		*list = slices.Clone(*list)
		for i, a := range *list {
			if a < 0 {
				a += rank
			}
			if a < 0 || a >= rank || seen[a] {
				return fmt.Errorf("axes %v and %v of %s", f.contracted, f.batch, f.value.Type())
			}
			(*list)[i], seen[a] = a, true
		}
	}
	return nil
}

// cross are the axes that are neither.
func (f factor) cross() []int {
	var out []int
	for a := range f.value.Type().Rank() {
		if !slices.Contains(f.contracted, a) && !slices.Contains(f.batch, a) {
			out = append(out, a)
		}
	}
	return out
}

// sizes are those of some axes.
func (f factor) sizes(axes []int) []int {
	out := make([]int, 0, len(axes))
	for _, a := range axes {
		out = append(out, f.value.Type().Size(a))
	}
	return out
}

// product is of all numbers.
func product(x []int) int {
	p := 1
	for _, n := range x {
		p *= n
	}
	return p
}

// matrix is the factor as [batch cross contracted], or turned, [batch contracted cross]: the one
// that its axes are in already, if either.
func (f factor) matrix() (v graph.Value, turned bool) {
	b, m, k := f.batch, f.cross(), f.contracted
	sizes := []int{product(f.sizes(b)), product(f.sizes(m)), product(f.sizes(k))}
	order := slices.Concat(b, k, m)
	if turned = slices.IsSorted(order) && len(m) > 0; turned {
		sizes[1], sizes[2] = sizes[2], sizes[1]
	} else {
		order = slices.Concat(b, m, k)
	}
	if sizes[0] == 1 { // so it is shared, and no batch
		sizes = sizes[1:]
	}
	return ops.ReshapeSizes(ordered(f.value, order), sizes...), turned
}

// general is the product of two factors.
func general(x, y factor) (graph.Value, error) {
	if err := x.check(); err != nil {
		return graph.Value{}, err
	}
	if err := y.check(); err != nil {
		return graph.Value{}, err
	}
	d := x.value.Type().DType
	if d != y.value.Type().DType || d == graph.Bool ||
		!slices.Equal(x.sizes(x.contracted), y.sizes(y.contracted)) ||
		!slices.Equal(x.sizes(x.batch), y.sizes(y.batch)) {
		return graph.Value{}, fmt.Errorf("%s along %v, batch %v, by %s along %v, batch %v",
			x.value.Type(), x.contracted, x.batch, y.value.Type(), y.contracted, y.batch)
	}
	sizes := slices.Concat(x.sizes(x.batch), x.sizes(x.cross()), y.sizes(y.cross()))
	return ops.ReshapeSizes(multiplied(x, y), sizes...), nil
}

// multiplied is the product of matrices: by graph/ops if it has it.
func multiplied(x, y factor) graph.Value {
	if d := x.value.Type().DType; d.Floating() || d == graph.I32 {
		a, turnedA := x.matrix()
		b, turnedB := y.matrix()
		return ops.MatMulT(a, b, turnedA, !turnedB)
	}
	batch, k := product(x.sizes(x.batch)), product(x.sizes(x.contracted))
	a := ordered(x.value, slices.Concat(x.batch, x.cross(), x.contracted))
	b := ordered(y.value, slices.Concat(y.batch, y.contracted, y.cross()))
	return hlo.Dot(ops.ReshapeSizes(a, batch, product(x.sizes(x.cross())), k),
		ops.ReshapeSizes(b, batch, k, product(y.sizes(y.cross()))))
}
