package main

import (
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// filled is a value whose elements f gives.
func filled(f func(i int) float32, sizes ...int) tensor.View {
	v := tensor.New(tensor.Of(graph.F32, sizes...))
	for i := range v.F32() {
		v.F32()[i] = f(i)
	}
	return v
}

// normals are random numbers.
func normals(seed uint64, sizes ...int) tensor.View {
	rng := newRand(seed)
	return filled(func(int) float32 { return float32(rng.NormFloat64()) }, sizes...)
}

// positives are random numbers above zero.
func positives(seed uint64, sizes ...int) tensor.View {
	rng := newRand(seed)
	return filled(func(int) float32 { return 0.2 + 2*rng.Float32() }, sizes...)
}

// ties are small whole numbers, many of them equal, and zero among them.
func ties(seed uint64, sizes ...int) tensor.View {
	rng := newRand(seed)
	return filled(func(int) float32 { return float32(rng.IntN(5) - 2) }, sizes...)
}

// indices are numbers below n.
func indices(seed uint64, n int, sizes ...int) tensor.View {
	rng, v := newRand(seed), tensor.New(tensor.Of(graph.I32, sizes...))
	for i := range v.I32() {
		v.I32()[i] = int32(rng.IntN(n))
	}
	return v
}

// truths are truth values.
func truths(seed uint64, sizes ...int) tensor.View {
	rng, v := newRand(seed), tensor.New(tensor.Of(graph.U8, sizes...))
	for i := range v.Data {
		v.Data[i] = byte(rng.IntN(2))
	}
	return v
}

// odd are numbers at which functions may do as they like, and others beside them.
func odd() tensor.View {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	return tensor.FromF32([]float32{nan, inf, -inf, 0, float32(math.Copysign(0, -1)), 1, -1, 0.5,
		-0.5, 1.5, 2.5, -2.5, 3, 1e-3, -1e-3, 88, -88, 1e-30, 1e30, -1e30}, 20)
}

type values = []graph.Value

func operations() []operation {
	var list []operation
	for _, part := range [][]operation{functionOperations(), pairOperations(),
		reductionOperations(), movingOperations(), productOperations(),
		lossOperations(), sequenceOperations(), scatterOperations(),
		spatialOperations(), gridOperations()} {
		list = append(list, part...)
	}
	return list
}

// functionOperations are of one operand, element by element, each on numbers that are
// easy and on the odd ones.
func functionOperations() []operation {
	var list []operation
	for _, f := range []struct {
		expression string
		f          func(graph.Value) graph.Value
		easy       func(uint64, ...int) tensor.View
	}{
		{"torch.abs(x[0])", ops.Abs, normals}, {"torch.sign(x[0])", ops.Sign, ties},
		{"torch.floor(x[0])", ops.Floor, normals}, {"torch.ceil(x[0])", ops.Ceil, normals},
		{"torch.trunc(x[0])", ops.Trunc, normals}, {"torch.round(x[0])", ops.Round, normals},
		{"torch.reciprocal(x[0])", ops.Reciprocal, positives},
		{"torch.sin(x[0])", ops.Sin, normals}, {"torch.cos(x[0])", ops.Cos, normals},
		{"torch.erf(x[0])", ops.Erf, normals}, {"torch.log1p(x[0])", ops.Log1p, positives},
		{"torch.expm1(x[0])", ops.Expm1, normals}, {"F.softplus(x[0])", ops.Softplus, normals},
		{"F.logsigmoid(x[0])", ops.LogSigmoid, normals}, {"F.silu(x[0])", ops.Silu, normals},
		{"torch.clamp(x[0], -0.5, 2)", func(x graph.Value) graph.Value {
			return ops.Clip(x, -0.5, 2)
		}, ties},
		{"torch.pow(x[0], 2.5)", power(2.5), positives},
		{"torch.pow(x[0], -2)", power(-2), positives},
		{"torch.pow(x[0], 3)", power(3), normals}, {"torch.pow(x[0], 4)", power(4), ties},
		{"torch.pow(x[0], 0.5)", power(0.5), positives},
		{"torch.pow(x[0], 0)", power(0), normals},
	} {
		build := func(in values) graph.Value { return f.f(in[0]) }
		list = append(list, operation{expression: f.expression, build: build,
			in: []tensor.View{f.easy(1, 3, 7)}})
		list = append(list, operation{expression: f.expression + ".detach()",
			build: func(in values) graph.Value { return ops.StopGradient(f.f(in[0])) },
			in:    []tensor.View{odd()}})
	}
	return list
}

func power(p float32) func(graph.Value) graph.Value {
	return func(x graph.Value) graph.Value { return ops.PowScalar(x, p) }
}

// pairOperations have two operands or three, which broadcast.
func pairOperations() []operation {
	var list []operation
	for _, f := range []struct {
		expression string
		f          func(a, b graph.Value) graph.Value
		left       func(uint64, ...int) tensor.View
	}{
		{"torch.maximum(x[0], x[1])", ops.Maximum, ties},
		{"torch.minimum(x[0], x[1])", ops.Minimum, ties},
		{"torch.pow(x[0], x[1])", ops.Pow, positives}, {"x[0] == x[1]", ops.Equal, ties},
		{"x[0] != x[1]", ops.NotEqual, ties}, {"x[0] < x[1]", ops.Less, ties},
		{"x[0] <= x[1]", ops.LessEqual, ties}, {"x[0] > x[1]", ops.Greater, ties},
		{"x[0] >= x[1]", ops.GreaterEqual, ties},
	} {
		build := func(in values) graph.Value { return f.f(in[0], in[1]) }
		for _, in := range [][]tensor.View{
			{f.left(1, 3, 5), ties(2, 3, 5)}, {f.left(1, 2, 1, 4), ties(2, 3, 1)},
			{f.left(1), ties(2, 2, 3)}, {f.left(1, 2, 3), ties(2)},
		} {
			list = append(list, operation{expression: f.expression, build: build, in: in})
		}
		column := odd()
		column.Type = tensor.Of(graph.F32, 20, 1)
		list = append(list, operation{expression: "(" + f.expression + ").detach()",
			build: func(in values) graph.Value { return ops.StopGradient(build(in)) },
			in:    []tensor.View{odd(), column}})
	}
	where := func(in values) graph.Value { return ops.Where(in[0], in[1], in[2]) }
	for _, in := range [][]tensor.View{
		{truths(1, 3, 5), normals(2, 3, 5), normals(3, 3, 5)},
		{truths(1, 2, 1, 5), normals(2, 3, 1), normals(3, 5)},
		{truths(1, 5), normals(2), normals(3, 3, 5)},
	} {
		list = append(list, operation{expression: "torch.where(x[0], x[1], x[2])", build: where,
			in: in})
	}
	for expression, f := range map[string]func(a, b graph.Value) graph.Value{
		"x[0] & x[1]": ops.And, "x[0] | x[1]": ops.Or, "x[0] ^ x[1]": ops.Xor,
		"~(x[0] & x[1])": func(a, b graph.Value) graph.Value { return ops.Not(ops.And(a, b)) },
	} {
		list = append(list, operation{expression: expression,
			build: func(in values) graph.Value { return f(in[0], in[1]) },
			in:    []tensor.View{truths(1, 3, 17), truths(2, 17)}})
	}
	return append(list, operation{expression: "torch.isnan(x[0])",
		build: func(in values) graph.Value { return ops.IsNaN(in[0]) }, in: []tensor.View{odd()}})
}

// reductionOperations drop axes, or go along one.
func reductionOperations() []operation {
	nan := ties(7, 4, 5)
	nan.F32()[3], nan.F32()[11] = float32(math.NaN()), float32(math.NaN())
	one := func(expression string, x tensor.View, f func(graph.Value) graph.Value) operation {
		return operation{expression: expression, in: []tensor.View{x},
			build: func(in values) graph.Value { return f(in[0]) }}
	}
	type v = graph.Value
	zeros := ties(5, 3, 4, 2)
	none := filled(func(int) float32 { return float32(math.Inf(-1)) }, 2, 3)
	some := ties(6, 2, 3)
	some.F32()[0], some.F32()[4] = float32(math.Inf(-1)), float32(math.Inf(1))
	return []operation{
		one("x[0].amax(1)", ties(1, 3, 9), func(x v) v { return ops.Max(x, 1) }),
		one("x[0].amax((0, 2))", ties(1, 3, 4, 5), func(x v) v { return ops.Max(x, 0, -1) }),
		one("x[0].amax((0, 1, 2))", ties(1, 3, 4, 5), func(x v) v { return ops.Max(x) }),
		one("x[0].amin(0)", ties(1, 9, 3), func(x v) v { return ops.Min(x, 0) }),
		one("x[0].amin((1, 2))", ties(2, 3, 4, 5), func(x v) v { return ops.Min(x, 2, 1) }),
		one("x[0].amax(1).detach()", nan, func(x v) v { return ops.StopGradient(ops.Max(x, 1)) }),
		one("x[0].amin(0).detach()", nan, func(x v) v { return ops.StopGradient(ops.Min(x, 0)) }),
		one("x[0].amax(0)", indices(1, 9, 7, 3), func(x v) v { return ops.Max(x, 0) }),
		one("x[0].argmax(1)", nan, func(x v) v { return ops.ArgMax(x, 1) }),
		one("x[0].argmin(0)", nan, func(x v) v { return ops.ArgMin(x, 0) }),
		one("x[0].argmax(1)", indices(3, 3, 4, 9, 2), func(x v) v { return ops.ArgMax(x, 1) }),
		one("x[0].any(1)", truths(1, 5, 3), func(x v) v { return ops.Any(x, 1) }),
		one("x[0].all(0)", truths(1, 2, 9), func(x v) v { return ops.All(x, 0) }),
		one("x[0].prod(1)", normals(4, 3, 6), func(x v) v { return ops.Prod(x, 1) }),
		one("x[0].prod(1)", zeros, func(x v) v { return ops.Prod(x, 1) }),
		one("x[0].prod()", normals(4, 2, 3), func(x v) v { return ops.Prod(x) }),
		one("x[0].prod(0).prod(1)", normals(4, 2, 3, 3), func(x v) v { return ops.Prod(x, 0, 2) }),
		one("x[0].cumsum(1)", normals(1, 3, 300), func(x v) v { return ops.CumSum(x, 1) }),
		one("x[0].cumsum(0)", normals(1, 5, 4), func(x v) v { return ops.CumSum(x, -2) }),
		one("x[0].cumsum(1)", indices(1, 9, 2, 5, 3), func(x v) v { return ops.CumSum(x, 1) }),
		one("F.pad(x[0].cumsum(1)[:, :-1], (1, 0))", normals(1, 3, 5), func(x v) v {
			return ops.CumSumExclusive(x, 1)
		}),
		one("x[0].logsumexp(1)", normals(1, 3, 9), func(x v) v { return ops.LogSumExp(x, 1) }),
		one("x[0].logsumexp((0, 2))", normals(1, 3, 4, 5), func(x v) v {
			return ops.LogSumExp(x, 0, 2)
		}),
		one("x[0].logsumexp(0)", normals(1, 3, 4), func(x v) v { return ops.LogSumExp(x, 0) }),
		one("x[0].logsumexp(1).detach()", none, func(x v) v {
			return ops.StopGradient(ops.LogSumExp(x, 1))
		}),
		one("x[0].logsumexp(1).detach()", some, func(x v) v {
			return ops.StopGradient(ops.LogSumExp(x, 1))
		}),
	}
}

// movingOperations put elements elsewhere.
func movingOperations() []operation {
	type v = graph.Value
	one := func(expression string, x tensor.View, f func(graph.Value) graph.Value) operation {
		return operation{expression: expression, in: []tensor.View{x},
			build: func(in values) graph.Value { return f(in[0]) }}
	}
	two := func(expression string, x, y tensor.View, f func(a, b v) v) operation {
		return operation{expression: expression, in: []tensor.View{x, y},
			build: func(in values) graph.Value { return f(in[0], in[1]) }}
	}
	return []operation{
		one("x[0][1:7:2]", normals(1, 8, 3), func(x v) v { return ops.SliceStep(x, 0, 1, 7, 2) }),
		one("x[0][:, 2:99:3]", normals(1, 3, 10), func(x v) v {
			return ops.SliceStep(x, 1, 2, 99, 3)
		}),
		one("x[0][:, :, 1:3]", normals(1, 2, 3, 4), func(x v) v {
			return ops.SliceStep(x, -1, 1, 3, 1)
		}),
		one("x[0].flip(0, 1, 2)", normals(1, 2, 3, 4), func(x v) v { return ops.Reverse(x) }),
		one("x[0].flip(1)", normals(1, 2, 3, 4), func(x v) v { return ops.Reverse(x, 1) }),
		one("x[0].tile(2, 3)", normals(1, 2, 5), func(x v) v { return ops.Tile(x, 2, 3) }),
		one("x[0].tile(2, 1, 2)", normals(1, 3, 2), func(x v) v { return ops.Tile(x, 2, 1, 2) }),
		one("x[0].tile(3)", indices(1, 9, 2, 4), func(x v) v { return ops.Tile(x, 3) }),
		one("x[0].repeat_interleave(3, 1)", normals(1, 2, 4, 5), func(x v) v {
			return ops.Repeat(x, 1, 3)
		}),
		one("x[0].repeat_interleave(2, 1)", truths(1, 2, 4), func(x v) v {
			return ops.Repeat(x, -1, 2)
		}),
		one("x[0].tril()", normals(1, 5, 4), func(x v) v { return ops.Tril(x, 0) }),
		one("x[0].tril(-2)", normals(1, 2, 3, 6), func(x v) v { return ops.Tril(x, -2) }),
		one("x[0].triu(1)", normals(1, 2, 3, 6), func(x v) v { return ops.Triu(x, 1) }),
		one("x[0].triu(-9)", truths(1, 3, 6), func(x v) v { return ops.Triu(x, -9) }),
		one("x[0].reshape(2, -1, 3)", normals(1, 4, 6), func(x v) v {
			return ops.ReshapeSizes(x, 2, -1, 3)
		}),
		one("x[0].unsqueeze(1).unsqueeze(-1)", normals(1, 4, 6), func(x v) v {
			return ops.ExpandDims(x, 1, -1)
		}),
		one("x[0].squeeze()", normals(1, 1, 6, 1), func(x v) v { return ops.Squeeze(x) }),
		one("x[0].expand(3, 2, 4)", indices(1, 9, 2, 1), func(x v) v {
			return ops.BroadcastTo(x, 3, 2, 4)
		}),
		two("x[0].index_select(1, x[1])", normals(1, 3, 4, 2), indices(2, 4, 6), func(a, b v) v {
			return ops.Take(a, b, 1)
		}),
		two("x[0][x[1]]", normals(1, 4, 2), indices(2, 4, 2, 3), func(a, b v) v {
			return ops.Take(a, b, 0)
		}),
		two("x[0][x[1]]", normals(1, 4, 2), indices(2, 4, 7), ops.Reorder),
		two("x[0].gather(1, x[1])", normals(1, 3, 4, 2), indices(2, 4, 2, 6, 2), func(a, b v) v {
			return ops.Gather(a, b, 1)
		}),
		two("x[0].gather(0, x[1])", normals(1, 4, 3), indices(2, 4, 5, 2), func(a, b v) v {
			return ops.Gather(a, b, 0)
		}),
		{expression: "x[0].scatter_add(1, x[1], x[2])",
			in:    []tensor.View{normals(1, 3, 4), indices(2, 4, 2, 9), normals(3, 2, 9)},
			build: func(in values) v { return ops.ScatterAdd(in[0], in[1], in[2], 1) }},
		{expression: "x[0].scatter_add(0, x[1], x[2])",
			in:    []tensor.View{normals(1, 4, 5), indices(2, 4, 6, 4), normals(3, 6, 4)},
			build: func(in values) v { return ops.ScatterAdd(in[0], in[1], in[2], 0) }},
	}
}

// productOperations are matrix products whose batches broadcast.
func productOperations() []operation {
	var list []operation
	for _, in := range [][]tensor.View{
		{normals(1, 2, 3, 4, 5), normals(2, 2, 1, 5, 6)},
		{normals(1, 3, 4, 5), normals(2, 1, 5, 2)},
		{normals(1, 2, 1, 4, 5), normals(2, 3, 5, 2)},
		{normals(1, 1, 4, 5), normals(2, 3, 2, 5, 2)},
		{normals(1, 4, 5), normals(2, 3, 5, 2)},
		{normals(1, 2, 3, 4, 5), normals(2, 1, 3, 5, 6)},
	} {
		list = append(list, operation{expression: "x[0] @ x[1]", in: in,
			build: func(in values) graph.Value { return ops.MatMul(in[0], in[1]) }})
	}
	turned := []tensor.View{normals(1, 2, 1, 5, 4), normals(2, 2, 3, 6, 5)}
	return append(list, operation{expression: "x[0].transpose(2, 3) @ x[1].transpose(2, 3)",
		in:    turned,
		build: func(in values) graph.Value { return ops.MatMulT(in[0], in[1], true, true) }})
}

// lossOperations are those that are one operation because they are computed often.
func lossOperations() []operation {
	const cell = "(lambda i, j, f, o: (lambda c: o.sigmoid() * c.tanh() + 0.5 * c)" +
		"((f + 1).sigmoid() * x[1] + i.sigmoid() * j.tanh()))(*x[0].chunk(4, 1))"
	labels := indices(2, 7, 2, 5)
	labels.I32()[3], labels.I32()[6] = -100, -100
	ignoring := func(ignore int, smoothing float32) func(in values) graph.Value {
		return func(in values) graph.Value {
			weights := append(in, graph.Value{})[2]
			losses, counts := ops.CrossEntropyIgnoring(in[0], in[1], weights, ignore, smoothing)
			return ops.Div(ops.Sum(losses), ops.Sum(counts))
		}
	}
	logits, weights := normals(1, 2, 5, 7), positives(3, 7)
	const flat = "F.cross_entropy(x[0].flatten(0, 1), x[1].flatten()"
	return []operation{
		{expression: flat + ", ignore_index=-100)", in: []tensor.View{logits, labels},
			build: ignoring(-100, 0)},
		{expression: flat + ", ignore_index=-100, label_smoothing=0.7)",
			in: []tensor.View{logits, labels}, build: ignoring(-100, 0.6)},
		{expression: flat + ", ignore_index=2)", in: []tensor.View{logits, indices(2, 7, 2, 5)},
			build: ignoring(2, 0)},
		{expression: flat + ", x[2].detach(), ignore_index=-100)", build: constantWeights(ignoring(
			-100, 0)), in: []tensor.View{logits, labels, weights}},
		{expression: flat + ", x[2].detach(), ignore_index=-100, label_smoothing=0.7)",
			build: constantWeights(ignoring(-100, 0.6)),
			in:    []tensor.View{logits, labels, weights}},
		{expression: "F.cross_entropy(x[0], x[1], reduction='none')",
			in: []tensor.View{normals(1, 4, 7), indices(2, 7, 4)},
			build: func(in values) graph.Value {
				return ops.CrossEntropy(in[0], in[1], 0)
			}},
		{expression: "F.cross_entropy(x[0], x[1], label_smoothing=0.7, reduction='none')",
			in: []tensor.View{normals(1, 4, 7), indices(2, 7, 4)},
			build: func(in values) graph.Value {
				return ops.CrossEntropy(in[0], in[1], 0.6) // 0.7·6/7, as 7 share PyTorch's
			}},
		{expression: cell, in: []tensor.View{normals(1, 3, 20), normals(2, 3, 5)},
			build: func(in values) graph.Value {
				h, next := ops.LSTMCell(in[0], in[1], 1)
				return ops.Add(h, ops.Scale(next, 0.5))
			}},
	}
}

// constantWeights passes no gradient to operand 2: PyTorch has none for weights.
func constantWeights(f func(in values) graph.Value) func(in values) graph.Value {
	return func(in values) graph.Value {
		return f(values{in[0], in[1], ops.StopGradient(in[2])})
	}
}

// sequenceOperations are those of positions in sequences.
func sequenceOperations() []operation {
	// c and s turn pairs a and b of elements, at positions 3, 4, … of 4 elements
	const angles = "(lambda w: (w.cos(), w.sin()))(torch.arange(3, 8).float()[:, None] * " +
		"10000 ** -(torch.arange(0, 6, 2) / 6))"
	const turned = "(lambda c, s, a, b: (a * c - b * s, b * c + a * s))(*" + angles + ", "
	start := tensor.FromI32([]int32{3})
	rotary := func(interleaved bool) func(in values) graph.Value {
		return func(in values) graph.Value {
			return ops.Rotary(in[0], in[1], ops.Rotation{Interleaved: interleaved})
		}
	}
	x := []tensor.View{normals(1, 2, 5, 6), start}
	return []operation{
		{expression: "torch.cat(" + turned + "*x[0].chunk(2, -1)), -1)", in: x,
			build: rotary(false)},
		{expression: "torch.stack(" + turned + "x[0][..., ::2], x[0][..., 1::2]), -1).flatten(-2)",
			in: x, build: rotary(true)},
		{expression: "x[0].index_copy(1, x[2] + torch.arange(2), x[1])",
			in:    []tensor.View{normals(1, 3, 6, 4), normals(2, 3, 2, 4), start},
			build: func(in values) graph.Value { return ops.PutAt(in[0], in[1], in[2], 1) }},
		{expression: "x[0].narrow(2, int(x[1]), 2)", in: []tensor.View{normals(1, 2, 3, 6), start},
			build: func(in values) graph.Value { return ops.SliceAt(in[0], in[1], 2, 2) }},
		{expression: "torch.full((4, 9), -1e9).triu(4)", in: []tensor.View{start},
			build: func(in values) graph.Value { return ops.CausalMaskAt(in[0], 4, 9) }},
	}
}
