package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/gemm"
)

// ExpertMatMul multiplies each expert's rows of x, packed as by [Route], by that
// expert's weights: x f32[R k], experts weights f32[k n], offsets i32[experts+1]
// → f32[R n]. Rows of no expert are zero.
//
// It is a chain of nodes, one an expert, each of which fills its expert's rows
// of one buffer, so that one expert's weights are needed at a time. The gradient
// with respect to x is such a chain too, in the opposite order. It is not
// written down node by node, where it would have to add up as many buffers as
// there are experts: a view at the chain's end has x and all the weights as
// further operands, which nothing reads, and its gradient is that of the chain.
// The gradient cannot be differentiated again.
func ExpertMatMul(x graph.Value, weights []graph.Value, offsets graph.Value) graph.Value {
	return expertsJoined(x, weights, offsets, false)
}

// ExpertMatMulT is [ExpertMatMul] with the weights of experts transposed, f32[n k].
func ExpertMatMulT(x graph.Value, weights []graph.Value, offsets graph.Value) graph.Value {
	return expertsJoined(x, weights, offsets, true)
}

func expertsJoined(x graph.Value, weights []graph.Value, offsets graph.Value,
	trans bool) graph.Value {
	acc := x
	if x.Valid() && len(weights) > 0 && weights[0].Valid() {
		order := make([]int, len(weights))
		for i := range order {
			order[i] = i
		}
		acc = expertChain(x, weights, offsets, order, trans)
	}
	all := append([]graph.Value{acc, x, offsets}, weights...)
	if trans {
		return apply(expertJoinT{len(weights)}, all...)
	}
	return apply(expertJoin{len(weights)}, all...)
}

// expertChain fills the rows of one expert after the other, in the given order.
func expertChain(x graph.Value, weights []graph.Value, offsets graph.Value, order []int,
	trans bool) graph.Value {
	xt, wt := x.Type(), weights[0].Type()
	if xt.Rank() != 2 || wt.Rank() != 2 {
		x.Graph().Fail(fmt.Errorf("rows %s and weights %s: want two axes each", xt, wt))
		return graph.Value{}
	}
	_, n := flip(wt, trans)
	acc := Zeros(x.Graph(), tensor.Named(graph.F32, xt.Shape[0], graph.Dim{Size: n}))
	for _, e := range order {
		acc = apply(expertMatMul{Expert: e, Experts: len(weights), Trans: trans}, acc, x,
			weights[e], offsets)
	}
	return acc
}

// expertMatMul is acc, f32[R n], with the rows of one expert replaced by those
// rows of x, f32[R k], times w, f32[k n], or its transpose.
type expertMatMul struct {
	Expert, Experts int
	Trans           bool // w is f32[n k]
}

func (expertMatMul) Name() string { return "expert-matmul" }

func (o expertMatMul) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32, graph.F32, graph.I32); err != nil {
		return nil, err
	}
	acc, x, w := in[0], in[1], in[2]
	if err := expertOperands(x, acc, in[3], o.Expert, o.Experts); err != nil {
		return nil, err
	}
	if w.Rank() != 2 {
		return nil, fmt.Errorf("weights are %s, want two axes", w)
	}
	if k, n := flip(w, o.Trans); k != x.Size(1) || n != acc.Size(1) {
		return nil, fmt.Errorf("weights of %d×%d take %s to %s", k, n, x, acc)
	}
	return []graph.Type{acc}, nil
}

// expertOperands checks two packed values with the same rows, and offsets.
func expertOperands(a, b, offsets graph.Type, expert, experts int) error {
	if expert < 0 || expert >= experts {
		return fmt.Errorf("expert %d of %d", expert, experts)
	}
	if a.Rank() != 2 || b.Rank() != 2 || a.Size(0) != b.Size(0) {
		return fmt.Errorf("packed rows are %s and %s, want two axes each and as many rows", a, b)
	}
	if want := tensor.Of(graph.I32, experts+1); !offsets.Equal(want) {
		return fmt.Errorf("offsets are %s, want %s", offsets, want)
	}
	return nil
}

