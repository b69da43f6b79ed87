package randgraph

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
)

// draw is one way to grow a graph.
type draw struct {
	name string
	make func(b *wide) []graph.Value
}

// draws are all of them; those of which there is more to find come more than once.
func draws() []draw {
	return []draw{{"narrow", narrow}, {"narrow", narrow}, {"sample", sample}, {"sample", sample},
		{"sample", sample}, {"sample", sample}, {"sample", sample}, {"sample", sample},
		{"sample", sample}, {"sample", sample}, {"sample", sample}, {"sample", sample},
		{"function", function}, {"binary", binary}, {"compared", compared},
		{"reduce", reduce}, {"extreme", extreme}, {"rows", rows}, {"cumulated", cumulated},
		{"product", product}, {"product", product}, {"conv", conv}, {"conv", conv},
		{"pool", pooled}, {"resized", resized}, {"norm", norm}, {"norm", norm},
		{"batchnorm", batchNorm}, {"table", table}, {"moved", moved}, {"indexed", indexed},
		{"placed", placed}, {"joined", joined}, {"cast", converted}, {"masked", masked},
		{"loss", losses}, {"ctc", ctc}, {"lstm", lstm}, {"experts", experts},
		{"routed", routed},
		{"chance", chance}, {"slope", slope}, {"slope", slope},
		{"average", average},
		{"running", running}, {"cache", cached}, {"kept", computed}}
}

// one is a list of one value.
func one(v graph.Value) []graph.Value { return []graph.Value{v} }

// narrow is some of what Random draws, with collectives if there are any.
func narrow(b *wide) []graph.Value {
	n := &builder{g: b.g, pick: b.pick, rows: 2 * b.size(2), cols: b.size(5), seed: b.seed,
		kinds: ownKinds, sent: 10 * b.made}
	if b.joint {
		n.kinds = jointlyToo
	}
	n.values = one(b.of(n.rows, n.cols))
	defer b.g.Scope("own")()
	n.variable()
	for i := range b.size(3) {
		n.grow(10*b.made + i)
	}
	b.vars = append(b.vars, n.vars...)
	return one(n.values[len(n.values)-1])
}

// functions take any element.
func functions() []func(graph.Value) graph.Value {
	return []func(graph.Value) graph.Value{ops.Neg, ops.Square, ops.Abs, ops.Relu, ops.Gelu,
		ops.GeluTanh, ops.Silu, ops.Sigmoid, ops.LogSigmoid, ops.Softplus, ops.Sin, ops.Cos,
		ops.Erf,
		ops.Floor, ops.Ceil, ops.Trunc, ops.Round, ops.Sign, ops.StopGradient, ops.IsNaN,
		func(x graph.Value) graph.Value { return ops.Clip(x, -0.5, 0.75) },
		func(x graph.Value) graph.Value { return ops.ClippedRelu(x, 0.75) },
		func(x graph.Value) graph.Value { return ops.Exp(ops.Tanh(x)) },
		func(x graph.Value) graph.Value { return ops.Expm1(ops.Tanh(x)) }}
}

// positives take positive elements only.
func positives() []func(graph.Value) graph.Value {
	return []func(graph.Value) graph.Value{ops.Log, ops.Log1p, ops.Sqrt, ops.Rsqrt, ops.Reciprocal,
		func(x graph.Value) graph.Value { return ops.PowScalar(x, 1.5) }}
}

func function(b *wide) []graph.Value {
	if b.pick(4) == 0 {
		all := positives()
		return one(all[b.pick(len(all))](b.positive(b.sizes(0, 4, 5)...)))
	}
	all := functions()
	return one(all[b.pick(len(all))](b.of(b.sizes(0, 4, 5)...)))
}

// broadcasting are the sizes of two operands that broadcast.
func (b *wide) broadcasting() (all, some []int) {
	all = b.sizes(0, 4, 5)
	for _, n := range all[b.pick(len(all)+1):] {
		if b.pick(3) == 0 {
			n = 1
		}
		some = append(some, n)
	}
	return all, some
}

func binary(b *wide) []graph.Value {
	sizes, other := b.broadcasting()
	if b.pick(2) == 0 {
		sizes, other = other, sizes
	}
	x := b.of(sizes...)
	switch b.pick(8) {
	case 0:
		return one(ops.Sub(x, b.of(other...)))
	case 1:
		return one(ops.Div(x, b.positive(other...)))
	case 2:
		return one(ops.Maximum(x, b.of(other...)))
	case 3:
		return one(ops.Minimum(x, b.of(other...)))
	case 4:
		return one(ops.Weigh(x, ops.Relu(b.of(other...))))
	case 5:
		return one(ops.Pow(b.positive(sizes...), b.of(other...)))
	case 6:
		return one(ops.Add(x, b.of(other...)))
	}
	return one(ops.Mul(x, b.of(other...)))
}

func compared(b *wide) []graph.Value {
	sizes, other := b.broadcasting()
	pairs := []func(x, y graph.Value) graph.Value{ops.Equal, ops.NotEqual, ops.Less, ops.LessEqual,
		ops.Greater, ops.GreaterEqual}
	truth := pairs[b.pick(len(pairs))](b.of(sizes...), b.of(other...))
	logic := []func(x, y graph.Value) graph.Value{ops.And, ops.Or, ops.Xor}
	truth = logic[b.pick(len(logic))](truth, ops.Not(b.choice(other...)))
	if len(sizes) > 0 && b.pick(3) == 0 {
		return []graph.Value{ops.Any(truth, b.pick(len(sizes))), ops.All(truth)}
	}
	return one(ops.Where(truth, b.of(other...), b.of(sizes...)))
}

