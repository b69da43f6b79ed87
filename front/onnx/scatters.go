package onnx

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// scatters are operators that put elements where indices say, or take them from there.
var scatters = each(map[string]func(n *node){
	"Scatter": scatter, "ScatterElements": scatter, "ScatterND": scatterND, "GatherND": gatherND,
	"TensorScatter": cacheWrite,
})

// how is what becomes of the element that is there.
func how(n *node) ops.ScatterHow {
	kind := n.text("reduction", "none")
	n.only("reduction", kind, "none", "add", "mul", "max", "min")
	return map[string]ops.ScatterHow{"none": ops.ScatterSet, "add": ops.ScatterSum,
		"mul": ops.ScatterProduct, "max": ops.ScatterMax, "min": ops.ScatterMin}[kind]
}

func scatter(n *node) {
	x := n.x(0)
	a := axis(n.int("axis", 0), x.Type().Rank())
	n.give(ops.Scatter(x, n.index(1, x.Type().Size(a)), n.x(2), a, how(n)))
}

func scatterND(n *node) {
	x := n.x(0)
	n.give(ops.ScatterND(x, vectors(n, x.Type().Sizes()), n.x(2), how(n)))
}

func gatherND(n *node) {
	x, batch := n.x(0), n.int("batch_dims", 0)
	if batch < 0 || batch > x.Type().Rank() {
		fail("%d axes of %s are a batch", batch, x.Type())
	}
	n.give(ops.GatherND(x, vectors(n, x.Type().Sizes()[batch:]), batch))
}

// vectors is operand 1 as indices i32[… k] along the first k axes of sizes: those below zero count
// from the end.
func vectors(n *node, sizes []int) value {
	at := ops.Cast(n.x(1), graph.I32)
	if at.Type().Rank() == 0 || at.Type().Size(-1) > len(sizes) {
		fail("indices %s of axes of %v", at.Type(), sizes)
	}
	all := n.b.indices(sizes[:at.Type().Size(-1)])
	return ops.Where(ops.Less(at, n.b.i32(0)), ops.Add(at, all), at)
}

// stepsAlong is 0, 1, 2, … along an axis, f32, of a rank.
func stepsAlong(n *node, a, rank, size int) value {
	sizes := make([]int, rank)
	for i := range sizes {
		sizes[i] = 1
	}
	sizes[a] = size
	return ops.ReshapeSizes(steps(n, 1, size), sizes...)
}

// perSample is operand i, one integer for each place along an axis, as f32 that broadcasts.
func perSample(n *node, i, a, rank int) value {
	sizes := make([]int, rank)
	for k := range sizes {
		sizes[k] = 1
	}
	sizes[a] = n.x(i).Type().Elems()
	return ops.ReshapeSizes(ops.Cast(n.x(i), graph.F32), sizes...)
}

// cacheWrite puts rows into a cache, of each sample from another place on.
func cacheWrite(n *node) {
	x, rows := n.x(0), n.x(1)
	rank := x.Type().Rank()
	a := axis(n.int("axis", -2), rank)
	mode := n.text("mode", "linear")
	n.only("mode", mode, "linear", "circular")
	long := x.Type().Size(a)
	if rows.Type().Rank() != rank || rows.Type().Size(a) > long {
		fail("rows %s of a cache %s", rows.Type(), x.Type())
	}
	at := stepsAlong(n, a, rank, rows.Type().Size(a))
	if n.has(2) {
		at = ops.Add(at, perSample(n, 2, 0, rank))
	}
	if size := like(at, float64(long)); mode == "circular" {
		at = ops.Where(ops.Less(at, size), at, ops.Sub(at, size))
	}
	at = ops.BroadcastTo(ops.Cast(at, graph.I32), rows.Type().Sizes()...)
	n.give(ops.Scatter(x, at, rows, a, ops.ScatterSet))
}

// randoms are operators whose results are other ones in every step: their numbers are the run's,
// not those of the file's seed.
var randoms = map[string]operator{
	"RandomUniform":     {build: drawn(uniform, stated), random: true},
	"RandomUniformLike": {build: drawn(uniform, likeOf), random: true},
	"RandomNormal":      {build: drawn(normal, stated), random: true},
	"RandomNormalLike":  {build: drawn(normal, likeOf), random: true},
	"Bernoulli":         {build: bernoulli, random: true},
}

// stated is a type by attributes.
func stated(n *node) graph.Type { return tensor.Of(typed(n.int("dtype", 1)), n.list("shape")...) }

// likeOf is the type of operand 0, of other elements if an attribute says so.
func likeOf(n *node) graph.Type {
	t := n.x(0).Type()
	if v := n.int("dtype", 0); v != 0 {
		t.DType = typed(v)
	}
	return t
}

// drawn are numbers of a type.
func drawn(f func(n *node, t graph.Type) value, of func(n *node) graph.Type) func(n *node) {
	return func(n *node) {
		n.float("seed", 0)
		t := of(n)
		n.give(ops.Cast(f(n, tensor.Of(graph.F32, t.Sizes()...)), t.DType))
	}
}

func uniform(n *node, t graph.Type) value {
	lo, hi := n.float("low", 0), n.float("high", 1)
	u := ops.RandomUniform(n.b.ctx.Seed(), t, n.b.ctx.Noise("uniform"))
	return ops.AddScalar(ops.Scale(u, hi-lo), lo)
}

func normal(n *node, t graph.Type) value {
	mean, scale := n.float("mean", 0), n.float("scale", 1)
	z := ops.RandomNormal(n.b.ctx.Seed(), t, n.b.ctx.Noise("normal"))
	return ops.AddScalar(ops.Scale(z, scale), mean)
}

// bernoulli is 1 with the probability of an element.
func bernoulli(n *node) {
	n.float("seed", 0)
	p := ops.Cast(n.x(0), graph.F32)
	u := ops.RandomUniform(n.b.ctx.Seed(), p.Type(), n.b.ctx.Noise("bernoulli"))
	n.give(ops.Cast(ops.Less(u, p), likeOf(n).DType))
}
