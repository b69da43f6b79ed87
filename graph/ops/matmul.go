package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/gemm"
)

// MatMul is the matrix product of the last two axes: [… m k] × [… k n] →
// [… m n]. Leading axes are batch axes, and broadcast: a missing one, or one of size 1,
// is shared by all of the other operand's. Both are of f32, f64, i32, bf16 or f16; the last two are
// multiplied in f32 and results rounded.
func MatMul(a, b graph.Value) graph.Value { return MatMulT(a, b, false, false) }

// MatMulT is MatMul with either operand read transposed in its last two axes.
func MatMulT(a, b graph.Value, transA, transB bool) graph.Value {
	o := matMul{TransA: transA, TransB: transB}
	switch d := a.Type().DType; {
	case d != b.Type().DType:
	case small(d):
		return Cast(MatMulT(Cast(a, graph.F32), Cast(b, graph.F32), transA, transB), d)
	case d == graph.F64 || d == graph.I32:
		return apply(matMulNumbers{transA, transB}, a, b)
	}
	if batchesDiffer(a.Type(), b.Type()) {
		return o.broadcast(a, b)
	}
	return apply(o, a, b)
}

// matMul multiplies op(a) by op(b). With Reduce, both operands have batch axes
// and the products are summed over them: the gradient of a shared operand.
type matMul struct {
	TransA, TransB bool
	Reduce         bool
}

func (matMul) Name() string { return "matmul" }

func (o matMul) before(c chain) graph.Op { return matMulChain{o, c} }

// product is the geometry of one matMul.
type product struct {
	batch, m, n, k int
	sharedA        bool // a has no batch axes
	sharedB        bool
	lead           []tensor.Dim
}

func (o matMul) geometry(in []graph.Type) (p product, err error) {
	if err = want(in, graph.F32, graph.F32); err != nil {
		return p, err
	}
	a, b := in[0], in[1]
	if a.Rank() < 2 || b.Rank() < 2 {
		return p, fmt.Errorf("operands need two axes or more")
	}
	var ka, kb int
	p.m, ka = flip(a, o.TransA)
	kb, p.n = flip(b, o.TransB)
	if ka != kb {
		return p, fmt.Errorf("inner dimensions differ: %d and %d", ka, kb)
	}
	p.k = ka
	leadA, leadB := a.Shape[:a.Rank()-2], b.Shape[:b.Rank()-2]
	p.sharedA, p.sharedB = len(leadA) == 0, len(leadB) == 0
	p.lead = leadA
	if p.sharedA {
		p.lead = leadB
	}
	if !p.sharedA && !p.sharedB && !(graph.Type{Shape: leadA}).SameShape(graph.Type{Shape: leadB}) {
		return p, fmt.Errorf("batch axes differ")
	}
	if o.Reduce && (p.sharedA || p.sharedB) {
		return p, fmt.Errorf("a product summed over batches needs batch axes in both operands")
	}
	p.batch = graph.Type{Shape: p.lead}.Elems()
	return p, nil
}

// flip is the last two sizes of t, exchanged if trans.
func flip(t graph.Type, trans bool) (rows, cols int) {
	if trans {
		return t.Size(-1), t.Size(-2)
	}
	return t.Size(-2), t.Size(-1)
}

func (o matMul) Infer(in []graph.Type) ([]graph.Type, error) {
	p, err := o.geometry(in)
	if err != nil {
		return nil, err
	}
	t := graph.Type{DType: graph.F32}
	if !o.Reduce {
		t.Shape = append(t.Shape, p.lead...)
	}
	t.Shape = append(t.Shape, graph.Dim{Size: p.m}, graph.Dim{Size: p.n})
	return []graph.Type{t}, nil
}

func (o matMul) Cost(in, out []graph.Type) graph.Cost {
	p, err := o.geometry(in)
	if err != nil {
		return graph.Cost{}
	}
	return graph.Cost{FLOPs: 2 * int64(p.batch) * int64(p.m) * int64(p.n) * int64(p.k),
		Bytes: bytes(in, out)}
}

// VJP: for C = op(A)·op(B), dA = dC·op(B)ᵀ and dB = op(A)ᵀ·dC, with the
// transposes moved to where the operand was read transposed. A shared operand
// sums its gradient over the batches.
func (o matMul) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if o.Reduce {
		return o.reduceVJP(n, dout[0])
	}
	a, b, dc := n.In[0], n.In[1], dout[0]
	p, _ := o.geometry(n.InTypes())
	grad := func(x, y graph.Value, tx, ty, shared bool) graph.Value {
		return apply(matMul{TransA: tx, TransB: ty, Reduce: shared && len(p.lead) > 0}, x, y)
	}
	var da, db graph.Value
	if o.TransA {
		da = grad(b, dc, o.TransB, true, p.sharedA)
	} else {
		da = grad(dc, b, false, !o.TransB, p.sharedA)
	}
	if o.TransB {
		db = grad(dc, a, true, o.TransA, p.sharedB)
	} else {
		db = grad(a, dc, !o.TransA, false, p.sharedB)
	}
	return []graph.Value{da, db}
}

