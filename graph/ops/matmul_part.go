package ops

import (
	"fmt"
	"sort"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/gemm"
)

// matMulPart is a part of a product's sum: over some of the inner dimension, or some
// of the batches that a product with Reduce sums over. With Add, operand 0 is the sum
// of the parts before, to which it is added; the matrices follow.
type matMulPart struct {
	MatMul matMul
	Block  int // length of the runs of the whole product's inner dimension; 0: its own
	Add    bool
	Resume bool // goes on with a run that the sum ends in
}

func (o matMulPart) Name() string {
	if o.Add {
		return "matmul-add"
	}
	return "matmul-part"
}

// matrices are the operands that are multiplied.
func (o matMulPart) matrices(in []graph.Type) []graph.Type {
	if o.Add {
		return in[min(1, len(in)):]
	}
	return in
}

func (o matMulPart) Infer(in []graph.Type) ([]graph.Type, error) {
	out, err := o.MatMul.Infer(o.matrices(in))
	if err != nil || !o.Add {
		return out, err
	}
	if !in[0].Equal(out[0]) {
		return nil, fmt.Errorf("a product %s is added to %s", out[0], in[0])
	}
	return in[:1:1], nil
}

func (o matMulPart) Cost(in, out []graph.Type) graph.Cost {
	cost := o.MatMul.Cost(o.matrices(in), out)
	cost.Bytes = bytes(in, out)
	return cost
}

// form16: the matrices may be in bfloat16, but not the sum.
func (o matMulPart) form16() string {
	if o.Add {
		return "f**>f"
	}
	return "**>f"
}

func (o matMulPart) scratch16(in, out []graph.Type) int64 { return o.Cost(in, out).Scratch }

// InPlace: the sum so far is what is added to.
func (o matMulPart) InPlace(_, _ []graph.Type) []int {
	if o.Add {
		return []int{0}
	}
	return nil
}

// VJP: the sum so far has the result's gradient, the matrices have the product's.
func (o matMulPart) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	in := n.In
	var grads []graph.Value
	if o.Add {
		in, grads = in[1:], []graph.Value{dout[0]}
	}
	product := apply(o.MatMul, in...)
	if !product.Valid() {
		return none(len(n.In))
	}
	return append(grads, o.MatMul.VJP(product.Node, dout)...)
}

func matMulPartCPU(o matMulPart, c *kernel.Call) error {
	product, form := *c, gemm.Product{Block: o.Block}
	if o.Add {
		product.In, form.Beta = c.In[1:], 1
		if form.Resume = o.Resume && len(c.In[1].Data) > 0; form.Resume {
			form.Beta = 0
		}
		if sum, out := c.In[0].Data, c.Out[0].Data; &sum[0] != &out[0] {
			c.Pool.For(len(out), 4*grain, func(lo, hi int) { copy(out[lo:hi], sum[lo:hi]) })
		}
	}
	return o.MatMul.compute(&product, form)
}

// Cut is between rows of the first operand, between batches, or, if the rows of both
// operands are multiplied with each other, between runs of the inner dimension.
func (o matMul) Cut(in, out []graph.Type) (graph.Cut, bool) {
	p, err := o.geometry(in)
	if err != nil {
		return graph.Cut{}, false
	}
	switch sums := o.TransA && !o.TransB; {
	case sums && (o.Reduce || p.sharedA && p.sharedB):
		return o.cutSum(p, in, in[0].Rank()-1)
	case o.Reduce:
		c, ok := cutRows(in, in, in[0].Rank()-2)
		c.Out[0] = 0
		return c, ok
	}
	return o.cutAxes(p, in, out, out[0].Rank()-1)
}

// cutSum is the cut of the inner dimension, which is so many axes of both operands.
func (o matMul) cutSum(p product, in []graph.Type, axes int) (graph.Cut, bool) {
	c, ok := cutRows(in, in, axes)
	whole := gemm.Product{M: p.m, N: p.n, K: c.Rows}
	whole.A.Trans = true
	order := whole.Order()
	part := whole
	part.K, part.Block = 1, order.Block
	c.Out[0] = 0
	if c.Rows > order.Block { // else the one run can stop anywhere
		c.Align = order.Block
	}
	return c, ok && order.Block > 0 && part.Order() == order
}

