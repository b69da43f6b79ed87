package onnx

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// norms are operators that scale elements by what is around them.
var norms = each(map[string]func(n *node){
	"Softmax": softmax(ops.Softmax), "LogSoftmax": softmax(ops.LogSoftmax),
	"Hardmax":            softmax(hardmax),
	"LayerNormalization": layerNorm, "RMSNormalization": rmsNorm,
	"GroupNormalization": groupNorm, "InstanceNormalization": instanceNorm,
	"BatchNormalization": batchNorm, "LpNormalization": lpNorm, "LRN": localResponse,
	"MeanVarianceNormalization": meanVariance,
})

// along is a function of rows along another axis than the last.
func along(x value, a int, f unary) value {
	last := x.Type().Rank() - 1
	if a == last {
		return f(x)
	}
	perm := swapped(a, last)
	return ops.Transpose(f(ops.Transpose(x, perm...)), perm...)
}

// swapped is the permutation that exchanges an axis with the last one.
func swapped(a, last int) []int {
	perm := make([]int, last+1)
	for i := range perm {
		perm[i] = i
	}
	perm[a], perm[last] = last, a
	return perm
}

// moved is the permutation that puts an axis at another place.
func moved(from, to, rank int) []int {
	perm := make([]int, 0, rank)
	for i := range rank {
		if i != from {
			perm = append(perm, i)
		}
	}
	return slices.Insert(perm, to, from)
}

// softmax is along an axis; before version 13 it is over that and all that follow.
func softmax(f unary) func(n *node) {
	return func(n *node) {
		x := n.wide(0)
		rank, sizes := x.Type().Rank(), x.Type().Sizes()
		if n.version() >= 13 {
			n.give(n.narrow(along(x, axis(n.int("axis", -1), rank), f)))
			return
		}
		a := axis(n.int("axis", 1), rank)
		y := f(ops.ReshapeSizes(x, elems(sizes[:a]), elems(sizes[a:])))
		n.give(n.narrow(ops.ReshapeSizes(y, sizes...)))
	}
}

// hardmax is 1 at the first of the largest elements of a row.
func hardmax(x value) value {
	return ops.OneHot(ops.ArgMax(x, -1), x.Type().Size(-1))
}

// exact refuses that a norm computes in other numbers than f32, which 1 stands for.
func exact(n *node) {
	if s := n.int("stash_type", 1); s != 1 {
		fail("stash_type is %d: want 1, for it computes in f32", s)
	}
}

// rowsOf are x with all axes from the one of the attribute on joined, and that axis.
func rowsOf(n *node, x value) (flat value, from int) {
	sizes := x.Type().Sizes()
	from = axis(n.int("axis", -1), len(sizes))
	return ops.ReshapeSizes(x, elems(sizes[:from]), elems(sizes[from:])), from
}

// row is a weight of a norm as one row of sizes.
func row(w value, sizes []int) value {
	if !slices.Equal(w.Type().Sizes(), sizes) {
		w = ops.BroadcastTo(w, sizes...)
	}
	return ops.ReshapeSizes(w, elems(sizes))
}

func layerNorm(n *node) {
	exact(n)
	x, eps := n.wide(0), n.float("epsilon", 1e-5)
	flat, from := rowsOf(n, x)
	sizes := x.Type().Sizes()
	scale := row(n.wide(1), sizes[from:])
	bias := ops.Zeros(n.b.g, scale.Type())
	if n.has(2) {
		bias = row(n.wide(2), sizes[from:])
	}
	y := ops.LayerNorm(flat, scale, bias, eps)
	n.give(n.narrow(ops.ReshapeSizes(y, sizes...)))
	if !n.wants(1) && !n.wants(2) {
		return
	}
	kept := slices.Clone(sizes)
	for i := from; i < len(kept); i++ {
		kept[i] = 1
	}
	mean := meanKeep(flat, 1)
	variance := ops.Mean(ops.Square(ops.Sub(flat, mean)), 1)
	n.give(ops.ReshapeSizes(mean, kept...),
		ops.ReshapeSizes(ops.Rsqrt(ops.AddScalar(variance, eps)), kept...))
}

// meanKeep is a mean whose axes stay, of size 1.
func meanKeep(x value, axes ...int) value {
	y := ops.SumKeep(x, axes...)
	return ops.Scale(y, 1/float32(x.Type().Elems()/max(1, y.Type().Elems())))
}

func rmsNorm(n *node) {
	exact(n)
	x, eps := n.wide(0), n.float("epsilon", 1e-5)
	flat, from := rowsOf(n, x)
	sizes := x.Type().Sizes()
	y := ops.RMSNorm(flat, row(n.wide(1), sizes[from:]), eps)
	n.give(n.narrow(ops.ReshapeSizes(y, sizes...)))
}

// grouped normalises groups of channels, each alone.
func grouped(x value, groups int, eps float32) value {
	sizes := x.Type().Sizes()
	if len(sizes) < 2 || groups < 1 || sizes[1]%groups != 0 {
		fail("%d groups of channels of %s", groups, x.Type())
	}
	batch := sizes[0] * groups
	flat := ops.ReshapeSizes(x, batch, elems(sizes)/max(1, batch))
	t := tensor.Of(graph.F32, flat.Type().Size(1))
	y := ops.LayerNorm(flat, ops.Ones(x.Graph(), t), ops.Zeros(x.Graph(), t), eps)
	return ops.ReshapeSizes(y, sizes...)
}