// Cost is that of an even share of the rows, and of weights read or written.
func (o expertMatMul) Cost(in, _ []graph.Type) graph.Cost {
	return expertCost(in[1], in[0], in[2], o.Experts)
}

func expertCost(a, b, w graph.Type, experts int) graph.Cost {
	share := (int64(a.Size(0)) + int64(experts) - 1) / int64(experts)
	return graph.Cost{
		FLOPs: 2 * share * int64(w.Elems()),
		Bytes: w.Bytes() + 4*share*int64(a.Size(1)+b.Size(1)),
	}
}

// InPlace: the rows of other experts then need no copy.
func (expertMatMul) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP: gradients go around the chain, from its join; here they would be second
// ones.
func (expertMatMul) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return noSecond(n) }

func expertMatMulCPU(o expertMatMul, c *kernel.Call) error {
	acc, x, w, out := c.In[0].F32(), c.In[1].F32(), c.In[2], c.Out[0].F32()
	lo, hi, err := expertRows(c.In[3].I32(), o.Expert, c.In[1].Type.Size(0))
	if err != nil {
		return err
	}
	k, n := c.In[1].Type.Size(1), c.Out[0].Type.Size(1)
	if &acc[0] != &out[0] {
		c.Pool.For(lo*n, grain, func(from, to int) { copy(out[from:to], acc[from:to]) })
		c.Pool.For(len(out)-hi*n, grain, func(from, to int) {
			copy(out[hi*n+from:hi*n+to], acc[hi*n+from:])
		})
	}
	if lo < hi {
		gemm.F32(c.Pool, false, o.Trans, hi-lo, n, k, 1, x[lo*k:hi*k], k, w.F32(), w.Type.Size(1),
			0, out[lo*n:hi*n], n)
	}
	return nil
}

// expertJoin is operand 0, the end of a chain, which was computed from operand
// 1, x, operand 2, the offsets, and the weights that follow. It is never
// executed and reads none of them.
type expertJoin struct{ Experts int }

func (expertJoin) Name() string { return "expert-join" }

func (o expertJoin) Infer(in []graph.Type) ([]graph.Type, error) {
	return joinInfer(in, o.Experts, func(e int) graph.Op {
		return expertMatMul{Expert: e, Experts: o.Experts}
	})
}

// joinInfer demands that each operation of a chain takes the operands of its join.
func joinInfer(in []graph.Type, experts int, of func(e int) graph.Op) ([]graph.Type, error) {
	if experts < 1 {
		return nil, fmt.Errorf("%d experts", experts)
	}
	if err := arity(in, 3+experts); err != nil {
		return nil, err
	}
	for e, w := range in[3:] {
		if _, err := of(e).Infer([]graph.Type{in[0], in[1], w, in[2]}); err != nil {
			return nil, err
		}
	}
	return in[:1:1], nil
}

func (expertJoin) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{} }

// View: all of the chain's end.
func (expertJoin) View(_, _ []graph.Type) []int64 { return []int64{0} }

func (expertJoin) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return joinVJP(n, dout, false)
}

func joinVJP(n *graph.Node, dout []graph.Value, trans bool) []graph.Value {
	x, offsets, weights := n.In[1], n.In[2], n.In[3:]
	a, b := x, dout[0]
	if trans {
		a, b = b, a
	}
	last := len(weights) - 1
	order := make([]int, len(weights))
	din := none(len(n.In))
	for e := range weights {
		order[e] = last - e
		din[3+e] = apply(expertOuter{Expert: e, Experts: len(weights)}, a, b, offsets)
	}
	din[1] = expertChain(dout[0], weights, offsets, order, !trans)
	return din
}

// expertJoinT is [expertJoin] of weights that are f32[n k].
type expertJoinT struct{ Experts int }

func (expertJoinT) Name() string { return "expert-join" }

func (o expertJoinT) Infer(in []graph.Type) ([]graph.Type, error) {
	return joinInfer(in, o.Experts, func(e int) graph.Op {
		return expertMatMul{Expert: e, Experts: o.Experts, Trans: true}
	})
}

