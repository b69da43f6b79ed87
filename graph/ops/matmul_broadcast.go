package ops

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/gemm"
)

// batchAxes is the type of what a product has one matrix of for each element.
func batchAxes(t graph.Type) graph.Type {
	return graph.Type{DType: t.DType, Shape: t.Shape[:max(0, t.Rank()-2)]}
}

// batchesDiffer reports whether both operands have batch axes, but not the same.
func batchesDiffer(a, b graph.Type) bool {
	return a.Rank() > 2 && b.Rank() > 2 && !batchAxes(a).SameShape(batchAxes(b))
}

// broadcast is the product of operands whose batches broadcast. Where one matrix serves
// all batches, or matrices of b serve rows of a that lie together, views make a product
// without broadcasting of it: queries of several heads, say, with the keys of one.
func (o matMul) broadcast(a, b graph.Value) graph.Value {
	same := matMulBroadcast{o.TransA, o.TransB}
	types, err := same.Infer([]graph.Type{a.Type(), b.Type()})
	switch {
	case err != nil:
	case batchAxes(b.Type()).Elems() == 1:
		return Reshape(apply(o, a, oneMatrix(b)), types[0].Shape...)
	case batchAxes(a.Type()).Elems() == 1:
		return Reshape(apply(o, oneMatrix(a), b), types[0].Shape...)
	case !o.TransA && a.Type().Rank() == b.Type().Rank():
		lead := batchAxes(b.Type()).Shape
		own := len(lead)
		for own > 0 && lead[own-1].Size == 1 {
			own--
		}
		if slices.Equal(a.Type().Sizes()[:own], b.Type().Sizes()[:own]) {
			shape := a.Type().Shape
			rows := graph.Dim{Size: graph.Type{Shape: shape[own : len(shape)-1]}.Elems()}
			tall := slices.Concat(shape[:own], []graph.Dim{rows}, shape[len(shape)-1:])
			few := slices.Concat(lead[:own], b.Type().Shape[len(lead):])
			return Reshape(apply(o, Reshape(a, tall...), Reshape(b, few...)), types[0].Shape...)
		}
	}
	return apply(same, a, b)
}

// oneMatrix is a value with one matrix as that.
func oneMatrix(x graph.Value) graph.Value {
	return Reshape(x, x.Type().Shape[x.Type().Rank()-2:]...)
}

// matMulBroadcast multiplies where matrices of both operands serve several batches.
type matMulBroadcast struct{ TransA, TransB bool }

func (matMulBroadcast) Name() string { return "matmul-broadcast" }

func (o matMulBroadcast) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32); err != nil {
		return nil, err
	}
	if in[0].Rank() < 2 || in[1].Rank() < 2 {
		return nil, fmt.Errorf("operands need two axes or more")
	}
	m, ka := flip(in[0], o.TransA)
	kb, n := flip(in[1], o.TransB)
	if ka != kb {
		return nil, fmt.Errorf("inner dimensions differ: %d and %d", ka, kb)
	}
	lead, err := jointShape(batchAxes(in[0]), batchAxes(in[1]))
	if err != nil {
		return nil, fmt.Errorf("batch axes of %s and %s differ", in[0], in[1])
	}
	lead.Shape = append(lead.Shape, graph.Dim{Size: m}, graph.Dim{Size: n})
	if lead.Rank() > maxRank {
		return nil, fmt.Errorf("%d axes are more than %d", lead.Rank(), maxRank)
	}
	return []graph.Type{lead}, nil
}

func (o matMulBroadcast) Cost(in, out []graph.Type) graph.Cost {
	_, k := flip(in[0], o.TransA)
	return graph.Cost{FLOPs: 2 * int64(out[0].Elems()) * int64(k), Bytes: bytes(in, out)}
}

// VJP is that of the product, added up where a matrix served several batches.
func (o matMulBroadcast) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	a, b, dc := n.In[0], n.In[1], dout[0]
	var da, db graph.Value
	if o.TransA {
		da = MatMulT(b, dc, o.TransB, true)
	} else {
		da = MatMulT(dc, b, false, !o.TransB)
	}
	if o.TransB {
		db = MatMulT(dc, a, true, o.TransA)
	} else {
		db = MatMulT(a, dc, !o.TransA, false)
	}
	return []graph.Value{reduceTo(da, a.Type()), reduceTo(db, b.Type())}
}

// Cut is between batches.
func (matMulBroadcast) Cut(in, out []graph.Type) (graph.Cut, bool) {
	leads := []graph.Type{batchAxes(in[0]), batchAxes(in[1])}
	lead := batchAxes(out[0])
	return cutBroadcast(leads, []graph.Type{lead}, lead.Rank(),
		func(t graph.Type) bool { return t.Rank() == 0 })
}

// Part is the operation itself.
func (o matMulBroadcast) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// matMulBroadcastCPU multiplies runs of batches along which the matrices are equally far
// apart, one run after the other.
func matMulBroadcastCPU(o matMulBroadcast, c *kernel.Call) error {
	a, b, out := c.In[0], c.In[1], c.Out[0].F32()
	m, k := flip(a.Type, o.TransA)
	n := c.Out[0].Type.Size(-1)
	axes := mergeAxes(batchAxes(c.Out[0].Type),
		[]tensor.Type{batchAxes(a.Type), batchAxes(b.Type)})
	last := axes[len(axes)-1]
	x := gemm.Product{
		Batch: last.size, M: m, N: n, K: k, Alpha: 1, LDC: n, StrideC: m * n,
		A: gemm.Matrix{LD: a.Type.Size(-1), Stride: last.stride[0] * m * k, Trans: o.TransA},
		B: gemm.Matrix{LD: b.Type.Size(-1), Stride: last.stride[1] * k * n, Trans: o.TransB},
	}
	runs := 1
	for _, axis := range axes[:len(axes)-1] {
		runs *= axis.size
	}
	for run := range runs {
		from, rest := each{}, run
		for i := len(axes) - 2; i >= 0; i-- {
			at := rest % axes[i].size
			rest /= axes[i].size
			from[0], from[1] = from[0]+at*axes[i].stride[0], from[1]+at*axes[i].stride[1]
		}
		x.A.F32, x.B.F32 = a.F32()[from[0]*m*k:], b.F32()[from[1]*k*n:]
		x.C = out[run*last.size*m*n:]
		x.Compute(c.Pool)
	}
	return nil
}

func init() {
	kernel.Register(kernel.CPU, matMulBroadcastCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	pair := func(op matMulBroadcast, a, b graph.Type) Sample {
		return Sample{Op: op, In: []graph.Type{a, b}, Second: true}
	}
	register(
		pair(matMulBroadcast{}, f(2, 1, 3, 4), f(1, 3, 4, 5)),
		pair(matMulBroadcast{TransB: true}, f(2, 3, 3, 4), f(3, 5, 4)),
		pair(matMulBroadcast{TransA: true}, f(2, 1, 4, 3), f(2, 3, 4, 5)),
		pair(matMulBroadcast{TransA: true, TransB: true}, f(3, 1, 2, 4, 3), f(2, 1, 5, 4)),
	)
}