// cutAxes is the cut of operands and results along their leading axes, at most so
// many.
func (o matMul) cutAxes(p product, in, out []graph.Type, axes int) (graph.Cut, bool) {
	if p.sharedA && p.sharedB && o.TransA {
		return graph.Cut{}, false
	}
	if axes = min(axes, out[0].Rank()-1); !p.sharedB || o.TransA {
		axes = min(axes, len(p.lead))
	}
	var whole []int
	if len(p.lead) > 0 && p.sharedA {
		whole = append(whole, 0)
	}
	if p.sharedB {
		whole = append(whole, 1)
	}
	c, ok := cutRows(in, out, axes, whole...)
	if ok && p.sharedB && !o.TransA {
		c.Least = o.least(p, c.Rows)
	}
	return c, ok
}

// least is the fewest of so many rows that are multiplied as all are: with few rows
// or many, a product sums in another order.
func (o matMul) least(p product, rows int) int {
	x := gemm.Product{M: p.m * p.batch, N: p.n, K: p.k}
	x.B.Trans = o.TransB
	order := x.Order()
	return 1 + sort.Search(rows-1, func(fewer int) bool {
		x.M = (fewer + 1) * (p.m * p.batch / rows)
		return x.Order() == order
	})
}

// Part is the product itself, or a part of its sum.
func (o matMul) Part(in, out []graph.Type, lo, _ int) graph.Op {
	c, _ := o.Cut(in, out)
	if !c.Sums() {
		return o
	}
	part := matMulPart{MatMul: o, Add: lo > 0}
	if o.TransA && !o.TransB {
		part.MatMul.Reduce, part.Block = false, c.Align
		if c.Align == 1 {
			part.Block, part.Resume = c.Rows, part.Add
		}
	}
	return part
}

// Cut is between the rows of the result, if the product has such a cut, or between the runs of a
// sum that has its own.
func (o matMulPart) Cut(in, out []graph.Type) (graph.Cut, bool) {
	c, ok := o.MatMul.Cut(o.matrices(in), out)
	switch {
	case ok && c.Sums() && o.Block > 0 && !o.Add:
		c.Align = o.Block
		return c, c.Rows > o.Block
	case !ok || c.Sums() || o.Block > 0:
		return c, false
	}
	if o.Add {
		c.In = append([]int{c.Out[0]}, c.In...)
	}
	return c, true
}

// Part is the operation itself, or a part of its sum.
func (o matMulPart) Part(in, out []graph.Type, lo, _ int) graph.Op {
	if c, _ := o.Cut(in, out); c.Sums() {
		o.MatMul.Reduce, o.Add = false, lo > 0
	}
	return o
}

// Cut is where both the product and the chain can be cut, but a sum cannot.
func (o matMulChain) Cut(in, out []graph.Type) (graph.Cut, bool) {
	p, err := o.MatMul.geometry(in[:2])
	if err != nil {
		return graph.Cut{}, false
	}
	if c, ok := o.MatMul.Cut(in[:2], out); !ok || c.Sums() {
		return c, false
	}
	rest := rest(out[0], in)
	elements, ok := cutElements(rest, out, out[0].Rank()-1)
	if !ok {
		return elements, false
	}
	c, ok := o.MatMul.cutAxes(p, in[:2], out, elements.Out[0])
	if ok && c.Out[0] < elements.Out[0] {
		elements, _ = cutElements(rest, out, c.Out[0])
	}
	c.In = append(c.In, elements.In[1:]...)
	return c, ok
}

// Part is the product, and its chain on the elements of its own.
func (o matMulChain) Part(in, out []graph.Type, lo, _ int) graph.Op {
	c, _ := o.Cut(in, out)
	o.Chain = o.Chain.from(lo * rowElems(c, out))
	return o
}

func init() {
	kernel.Register(kernel.CPU, matMulPartCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: matMulPart{MatMul: matMul{TransA: true}, Block: 2},
			In: []graph.Type{f(4, 3), f(4, 5)}, Second: true},
		Sample{Op: matMulPart{MatMul: matMul{TransA: true}, Add: true},
			In: []graph.Type{f(3, 5), f(4, 3), f(4, 5)}, Second: true},
		Sample{Op: matMulPart{MatMul: matMul{TransA: true}, Block: 9, Add: true, Resume: true},
			In: []graph.Type{f(30, 50), f(4, 30), f(4, 50)}, Second: true},
		Sample{Op: matMulPart{MatMul: matMul{TransB: true, Reduce: true}, Add: true},
			In: []graph.Type{f(3, 5), f(2, 3, 4), f(2, 5, 4)}, Second: true},
		Sample{Op: matMulPart{Add: true}, In: []graph.Type{f(3, 5), f(3, 4), f(4, 5)},
			Second: true},
	)
}
