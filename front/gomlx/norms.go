package gomlx

import (
	"fmt"

	"github.com/gomem/gomem/front/gomlx/internal/hlo"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomlx/gomlx/backends"
)

// norms are the operations that normalise the features of a batch, each feature by a mean and a
// variance of its own: of x over all other axes.
type norms struct{ *computation }

// features are the values of a norm: x, and others that have one element for each feature.
type features struct {
	x    graph.Value
	axis int
	over []int // all other axes
}

// of reads the operands: the first has all axes, and the others one of so many features.
func (c norms) of(t backends.OpType, axis int, operands ...backends.Op) (features, []graph.Value,
	error) {
	v, err := c.values(t, operands...)
	if err != nil {
		return features{}, nil, err
	}
	f := features{x: v[0], axis: axis}
	if axis < 0 || axis >= f.x.Type().Rank() || !f.x.Type().DType.Floating() {
		return f, nil, fmt.Errorf("gomem: %s: features along axis %d of %s", t, axis, f.x.Type())
	}
	want := graph.Of(f.x.Type().DType, f.x.Type().Size(axis))
	for _, x := range v[1:] {
		if !x.Type().Equal(want) && !x.Type().Equal(f.x.Type()) {
			return f, nil, fmt.Errorf("gomem: %s: %s for features of %s", t, x.Type(), f.x.Type())
		}
	}
	for a := range f.x.Type().Rank() {
		if a != axis {
			f.over = append(f.over, a)
		}
	}
	return f, v[1:], nil
}

// each is what there is one of for each feature, beside x.
func (f features) each(v graph.Value) graph.Value {
	return among(v, f.x.Type().Rank(), []int{f.axis})
}

// sum adds up over all axes but that of the features.
func (f features) sum(v graph.Value) graph.Value { return reduce(hlo.Sum, v, f.over) }

// count is how many elements a feature has, as a constant.
func (f features) count() graph.Value {
	n := f.x.Type().Elems() / max(1, f.x.Type().Size(f.axis))
	return scalar(f.x, float64(n))
}

// factor is 1/√(variance + epsilon).
func (f features) factor(variance graph.Value, epsilon float32) graph.Value {
	return ops.Rsqrt(ops.Add(variance, scalar(f.x, float64(epsilon))))
}

// scaled is (x − mean)·factor·scale + offset.
func (f features) scaled(scale, offset, mean, factor graph.Value) graph.Value {
	y := ops.Mul(ops.Sub(f.x, f.each(mean)), f.each(ops.Mul(factor, scale)))
	return ops.Add(y, f.each(offset))
}

// BatchNormForInference normalises by the mean and variance that are given.
func (c norms) BatchNormForInference(x, scale, offset, mean, variance backends.Op,
	epsilon float32, axis int) (backends.Op, error) {
	const t = backends.OpTypeBatchNormForInference
	f, v, err := c.of(t, axis, x, scale, offset, mean, variance)
	if err != nil {
		return nil, err
	}
	return c.made(t, f.scaled(v[0], v[1], v[2], f.factor(v[3], epsilon)), nil)
}

// BatchNormForTraining normalises by the mean and variance of the batch, which are results, too.
func (c norms) BatchNormForTraining(x, scale, offset backends.Op, epsilon float32, axis int) (
	normalized, batchMean, batchVariance backends.Op, err error) {
	const t = backends.OpTypeBatchNormForTraining
	f, v, err := c.of(t, axis, x, scale, offset)
	if err != nil {
		return nil, nil, nil, err
	}
	mean := ops.Div(f.sum(f.x), f.count())
	variance := ops.Div(f.sum(ops.Square(ops.Sub(f.x, f.each(mean)))), f.count())
	y := f.scaled(v[0], v[1], mean, f.factor(variance, epsilon))
	if normalized, err = c.made(t, y, nil); err != nil {
		return nil, nil, nil, err
	}
	return normalized, &op{c.computation, mean}, &op{c.computation, variance}, nil
}

// BatchNormGradient is the gradients of x, scale and offset, of that of what was normalised by the
// mean and variance of the batch:
//
//	dx = scale·factor·(dy − mean(dy) − x̂·mean(dy·x̂)), dscale = Σ dy·x̂, doffset = Σ dy
func (c norms) BatchNormGradient(x, scale, mean, variance, dy backends.Op, epsilon float32,
	axis int) (dx, dscale, doffset backends.Op, err error) {
	const t = backends.OpTypeBatchNormGradient
	f, v, err := c.of(t, axis, x, scale, mean, variance, dy)
	if err != nil {
		return nil, nil, nil, err
	}
	factor, d := f.factor(v[2], epsilon), v[3]
	normal := ops.Mul(ops.Sub(f.x, f.each(v[1])), f.each(factor))
	sum, along := f.sum(d), f.sum(ops.Mul(d, normal))
	rest := ops.Sub(d, f.each(ops.Div(sum, f.count())))
	rest = ops.Sub(rest, ops.Mul(normal, f.each(ops.Div(along, f.count()))))
	if dx, err = c.made(t, ops.Mul(rest, f.each(ops.Mul(factor, v[0]))), nil); err != nil {
		return nil, nil, nil, err
	}
	return dx, &op{c.computation, along}, &op{c.computation, sum}, nil
}
