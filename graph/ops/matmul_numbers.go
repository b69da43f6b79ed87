package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// MatMulInteger is [MatMul] of bytes, i8 or u8 each: i32, which wraps. It has no gradient.
func MatMulInteger(a, b graph.Value) graph.Value { return apply(matMulNumbers{}, a, b) }

// matMulNumbers multiplies matrices of i32, of f64, or of bytes to i32. Batches broadcast, and
// products are added up in their order, so that a result depends on nothing but its row and column.
type matMulNumbers struct{ TransA, TransB bool }

func (matMulNumbers) Name() string { return "matmul" }

// isByte reports whether elements are integers of 8 bits.
func isByte(d graph.DType) bool { return d == graph.I8 || d == graph.U8 }

func (o matMulNumbers) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 2); err != nil {
		return nil, err
	}
	a, b, d := in[0].DType, in[1].DType, graph.I32
	switch {
	case a == b && (a == graph.F64 || a == graph.I32):
		d = a
	case !isByte(a) || !isByte(b):
		return nil, fmt.Errorf("a product of %s and %s, want both f64, both i32, or bytes, i8 or "+
			"u8 each: convert them with Cast", in[0], in[1])
	}
	out, err := matMulBroadcast(o).Infer([]graph.Type{{DType: graph.F32, Shape: in[0].Shape},
		{DType: graph.F32, Shape: in[1].Shape}})
	if err != nil {
		return nil, err
	}
	return []graph.Type{{DType: d, Shape: out[0].Shape}}, nil
}

func (o matMulNumbers) Cost(in, out []graph.Type) graph.Cost {
	return matMulBroadcast(o).Cost(in, out)
}

// VJP is that of products of f32; integers have none.
func (o matMulNumbers) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if !n.Out[0].DType.Floating() || !dout[0].Valid() {
		return none(2)
	}
	return matMulBroadcast(o).VJP(n, dout)
}

// Split is along batches, rows and columns.
func (o matMulNumbers) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	whole := batchAxes(out[0])
	lead := eachAxis(&r, whole)
	rows, columns := oneAxis(&r, out[0].Size(-2)), oneAxis(&r, out[0].Size(-1))
	matrices := func(t graph.Type, rows, columns []int, trans bool) [][]int {
		if trans {
			rows, columns = columns, rows
		}
		return append(aligned(batchAxes(t), whole, lead), rows, columns)
	}
	r.In = [][][]int{matrices(in[0], rows, nil, o.TransA), matrices(in[1], nil, columns, o.TransB)}
	r.Out = [][][]int{matrices(out[0], rows, columns, false)}
	return r, true
}

func matMulNumbersCPU(o matMulNumbers, c *kernel.Call) error {
	switch a, b := c.In[0].Type.DType, c.In[1].Type.DType; {
	case a == graph.F64:
		multiply[float64, float64, float64](o, c)
	case a == graph.I32:
		multiply[int32, int32, int32](o, c)
	case a == graph.I8 && b == graph.I8:
		multiply[int8, int8, int32](o, c)
	case a == graph.I8:
		multiply[int8, uint8, int32](o, c)
	case b == graph.I8:
		multiply[uint8, int8, int32](o, c)
	default:
		multiply[uint8, uint8, int32](o, c)
	}
	return nil
}

// multiply computes rows of the result, each as a sum of rows of b.
func multiply[A, B int8 | uint8 | int32 | float64, C int32 | float64](o matMulNumbers,
	c *kernel.Call) {
	a, b, out := raw[A](c.In[0]), raw[B](c.In[1]), raw[C](c.Out[0])
	m, k := flip(c.In[0].Type, o.TransA)
	n, lead := c.Out[0].Type.Size(-1), batchAxes(c.Out[0].Type)
	toA, toB := strides(o.TransA, m, k), strides(o.TransB, k, n)
	c.Pool.For(lead.Elems()*m, max(1, grain/max(1, n*k)), func(lo, hi int) {
		for row := lo; row < hi; row++ {
			x := a[serving(row/m, lead, batchAxes(c.In[0].Type))*m*k:]
			y := b[serving(row/m, lead, batchAxes(c.In[1].Type))*k*n:]
			dst := out[row*n : (row+1)*n]
			clear(dst)
			for p := range k {
				v := C(x[row%m*toA[0]+p*toA[1]])
				for j := range dst {
					dst[j] += C(v * C(y[p*toB[0]+j*toB[1]]))
				}
			}
		}
	})
}

// strides are how far rows, and columns, of a matrix are apart.
func strides(trans bool, rows, columns int) [2]int {
	if trans {
		return [2]int{1, rows}
	}
	return [2]int{columns, 1}
}

// serving is which of t's matrices serves a batch of the result's.
func serving(batch int, lead, t graph.Type) int {
	at, step, missing := 0, 1, lead.Rank()-t.Rank()
	for i := lead.Rank() - 1; i >= missing; i-- {
		if size := t.Size(i - missing); size > 1 {
			at += batch % size * step
			step *= size
		}
		batch /= lead.Size(i)
	}
	return at
}

func init() {
	kernel.Register(kernel.CPU, matMulNumbersCPU)
	type pair [2]graph.DType
	for _, d := range []pair{{graph.F64, graph.F64}, {graph.I32, graph.I32}, {graph.I8, graph.U8},
		{graph.U8, graph.I8}, {graph.U8, graph.U8}, {graph.I8, graph.I8}} {
		sample := func(o matMulNumbers, a, b []int) {
			register(Sample{Op: o, NoGrad: []int{0, 1},
				In: []graph.Type{tensor.Of(d[0], a...), tensor.Of(d[1], b...)}})
		}
		sample(matMulNumbers{}, []int{3, 4}, []int{4, 5})
		sample(matMulNumbers{TransA: true}, []int{2, 1, 4, 3}, []int{2, 3, 4, 5})
		sample(matMulNumbers{TransB: true}, []int{2, 3, 4}, []int{5, 4})
	}
}