// reduceVJP: every batch sees the same dC.
func (o matMul) reduceVJP(n *graph.Node, dc graph.Value) []graph.Value {
	a, b := n.In[0], n.In[1]
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
	return []graph.Value{da, db}
}

func matMulCPU(o matMul, c *kernel.Call) error { return o.compute(c, gemm.Product{}) }

// compute is the kernel, with an epilogue, and other such things, of the form.
func (o matMul) compute(c *kernel.Call, form gemm.Product) error {
	a, b, out := c.In[0], c.In[1], c.Out[0].F32()
	p, err := o.geometry(inF32([]graph.Type{a.Type, b.Type}))
	if err != nil {
		return err
	}
	if p.sharedB && !o.TransA && !o.Reduce { // one tall product instead of many
		p.m, p.batch = p.m*p.batch, 1
	}
	x := gemm.Product{
		Batch: p.batch, M: p.m, N: p.n, K: p.k, Alpha: 1, C: out, LDC: p.n, StrideC: p.m * p.n,
		A: matrixOf(a, p.m*p.k, o.TransA), B: matrixOf(b, p.k*p.n, o.TransB),

		Beta: form.Beta, Block: form.Block, As: form.As, Resume: form.Resume,
		Epilogue: form.Epilogue,
	}
	if o.Reduce {
		o.sum(c, x)
		return nil
	}
	if p.sharedA {
		x.A.Stride = 0
	}
	if p.sharedB {
		x.B.Stride = 0
	}
	x.Compute(c.Pool)
	return nil
}

// matrixOf is an operand, of f32 or bfloat16.
func matrixOf(v tensor.View, stride int, trans bool) gemm.Matrix {
	m := gemm.Matrix{LD: v.Type.Size(-1), Stride: stride, Trans: trans}
	if v.Type.DType == graph.BF16 {
		m.BF16 = v.U16()
	} else {
		m.F32 = v.F32()
	}
	return m
}

// from is an operand from one of its matrices on.
func from(m gemm.Matrix, i int) gemm.Matrix {
	if m.BF16 != nil {
		m.BF16 = m.BF16[i*m.Stride:]
	} else {
		m.F32 = m.F32[i*m.Stride:]
	}
	return m
}

// sum computes the sum of a batch of products.
func (o matMul) sum(c *kernel.Call, x gemm.Product) {
	batch, e := x.Batch, x.Epilogue
	x.Batch = 1
	if o.TransA && !o.TransB { // the batches are one long inner dimension
		x.K *= batch
		x.Compute(c.Pool)
		return
	}
	if batch == 0 {
		x.K = 0
		x.Compute(c.Pool)
		return
	}
	a, b := x.A, x.B
	for i := range batch {
		x.A, x.B = from(a, i), from(b, i)
		if x.Epilogue = (gemm.Epilogue{}); i == batch-1 {
			x.Epilogue = e
		}
		x.Compute(c.Pool)
		x.Beta = 1
	}
}

func init() {
	kernel.Register(kernel.CPU, matMulCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: matMul{}, In: []graph.Type{f(3, 4), f(4, 5)}, Second: true},
		Sample{Op: matMul{TransA: true}, In: []graph.Type{f(4, 3), f(4, 5)}, Second: true},
		Sample{Op: matMul{TransB: true}, In: []graph.Type{f(3, 4), f(5, 4)}, Second: true},
		Sample{Op: matMul{TransA: true, TransB: true}, In: []graph.Type{f(4, 3), f(5, 4)},
			Second: true},
		Sample{Op: matMul{}, In: []graph.Type{f(2, 3, 3, 4), f(2, 3, 4, 5)}, Second: true},
		Sample{Op: matMul{}, In: []graph.Type{f(2, 3, 4), f(4, 5)}, Second: true},
		Sample{Op: matMul{TransB: true}, In: []graph.Type{f(3, 4), f(2, 5, 4)}, Second: true},
		Sample{Op: matMul{TransA: true, Reduce: true}, In: []graph.Type{f(2, 4, 3), f(2, 4, 5)},
			Second: true},
	)
}