// reduce adds up and the like over some axes.
func reduce(b *wide) []graph.Value {
	sizes := b.sizes(1, 4, 5)
	x := b.of(sizes...)
	axes := []int{b.pick(len(sizes))}
	if b.pick(3) == 0 {
		axes = nil
	}
	switch b.pick(7) {
	case 0:
		return one(ops.Sum(x, axes...))
	case 1:
		return one(ops.Mean(x, axes...))
	case 2:
		return one(ops.Prod(x, axes...))
	case 3:
		return one(ops.LogSumExp(x, axes...))
	case 4:
		return one(ops.SumKeep(x, axes...))
	case 5:
		return one(ops.SumSquares(x))
	}
	return one(ops.BroadcastTo(ops.Mean(x, axes...),
		append([]int{2}, ops.Mean(x, axes...).Type().Sizes()...)...))
}

// extreme finds the largest and the smallest, and where they are.
func extreme(b *wide) []graph.Value {
	sizes := b.sizes(1, 4, 6)
	x, along := b.of(sizes...), b.pick(len(sizes))
	switch b.pick(5) {
	case 0:
		return one(ops.Max(x, along))
	case 1:
		return one(ops.Min(x))
	case 2:
		return []graph.Value{ops.ArgMax(x, along), ops.ArgMin(x, along)}
	case 3:
		return one(ops.Max(ops.Cast(ops.Scale(x, 8), graph.I32), along))
	}
	values, at := ops.TopK(x, b.size(sizes[len(sizes)-1]))
	return []graph.Value{values, at}
}

// rows works on the last axis.
func rows(b *wide) []graph.Value {
	x := b.of(b.sizes(1, 4, 6)...)
	switch b.pick(4) {
	case 0:
		return one(ops.Softmax(x))
	case 1:
		return one(ops.LogSoftmax(x))
	case 2:
		return one(ops.MaskedSoftmax(x))
	}
	return one(ops.Rotary(b.of(2, b.size(3), 4), b.ids(50), ops.Rotation{}))
}

func cumulated(b *wide) []graph.Value {
	sizes := b.sizes(1, 3, 6)
	x, along := b.of(sizes...), b.pick(len(sizes))
	if b.pick(3) == 0 {
		return one(ops.CumSumExclusive(ops.Cast(ops.Scale(x, 8), graph.I32), along))
	}
	if b.pick(2) == 0 {
		return one(ops.CumSum(x, along))
	}
	return one(ops.CumSumExclusive(x, along))
}

// product multiplies matrices: batches that broadcast, and either operand transposed.
func product(b *wide) []graph.Value {
	batch, other := b.broadcasting()
	batch, other = batch[:min(len(batch), 2)], other[:min(len(other), 2)]
	if len(other) > 0 {
		other = batch // of equal batches, or without any
	}
	m, k, n := b.size(6), b.size(6), b.size(6)
	left, right := []int{m, k}, []int{k, n}
	at, bt := b.pick(2) == 0, b.pick(2) == 0
	if at {
		left = []int{k, m}
	}
	if bt {
		right = []int{n, k}
	}
	y := ops.MatMulT(b.of(append(batch[:len(batch):len(batch)], left...)...),
		b.of(append(other[:len(other):len(other)], right...)...), at, bt)
	if b.pick(2) == 0 {
		y = ops.Tanh(ops.Add(y, b.weight(n)))
	}
	return one(y)
}

// slope is the gradient of a smooth function of values by one of them.
func slope(b *wide) []graph.Value {
	n, d := b.size(4), b.size(5)
	x := b.of(n, d)
	y := ops.Tanh(ops.MatMul(x, b.weight(d, d)))
	switch b.pick(6) {
	case 0:
		y = ops.LayerNormOver(y, b.weight(d), b.weight(d), 1, 1e-3)
	case 1:
		y = ops.Softmax(ops.Add(y, x))
	case 2:
		y = ops.Mul(ops.Silu(y), ops.Sigmoid(x))
	case 3:
		images := ops.ReshapeSizes(y, 1, 1, n, d)
		y = ops.Conv2D(images, b.weight(2, 1, 1, 1), ops.Conv{})
	case 4:
		y = ops.Concat(0, ops.Slice(y, 1, 0, 1), ops.Slice(x, 1, 0, 1))
	}
	out := autodiff.Grad(ops.Sum(ops.Square(y)), x)[0]
	if b.pick(2) == 0 { // its size: a penalty
		out = ops.Sqrt(ops.AddScalar(ops.SumSquares(out), 1))
	}
	return one(out)
}

// chance draws values and drops some.
func chance(b *wide) []graph.Value {
	x := b.of(b.sizes(1, 3, 6)...)
	switch b.pick(4) {
	case 0:
		return one(ops.Dropout(x, b.seed, 0.25, b.name(), b.pick(x.Type().Rank())))
	case 1:
		return one(ops.Jitter(x, b.seed, 0.25, b.name()))
	case 2:
		return one(ops.Mul(x, ops.RandomUniform(b.seed, x.Type(), b.name())))
	}
	return one(ops.Add(x, ops.RandomNormal(b.seed, x.Type(), b.name())))
}

// converted goes through other types and back.
func converted(b *wide) []graph.Value {
	x := b.of(b.sizes(0, 3, 6)...)
	types := []graph.DType{graph.BF16, graph.F16, graph.F64, graph.I32, graph.I64, graph.U8,
		graph.Bool}
	to := types[b.pick(len(types))]
	y := ops.Cast(ops.Scale(x, 4), to)
	switch b.pick(3) {
	case 0:
		y = ops.Cast(y, types[b.pick(len(types))])
	case 1:
		if n := y.Type().Rank(); n > 1 {
			order := b.rng.Perm(n)
			y = ops.Transpose(y, order...)
		}
	}
	return one(y)
}
