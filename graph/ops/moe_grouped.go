package ops

import (
	"fmt"
	"math/rand/v2"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/gemm"
)

// GroupedMatMul is [ExpertMatMul] with the weights in one value: x f32[R k],
// weights f32[experts k n], offsets i32[experts+1] → f32[R n].
func GroupedMatMul(x, weights, offsets graph.Value) graph.Value {
	return apply(groupedMatMul{}, x, weights, offsets)
}

type groupedMatMul struct {
	Trans bool // the weights are f32[experts n k]
}

func (groupedMatMul) Name() string { return "grouped-matmul" }

func (o groupedMatMul) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32, graph.I32); err != nil {
		return nil, err
	}
	x, w, offsets := in[0], in[1], in[2]
	if x.Rank() != 2 || w.Rank() != 3 || !offsets.Equal(tensor.Of(graph.I32, w.Size(0)+1)) {
		return nil, fmt.Errorf("rows %s, weights %s and offsets %s: want f32[R k], f32[e k n] "+
			"and i32[e+1]", x, w, offsets)
	}
	k, n := flip(w, o.Trans)
	if k != x.Size(1) {
		return nil, fmt.Errorf("weights of %d×%d on rows %s", k, n, x)
	}
	return []graph.Type{tensor.Named(graph.F32, x.Shape[0], graph.Dim{Size: n})}, nil
}

func (groupedMatMul) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: 2 * int64(in[0].Elems()) * int64(out[0].Size(1)),
		Bytes: bytes(in, out)}
}

func (o groupedMatMul) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, w, offsets, d := n.In[0], n.In[1], n.In[2], dout[0]
	dx := apply(groupedMatMul{Trans: !o.Trans}, d, w, offsets)
	if o.Trans {
		return []graph.Value{dx, apply(groupedOuter{}, d, x, offsets), {}}
	}
	return []graph.Value{dx, apply(groupedOuter{}, x, d, offsets), {}}
}

func groupedMatMulCPU(o groupedMatMul, c *kernel.Call) error {
	return o.compute(c, 0, c.Out[0].Type.Size(1))
}

// compute multiplies by the weights of experts from first on, as if they had so many columns.
func (o groupedMatMul) compute(c *kernel.Call, first, columns int) error {
	x, w, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	rows, k, n := c.In[0].Type.Size(0), c.In[0].Type.Size(1), c.Out[0].Type.Size(1)
	offsets := c.In[2].I32()
	used := 0
	for e := range c.In[1].Type.Size(0) {
		lo, hi, err := expertRows(offsets, first+e, rows)
		if err != nil {
			return err
		}
		if e == 0 {
			clear(out[:lo*n])
		}
		used = hi
		if lo == hi {
			continue
		}
		y := gemm.Product{M: hi - lo, N: columns, K: k, Alpha: 1, C: out[lo*n : hi*n], LDC: n,
			A: gemm.Matrix{F32: x[lo*k : hi*k], LD: k},
			B: gemm.Matrix{F32: w[e*k*n : (e+1)*k*n], LD: c.In[1].Type.Size(2), Trans: o.Trans}}
		y.As, y.N = y.Order(), n
		y.Compute(c.Pool)
	}
	clear(out[used*n:])
	return nil
}

// groupedOuter is aᵀ·b over the rows of each expert, the gradient of the weights:
// a f32[R k], b f32[R n], offsets i32[experts+1] → f32[experts k n].
type groupedOuter struct{}

func (groupedOuter) Name() string { return "grouped-outer" }

func (groupedOuter) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32, graph.I32); err != nil {
		return nil, err
	}
	if in[2].Rank() != 1 {
		return nil, fmt.Errorf("offsets are %s, want one axis", in[2])
	}
	experts := in[2].Size(0) - 1
	if err := expertOperands(in[0], in[1], in[2], 0, experts); err != nil {
		return nil, err
	}
	return []graph.Type{tensor.Of(graph.F32, experts, in[0].Size(1), in[1].Size(1))}, nil
}

func (groupedOuter) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: 2 * int64(in[0].Elems()) * int64(in[1].Size(1)), Bytes: bytes(in, out)}
}

func (groupedOuter) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	a, b, offsets := n.In[0], n.In[1], n.In[2]
	return []graph.Value{
		apply(groupedMatMul{Trans: true}, b, dout[0], offsets),
		apply(groupedMatMul{}, a, dout[0], offsets), {},
	}
}

func groupedOuterCPU(_ groupedOuter, c *kernel.Call) error {
	return outers(c, 0, c.Out[0].Type.Size(1), c.Out[0].Type.Size(2))
}

// outers computes the gradients of weights of experts from first on, as if they had so many
// rows and columns.
func outers(c *kernel.Call, first, rows, columns int) error {
	out, size := c.Out[0].F32(), c.Out[0].Type.Size(1)*c.Out[0].Type.Size(2)
	for e := range c.Out[0].Type.Size(0) {
		to := out[e*size : (e+1)*size]
		if err := outerRows(c, first+e, rows, columns, to); err != nil {
			return err
		}
	}
	return nil
}

// fill32 fills an i32 operand with the given elements.
func fill32(list ...int32) func(*rand.Rand, any) {
	return func(_ *rand.Rand, x any) { copy(x.([]int32), list) }
}

func init() {
	kernel.Register(kernel.CPU, groupedMatMulCPU)
	kernel.Register(kernel.CPU, groupedOuterCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	offsets := tensor.Of(graph.I32, 4)
	shares := fills{2: fill32(0, 3, 3, 11)}
	register(
		Sample{Op: groupedMatMul{}, In: []graph.Type{f(13, 5), f(3, 5, 7), offsets}, Fill: shares,
			NoGrad: []int{2}, Second: true},
		Sample{Op: groupedMatMul{Trans: true}, In: []graph.Type{f(13, 5), f(3, 7, 5), offsets},
			Fill: shares, NoGrad: []int{2}, Second: true},
		Sample{Op: groupedOuter{}, In: []graph.Type{f(13, 5), f(13, 7), offsets}, Fill: shares,
			NoGrad: []int{2}, Second: true},
	)
}
