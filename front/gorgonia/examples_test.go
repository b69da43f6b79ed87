package gorgonia

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// elementwise are functions, arithmetic and comparisons.
func elementwise() []example {
	type function struct {
		name      string
		f         func(*G.Node) (*G.Node, error)
		low, high float64
	}
	var out []example
	for _, f := range []function{
		{"abs", G.Abs, 0.1, 1}, {"sin", G.Sin, 0, 0}, {"cos", G.Cos, 0, 0}, {"exp", G.Exp, 0, 0},
		{"log", G.Log, 0.1, 3}, {"log2", G.Log2, 0.1, 3}, {"neg", G.Neg, 0, 0},
		{"square", G.Square, 0, 0}, {"sqrt", G.Sqrt, 0.1, 2}, {"inverse", G.Inverse, 0.2, 2},
		{"inverse root", G.InverseSqrt, 0.2, 2}, {"cube", G.Cube, 0, 0}, {"tanh", G.Tanh, 0, 0},
		{"sigmoid", G.Sigmoid, 0, 0}, {"log1p", G.Log1p, -0.5, 1}, {"expm1", G.Expm1, 0, 0},
		{"softplus", G.Softplus, -3, 3}, {"rectify", G.Rectify, 0, 0},
		{"leaky", func(x *G.Node) (*G.Node, error) { return G.LeakyRelu(x, 0.1) }, 0, 0},
	} {
		out = append(out, example{name: f.name, shapes: shapes(tensor.Shape{3, 4}),
			apply: one(f.f), low: f.low, high: f.high,
			differences: f.name == "log2" || f.name == "inverse root"})
	}
	for name, f := range map[string]func(*G.Node) (*G.Node, error){
		"sign": G.Sign, "ceil": G.Ceil, "floor": G.Floor} {
		out = append(out, example{name: name, shapes: shapes(tensor.Shape{3, 4}), apply: one(f),
			forward: true})
	}
	same, scalar := shapes(tensor.Shape{3, 4}, tensor.Shape{3, 4}),
		shapes(tensor.Shape{3, 4}, tensor.Shape{})
	for name, f := range map[string]func(a, b *G.Node) (*G.Node, error){
		"add": G.Add, "sub": G.Sub, "mul": G.HadamardProd, "div": G.HadamardDiv, "pow": G.Pow} {
		out = append(out, example{name: name, shapes: same, apply: two(f), low: 0.5, high: 2},
			example{name: name + " scalar", shapes: scalar, apply: two(f), low: 0.5, high: 2,
				differences: name == "pow"})
	}
	for name, f := range map[string]func(a, b *G.Node, same bool) (*G.Node, error){
		"less": G.Lt, "more": G.Gt, "at most": G.Lte, "at least": G.Gte, "equal": G.Eq,
		"unequal": G.Ne} {
		out = append(out, example{name: name, shapes: same, forward: true,
			apply: two(func(a, b *G.Node) (*G.Node, error) { return f(a, b, true) })})
	}
	return append(out, broadcast()...)
}

// broadcast are operations whose operands are repeated.
func broadcast() []example {
	type pair func(a, b *G.Node, left, right []byte) (*G.Node, error)
	var out []example
	for name, f := range map[string]pair{"add": G.BroadcastAdd, "sub": G.BroadcastSub,
		"mul": G.BroadcastHadamardProd, "div": G.BroadcastHadamardDiv, "pow": G.BroadcastPow} {
		apply := func(left, right []byte) func(G.Nodes) (*G.Node, error) {
			return two(func(a, b *G.Node) (*G.Node, error) { return f(a, b, left, right) })
		}
		out = append(out, example{name: "broadcast " + name + " right", low: 0.5, high: 2,
			shapes: shapes(tensor.Shape{3, 4}, tensor.Shape{1, 4}), apply: apply(nil, []byte{0})},
			example{name: "broadcast " + name + " left", low: 0.5, high: 2,
				apply:  apply([]byte{1}, nil),
				shapes: shapes(tensor.Shape{3, 1}, tensor.Shape{3, 4})},
			example{name: "broadcast " + name + " vector", low: 0.5, high: 2,
				shapes: shapes(tensor.Shape{3, 4}, tensor.Shape{4}), apply: apply(nil, []byte{0})})
	}
	return out
}