func (expertJoinT) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{} }

// View: all of the chain's end.
func (expertJoinT) View(_, _ []graph.Type) []int64 { return []int64{0} }

func (expertJoinT) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return joinVJP(n, dout, true)
}

// expertOuter is aᵀ·b over the rows of one expert, the gradient of its weights:
// a f32[R k], b f32[R n] → f32[k n].
type expertOuter struct{ Expert, Experts int }

func (expertOuter) Name() string { return "expert-outer" }

func (o expertOuter) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32, graph.I32); err != nil {
		return nil, err
	}
	if err := expertOperands(in[0], in[1], in[2], o.Expert, o.Experts); err != nil {
		return nil, err
	}
	return []graph.Type{tensor.Of(graph.F32, in[0].Size(1), in[1].Size(1))}, nil
}

func (o expertOuter) Cost(in, out []graph.Type) graph.Cost {
	return expertCost(in[0], in[1], out[0], o.Experts)
}

func (expertOuter) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return noSecond(n) }

func expertOuterCPU(o expertOuter, c *kernel.Call) error {
	return outerRows(c, o.Expert, c.Out[0].Type.Size(0), c.Out[0].Type.Size(1), c.Out[0].F32())
}

// outerRows sets out to aᵀ·b over the rows of an expert, as if it had so many rows and
// columns: operands 0 and 1 are a and b, operand 2 the offsets.
func outerRows(c *kernel.Call, expert, rows, columns int, out []float32) error {
	k, n := c.In[0].Type.Size(1), c.In[1].Type.Size(1)
	lo, hi, err := expertRows(c.In[2].I32(), expert, c.In[0].Type.Size(0))
	if err != nil {
		return err
	}
	if lo == hi {
		clear(out)
		return nil
	}
	x := gemm.Product{M: rows, N: columns, K: hi - lo, Alpha: 1, C: out, LDC: n,
		A: gemm.Matrix{F32: c.In[0].F32()[lo*k : hi*k], LD: k, Trans: true},
		B: gemm.Matrix{F32: c.In[1].F32()[lo*n : hi*n], LD: n}}
	x.As, x.M, x.N = x.Order(), k, n
	x.Compute(c.Pool)
	return nil
}

func init() {
	kernel.Register(kernel.CPU, expertMatMulCPU)
	kernel.Register(kernel.CPU, expertOuterCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	offsets := tensor.Of(graph.I32, 4)
	shares := fill32(0, 3, 3, 11)
	for e := range 3 {
		o := expertMatMul{Expert: e, Experts: 3}
		register(
			Sample{Op: o, In: []graph.Type{f(13, 5), f(13, 3), f(3, 5), offsets},
				Fill: fills{3: shares}, NoGrad: []int{0, 1, 2, 3}},
			Sample{Op: expertOuter{Expert: e, Experts: 3},
				In: []graph.Type{f(13, 5), f(13, 3), offsets}, Fill: fills{2: shares},
				NoGrad: []int{0, 1, 2}},
		)
	}
	register(
		Sample{Op: expertMatMul{Expert: 2, Experts: 3, Trans: true},
			In:   []graph.Type{f(13, 5), f(13, 3), f(5, 3), offsets},
			Fill: fills{3: shares}, NoGrad: []int{0, 1, 2, 3}},
		Sample{Op: expertJoin{Experts: 2},
			In:     []graph.Type{f(13, 5), f(13, 3), tensor.Of(graph.I32, 3), f(3, 5), f(3, 5)},
			Fill:   fills{2: fill32(0, 4, 11)},
			NoGrad: []int{0, 1, 2, 3, 4}},
		Sample{Op: expertJoinT{Experts: 2},
			In:     []graph.Type{f(13, 5), f(13, 3), tensor.Of(graph.I32, 3), f(5, 3), f(5, 3)},
			Fill:   fills{2: fill32(0, 4, 11)},
			NoGrad: []int{0, 1, 2, 3, 4}},
	)
}