// channels is a weight of every channel as one that broadcasts.
func channels(w value, rank int) value {
	sizes := make([]int, rank-1)
	for i := range sizes {
		sizes[i] = 1
	}
	sizes[0] = w.Type().Elems()
	return ops.ReshapeSizes(w, sizes...)
}

// groupNorm has a weight of every channel, and before version 21 of every group.
func groupNorm(n *node) {
	exact(n)
	x, groups := n.wide(0), n.int("num_groups", 0)
	y := grouped(x, groups, n.float("epsilon", 1e-5))
	scale, bias := n.wide(1), n.wide(2)
	if n.version() < 21 {
		each := x.Type().Size(1) / groups
		scale, bias = ops.Repeat(scale, 0, each), ops.Repeat(bias, 0, each)
	}
	n.give(n.narrow(scaled(y, scale, bias)))
}

func instanceNorm(n *node) {
	x := n.wide(0)
	if x.Type().Rank() < 2 {
		fail("%s has no channels", x.Type())
	}
	y := grouped(x, x.Type().Size(1), n.float("epsilon", 1e-5))
	n.give(n.narrow(scaled(y, n.wide(1), n.wide(2))))
}

func scaled(x, scale, bias value) value {
	rank := x.Type().Rank()
	return ops.Add(ops.Mul(x, channels(scale, rank)), channels(bias, rank))
}

// batchNorm uses the batch's statistics where the file says that it trains, and the pass does,
// too; then it moves the averages, where these are the file's and not frozen.
func batchNorm(n *node) {
	x, eps, momentum := n.wide(0), n.float("epsilon", 1e-5), n.float("momentum", 0.9)
	if !n.flag("spatial", true) {
		fail("spatial is 0: means of every element, not of every channel, are not known")
	}
	n.list("consumed_inputs") // a hint of version 1
	train := n.flag("training_mode", false)
	if n.version() < 14 {
		train = !n.flag("is_test", true) || len(n.Out) > 1
	}
	if n.b.normed[n.Node] {
		n.give(n.x(0))
		return
	}
	scale, bias, mean, variance := n.wide(1), n.wide(2), n.wide(3), n.wide(4)
	if x.Type().Rank() < 2 {
		fail("operand 0 is %s, which has no channels", x.Type())
	}
	for i, v := range []value{scale, bias, mean, variance} {
		if t := v.Type(); t.Rank() != 1 || t.Size(0) != x.Type().Size(1) {
			fail("operand %d is %s: want a number of each of %d channels", i+1, t, x.Type().Size(1))
		}
	}
	if !train || !n.b.ctx.Training() {
		y := ops.BatchNormInference(x, scale, bias, mean, variance, eps)
		n.give(n.narrow(y), n.x(3), n.x(4))
		return
	}
	y, m, v := ops.BatchNorm(x, scale, bias, eps)
	n.give(n.narrow(y), averaged(n, 3, m, momentum), averaged(n, 4, v, momentum))
	if n.version() < 14 {
		n.give(m, v)
	}
}

// averaged is operand i moved towards the batch's.
func averaged(n *node, i int, to value, momentum float32) value {
	average := n.wide(i)
	if w := n.in[i].weight; w != nil && !n.b.net.frozen(w.Name) {
		n.b.ctx.Update(ops.RunningAverage(average, to, momentum))
	}
	y := ops.Add(ops.Scale(average, momentum), ops.Scale(to, 1-momentum))
	return ops.Cast(y, n.x(i).Type().DType)
}

// lpNorm leaves rows of zeros as they are.
func lpNorm(n *node) {
	x := n.wide(0)
	a, p := axis(n.int("axis", -1), x.Type().Rank()), n.int("p", 2)
	if p != 1 && p != 2 {
		fail("p is %d: want 1 or 2", p)
	}
	var norm value
	if p == 1 {
		norm = ops.SumKeep(ops.Abs(x), a)
	} else {
		norm = ops.SumKeep(ops.Square(x), a)
	}
	empty := ops.Equal(norm, like(norm, 0))
	norm = ops.Where(empty, like(norm, 1), norm)
	if p == 2 {
		norm = ops.Sqrt(norm)
	}
	n.give(n.narrow(ops.Div(x, norm)))
}

func meanVariance(n *node) {
	x, axes := n.wide(0), n.list("axes")
	if axes == nil {
		axes = []int{0, 2, 3}
	}
	d := ops.Sub(x, meanKeep(x, axes...))
	deviation := ops.Sqrt(meanKeep(ops.Square(d), axes...))
	n.give(n.narrow(ops.Div(d, ops.AddScalar(deviation, 1e-9))))
}

// localResponse divides by a power of the squares of some channels around.
func localResponse(n *node) {
	alpha, beta, bias := n.float("alpha", 1e-4), n.float("beta", 0.75), n.float("bias", 1)
	x, size := n.wide(0), n.int("size", 0)
	if size < 1 || x.Type().Rank() < 2 {
		fail("%d channels of %s", size, x.Type())
	}
	many := x.Type().Size(1)
	squares := ops.Pad(ops.Square(x), 1, (size-1)/2, size/2)
	sum := ops.Slice(squares, 1, 0, many)
	for i := 1; i < size; i++ {
		sum = ops.Add(sum, ops.Slice(squares, 1, i, i+many))
	}
	by := ops.PowScalar(ops.AddScalar(ops.Scale(sum, alpha/float32(size)), bias), -beta)
	n.give(n.narrow(ops.Mul(x, by)))
}