// algebra are products.
func algebra() []example {
	batched := func(transes ...bool) func(G.Nodes) (*G.Node, error) {
		return two(func(a, b *G.Node) (*G.Node, error) { return G.BatchedMatMul(a, b, transes...) })
	}
	dot := func(a, b []int) func(G.Nodes) (*G.Node, error) {
		return two(func(x, y *G.Node) (*G.Node, error) { return G.Tensordot(a, b, x, y) })
	}
	return []example{
		{name: "matrices", shapes: shapes(tensor.Shape{2, 3}, tensor.Shape{3, 4}),
			apply: two(G.Mul)},
		{name: "matrix and vector", shapes: shapes(tensor.Shape{2, 3}, tensor.Shape{3}),
			apply: two(G.Mul)},
		{name: "vector and matrix", shapes: shapes(tensor.Shape{2}, tensor.Shape{2, 3}),
			apply: two(G.Mul)},
		{name: "vectors", shapes: shapes(tensor.Shape{3}, tensor.Shape{3}), apply: two(G.Mul)},
		{name: "outer", shapes: shapes(tensor.Shape{2}, tensor.Shape{3}), apply: two(G.OuterProd),
			differences: true},
		{name: "batched", shapes: shapes(tensor.Shape{2, 2, 3}, tensor.Shape{2, 3, 4}),
			apply: batched()},
		{name: "batched, turned", shapes: shapes(tensor.Shape{2, 3, 2}, tensor.Shape{2, 4, 3}),
			apply: batched(true, true), differences: true},
		{name: "tensordot", shapes: shapes(tensor.Shape{2, 3, 4}, tensor.Shape{3, 5}),
			apply: dot([]int{1}, []int{0}), differences: true},
		{name: "tensordot of two axes", shapes: shapes(tensor.Shape{2, 3, 4}, tensor.Shape{4, 3}),
			apply: dot([]int{1, 2}, []int{1, 0}), differences: true},
	}
}

// shapely are what moves elements or adds them up.
func shapely() []example {
	along := func(f func(*G.Node, ...int) (*G.Node, error), axes ...int) func(G.Nodes) (*G.Node,
		error) {
		return one(func(x *G.Node) (*G.Node, error) { return f(x, axes...) })
	}
	cut := func(s ...tensor.Slice) func(G.Nodes) (*G.Node, error) {
		return one(func(x *G.Node) (*G.Node, error) { return G.Slice(x, s...) })
	}
	s := shapes(tensor.Shape{3, 4})
	cube := shapes(tensor.Shape{2, 3, 4})
	return []example{
		{name: "sum", shapes: s, apply: along(G.Sum)},
		{name: "sum of rows", shapes: s, apply: along(G.Sum, 0)},
		{name: "sum of two axes", shapes: cube, apply: along(G.Sum, 0, 2), differences: true},
		{name: "mean", shapes: s, apply: along(G.Mean)},
		{name: "mean of columns", shapes: s, apply: along(G.Mean, 1)},
		{name: "max", shapes: s, apply: along(G.Max)},
		{name: "max of rows", shapes: s, apply: along(G.Max, 0)},
		{name: "norm", shapes: s, apply: one(func(x *G.Node) (*G.Node, error) {
			return G.Norm(x, 1, 2)
		})},
		{name: "reshape", shapes: s, apply: one(func(x *G.Node) (*G.Node, error) {
			return G.Reshape(x, tensor.Shape{2, 6})
		})},
		{name: "transpose", shapes: s, apply: along(G.Transpose)},
		{name: "transpose of three", shapes: cube, apply: along(G.Transpose, 2, 0, 1)},
		{name: "slice", shapes: s, apply: cut(nil, G.S(1, 3))},
		{name: "row", shapes: s, apply: cut(G.S(1))},
		{name: "part of a vector", shapes: shapes(tensor.Shape{5}), apply: cut(G.S(1, 4))},
		{name: "rows and columns", shapes: s, apply: cut(G.S(1, 3), G.S(0, 2))},
		{name: "concat", shapes: shapes(tensor.Shape{2, 3}, tensor.Shape{4, 3}),
			apply: func(in G.Nodes) (*G.Node, error) { return G.Concat(0, in...) }},
		{name: "concat of columns", shapes: shapes(tensor.Shape{2, 3}, tensor.Shape{2, 2}),
			apply: func(in G.Nodes) (*G.Node, error) { return G.Concat(1, in...) }},
		{name: "by indices", shapes: s, only: tensor.Float32, apply: one(func(x *G.Node) (*G.Node,
			error) {
			at := G.NewConstant(tensor.New(tensor.WithBacking([]int{2, 0, 2})))
			return G.ByIndices(x, at, 0)
		})},
		{name: "least", shapes: shapes(tensor.Shape{3, 4}, tensor.Shape{3, 4}),
			apply: two(G.MinBetween)},
		{name: "greatest", shapes: shapes(tensor.Shape{3, 4}, tensor.Shape{3, 4}),
			apply: two(G.MaxBetween)},
	}
}

