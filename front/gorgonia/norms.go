package gorgonia

import (
	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// stat is a running average of a batch norm: a variable, and Gorgonia's tensor, which has its value
// before the first step and after every one.
type stat struct {
	value  graph.Value
	tensor *tensor.Dense
}

// batchNorm gives every channel mean 0 and variance 1. In training that is by the batch, and the
// running averages learn of it; else by these.
func batchNorm(t *translation, n *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	x := in[0]
	mean, variance := n.Op().(*G.BatchNormOp).Stats()
	averages := make([]graph.Value, 2)
	for i, s := range []tensor.Tensor{mean, variance} {
		v, err := copied(s)
		if err != nil {
			return x, err
		}
		if !f.flag("training") {
			averages[i] = t.graph.Constant("average", v)
			continue
		}
		averages[i] = t.graph.State(t.name("average"), v.Type, graph.Init{})
		t.stats = append(t.stats, stat{averages[i], s.(*tensor.Dense)})
	}
	eps := f.number("epsilon")
	if !f.flag("training") {
		return normed(t, x, averages[0], averages[1], eps), nil
	}
	y, m, v := batchNormed(t, x, eps)
	many := float64(x.Type().Elems() / x.Type().Size(1))
	t.learnt(averages[0], m, 1, f.number("momentum"))
	t.learnt(averages[1], v, many/(many-1), f.number("momentum"))
	return y, nil
}

// learnt has an average learn of a value, times a factor.
func (t *translation) learnt(average, x graph.Value, factor, momentum float64) {
	d := average.Type().DType
	t.graph.InPhase(graph.Update, func() {
		x = ops.Mul(ops.Mul(x, t.scalar(d, factor)), t.scalar(d, momentum))
		ops.Assign(average, ops.Add(x, ops.Mul(average, t.scalar(d, 1-momentum))))
	})
}

// batchNormed is a batch norm, with the mean and variance of the batch.
func batchNormed(t *translation, x graph.Value, eps float64) (y, mean, variance graph.Value) {
	d, channels := x.Type().DType, x.Type().Size(1)
	if d == graph.F32 {
		of := graph.Of(d, channels)
		return ops.BatchNorm(x, ops.Ones(t.graph, of), ops.Zeros(t.graph, of), float32(eps))
	}
	axes := others(x.Type())
	mean = ops.Mean(x, axes...)
	off := ops.Sub(x, channelled(mean, x.Type()))
	variance = ops.Mean(ops.Square(off), axes...)
	return normed(t, x, mean, variance, eps), mean, variance
}

// normed is x less a mean, divided by the root of a variance, of its channel.
func normed(t *translation, x, mean, variance graph.Value, eps float64) graph.Value {
	scale := ops.Rsqrt(ops.Add(variance, t.scalar(x.Type().DType, eps)))
	off := ops.Sub(x, channelled(mean, x.Type()))
	return ops.Mul(off, channelled(scale, x.Type()))
}

// others are the axes but that of channels, the second.
func others(of graph.Type) []int {
	axes := []int{0}
	for a := 2; a < of.Rank(); a++ {
		axes = append(axes, a)
	}
	return axes
}

// channelled is a value for every channel with as many axes as a type.
func channelled(v graph.Value, of graph.Type) graph.Value {
	sizes := make([]int, of.Rank())
	for a := range sizes {
		sizes[a] = 1
	}
	sizes[1] = v.Type().Elems()
	return ops.ReshapeSizes(v, sizes...)
}

// groupNorm gives every group of channels of every item mean 0 and variance 1.
func groupNorm(t *translation, _ *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	x := in[0]
	groups := f.whole("numGroups")
	rows := x.Type().Size(0) * groups
	y := ops.ReshapeSizes(x, rows, x.Type().Elems()/rows)
	off := ops.Sub(y, ops.ReshapeSizes(ops.Mean(y, 1), rows, 1))
	variance := ops.ReshapeSizes(ops.Mean(ops.Square(off), 1), rows, 1)
	eps := t.scalar(x.Type().DType, f.number("epsilon"))
	return ops.Mul(off, ops.Rsqrt(ops.Add(variance, eps))), nil
}

// dropout zeroes elements with a probability, and makes the others larger for it.
func dropout(t *translation, n *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	x, rate := in[0], f.number("probability")
	if rate == 0 || !f.flag("isTraining") {
		return x, nil
	}
	name := t.name("dropout")
	if x.Type().DType == graph.F32 {
		return ops.Dropout(x, t.seeded(), float32(rate), name), nil
	}
	ones := ops.Ones(t.graph, graph.Of(graph.F32, n.Shape()...))
	kept := ops.Greater(ops.Dropout(ones, t.seeded(), float32(rate), name),
		ops.Zeros(t.graph, graph.Of(graph.F32)))
	return ops.Mul(ops.Mul(x, ops.Cast(kept, graph.F64)), t.scalar(graph.F64, 1/(1-rate))), nil
}

// random is uniform or normal numbers, others in every step.
func random(t *translation, n *G.Node, f *fields, _ []graph.Value) (graph.Value, error) {
	of, err := typeOf(n)
	which := f.whole("which")
	switch {
	case err != nil:
		return graph.Value{}, err
	case of.DType != graph.F32:
		return graph.Value{}, refusal("gomem draws f32: convert them, or feed an input")
	case which > 1:
		return graph.Value{}, refusal("gomem draws uniform and normal numbers: feed an input")
	}
	a, b, name := f.number("a"), f.number("b"), t.name("random")
	if which == 0 {
		x := ops.RandomUniform(t.seeded(), of, name)
		return ops.Add(ops.Mul(x, t.scalar(of.DType, b-a)), t.scalar(of.DType, a)), nil
	}
	x := ops.RandomNormal(t.seeded(), of, name)
	return ops.Add(ops.Mul(x, t.scalar(of.DType, b)), t.scalar(of.DType, a)), nil
}

// seeded is the input that random operations read.
func (t *translation) seeded() graph.Value {
	if !t.seed.Valid() {
		t.seed = t.graph.Input(t.name("seed"), gomem.Pair(0, 0).Type)
	}
	return t.seed
}
