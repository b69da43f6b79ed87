package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/gemm"
)

// Split is along batches, rows and columns, and along the inner dimension, over which a
// product is a sum; with Reduce it is one over batches, too.
func (o matMul) Split(in, _ []graph.Type) (r graph.Rule, ok bool) {
	p, err := o.geometry(in)
	if err != nil {
		return r, false
	}
	lead := eachAxis(&r, graph.Type{Shape: p.lead})
	m, n, k := oneAxis(&r, p.m), oneAxis(&r, p.n), oneAxis(&r, p.k)
	sums(&r, k)
	if o.Reduce {
		sums(&r, lead...)
	}
	matrices := func(rows, cols []int, trans, shared bool) [][]int {
		if trans {
			rows, cols = cols, rows
		}
		if shared {
			return [][]int{rows, cols}
		}
		return append(append([][]int{}, lead...), rows, cols)
	}
	r.In = [][][]int{matrices(m, k, o.TransA, p.sharedA), matrices(k, n, o.TransB, p.sharedB)}
	r.Out = [][][]int{matrices(m, n, false, o.Reduce)}
	r.Local = func(at []graph.Part) graph.Op {
		if divided(at, k) || o.Reduce && divided(at, lead...) {
			return o
		}
		local := p
		local.m, _ = shareOf(p.m, m, at)
		local.n, _ = shareOf(p.n, n, at)
		local.batch = part(graph.Type{Shape: p.lead}, lead, at).Elems()
		return o.like(p, local)
	}
	return r, true
}

// like is the product that computes a part of another with the bits of that: the product
// itself, unless it sums in another order.
func (o matMul) like(whole, part product) graph.Op {
	rows := o.rows(whole)
	if o.order(rows, whole.n, whole) == o.order(o.rows(part), part.n, whole) {
		return o
	}
	return matMulLike{o, rows, whole.n}
}

// rows is how many rows are multiplied at a time.
func (o matMul) rows(p product) int {
	if p.sharedB && !o.TransA && !o.Reduce {
		return p.m * p.batch
	}
	return p.m
}

// order is how a product of so many rows and columns, and the inner dimension of p, sums.
func (o matMul) order(rows, columns int, p product) gemm.Order {
	x := gemm.Product{M: rows, N: columns, K: p.k}
	x.A.Trans, x.B.Trans = o.TransA, o.TransB
	if o.Reduce && o.TransA && !o.TransB {
		x.K *= p.batch
	}
	return x.Order()
}

// ordered is the form of a product that computes some of so many rows, and columns.
func (o matMul) ordered(rows, columns, inner int) gemm.Product {
	return gemm.Product{As: o.order(rows, columns, product{k: inner})}
}

// matMulLike is a product that sums in the order of one of so many rows and columns, of
// which it computes some: few of them alone would be added up in another.
type matMulLike struct {
	MatMul  matMul
	Rows    int
	Columns int
}

func (o matMulLike) Name() string { return o.MatMul.Name() }

func (o matMulLike) Infer(in []graph.Type) ([]graph.Type, error) {
	out, err := o.MatMul.Infer(in)
	if err != nil {
		return nil, err
	}
	p, err := o.MatMul.geometry(in)
	if rows := o.MatMul.rows(p); err == nil && (rows > o.Rows || p.n > o.Columns) {
		err = fmt.Errorf("%d×%d elements of a product of %d×%d", rows, p.n, o.Rows, o.Columns)
	}
	return out, err
}

func (o matMulLike) Cost(in, out []graph.Type) graph.Cost { return o.MatMul.Cost(in, out) }

// VJP is the product's, which need not have the bits of any other.
func (o matMulLike) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return o.MatMul.VJP(n, dout)
}

func matMulLikeCPU(o matMulLike, c *kernel.Call) error {
	p, err := o.MatMul.geometry(inF32([]graph.Type{c.In[0].Type, c.In[1].Type}))
	if err != nil {
		return err
	}
	return o.MatMul.compute(c, gemm.Product{As: o.MatMul.order(o.Rows, o.Columns, p)})
}

// Split is along batches that both operands have in full or share, and along the inner
// dimension, over which a product is a sum. Of rows and columns a part has as many as
// products of that order have.
func (o matMulBroadcast) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	whole := batchAxes(out[0])
	lead := eachAxis(&r, whole)
	m, k := flip(in[0], o.TransA)
	n := out[0].Size(-1)
	plain := matMul{TransA: o.TransA, TransB: o.TransB}
	order := func(m, n int) gemm.Order { return plain.order(m, n, product{k: k}) }
	rows, columns := coarseTwo(&r, m, n, func(rows, columns int) bool {
		return order(rows, columns) == order(m, n)
	})
	inner := oneAxis(&r, k)
	sums(&r, inner)
	matrices := func(t graph.Type, rows, cols []int, trans bool) [][]int {
		if trans {
			rows, cols = cols, rows
		}
		return append(aligned(batchAxes(t), whole, lead), rows, cols)
	}
	r.In = [][][]int{matrices(in[0], rows, inner, o.TransA),
		matrices(in[1], inner, columns, o.TransB)}
	r.Out = [][][]int{matrices(out[0], rows, columns, false)}
	return r, true
}

func init() {
	kernel.Register(kernel.CPU, matMulLikeCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: matMulLike{MatMul: matMul{TransB: true}, Rows: 64, Columns: 64},
			In: []graph.Type{f(3, 40), f(5, 40)}, Second: true},
		Sample{Op: matMulLike{MatMul: matMul{TransA: true, Reduce: true}, Rows: 20, Columns: 7},
			In: []graph.Type{f(2, 4, 3), f(2, 4, 5)}, Second: true},
		Sample{Op: matMulLike{Rows: 80, Columns: 80}, In: []graph.Type{f(2, 3, 4), f(4, 5)},
			Second: true},
	)
}