// layers are softmaxes, convolutions, pools and norms.
func layers() []example {
	images := shapes(tensor.Shape{2, 3, 6, 6})
	filters := shapes(tensor.Shape{2, 3, 6, 6}, tensor.Shape{4, 3, 3, 3})
	conv := func(pad, stride, dilation []int) func(G.Nodes) (*G.Node, error) {
		return two(func(x, w *G.Node) (*G.Node, error) {
			return G.Conv2d(x, w, tensor.Shape{3, 3}, pad, stride, dilation)
		})
	}
	pool := func(f func(*G.Node, tensor.Shape, []int, []int) (*G.Node, error), pad,
		stride []int) func(G.Nodes) (*G.Node, error) {
		return one(func(x *G.Node) (*G.Node, error) {
			return f(x, tensor.Shape{2, 2}, pad, stride)
		})
	}
	soft := func(f func(*G.Node, ...int) (*G.Node, error), axes ...int) func(G.Nodes) (*G.Node,
		error) {
		return one(func(x *G.Node) (*G.Node, error) { return f(x, axes...) })
	}
	return []example{
		{name: "softmax", shapes: shapes(tensor.Shape{3, 4}), apply: soft(G.SoftMax)},
		{name: "softmax of columns", shapes: shapes(tensor.Shape{3, 4}), apply: soft(G.SoftMax, 0)},
		{name: "softmax of a vector", shapes: shapes(tensor.Shape{4}), apply: soft(G.SoftMax)},
		{name: "logarithm of softmax", shapes: shapes(tensor.Shape{3, 4}),
			apply: soft(G.LogSoftMax)},
		{name: "convolution", shapes: filters, apply: conv([]int{1, 1}, []int{1, 1}, []int{1, 1})},
		{name: "convolution, strided", shapes: filters,
			apply: conv([]int{0, 1}, []int{2, 1}, []int{1, 2})},
		{name: "im2col", shapes: images, apply: one(func(x *G.Node) (*G.Node, error) {
			return G.Im2Col(x, tensor.Shape{3, 2}, tensor.Shape{1, 0}, tensor.Shape{2, 1},
				tensor.Shape{1, 1})
		})},
		{name: "max pool", shapes: images, only: tensor.Float32,
			apply: pool(G.MaxPool2D, []int{0, 0}, []int{2, 2})},
		{name: "max pool, padded", shapes: images, only: tensor.Float32,
			apply: pool(G.MaxPool2D, []int{1, 1}, []int{2, 2})},
		{name: "max pool, unevenly", shapes: images, only: tensor.Float32,
			apply: pool(G.MaxPool2D, []int{0, 1, 0, 1}, []int{1, 1})},
		{name: "average pool", shapes: images, only: tensor.Float32, differences: true,
			apply: pool(G.AveragePool2D, []int{0, 0}, []int{2, 2})},
		{name: "global average", shapes: images, differences: true,
			apply: one(G.GlobalAveragePool2D)},
		{name: "upsample", shapes: images, apply: one(func(x *G.Node) (*G.Node, error) {
			return G.Upsample2D(x, 2)
		})},
		{name: "batch norm", shapes: shapes(tensor.Shape{4, 3}, tensor.Shape{1, 3},
			tensor.Shape{1, 3}), apply: batchNormOf},
		{name: "batch norm of images", shapes: shapes(tensor.Shape{2, 3, 4, 4},
			tensor.Shape{1, 3, 1, 1}, tensor.Shape{1, 3, 1, 1}), apply: batchNormOf},
		{name: "group norm", shapes: shapes(tensor.Shape{2, 4, 3, 3}, tensor.Shape{1, 4, 1, 1},
			tensor.Shape{1, 4, 1, 1}), differences: true, apply: func(in G.Nodes) (*G.Node, error) {
			return G.GroupNorm(in[0], in[1], in[2], 2, 4, 1e-5)
		}},
		{name: "entropy", shapes: shapes(tensor.Shape{3, 4}, tensor.Shape{3, 4}), low: 0.1,
			high:  0.9,
			apply: two(G.BinaryXent)},
	}
}

// batchNormOf is a batch norm with a scale and a bias.
func batchNormOf(in G.Nodes) (*G.Node, error) {
	y, _, _, _, err := G.BatchNorm(in[0], in[1], in[2], 0.1, 1e-5)
	return y, err
}
