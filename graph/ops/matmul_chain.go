package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/gemm"
)

// matMulChain is a matrix product and the elementwise operations on it, in one:
// a product, say, with bias, activation and residual. Operand 0 of the chain is
// the product; its other operands follow the two matrices. The bits are those
// of the operations on their own.
type matMulChain struct {
	MatMul matMul
	Chain  chain
}

func (o matMulChain) Name() string { return o.MatMul.Name() + "+" + o.Chain.Name() }

// Operations counts the product and the instructions.
func (o matMulChain) Operations() int { return 1 + o.Chain.Operations() }

func (o matMulChain) Infer(in []graph.Type) ([]graph.Type, error) {
	return o.Chain.inferBehind(o.MatMul, in)
}

func (o matMulChain) Cost(in, out []graph.Type) graph.Cost {
	return o.Chain.costBehind(o.MatMul, in, out)
}

func (o matMulChain) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return o.Chain.gradsBehind(o.MatMul, n, dout)
}

// epilogueBytes is the size from which a product's blocks are finished one by one,
// while they are in the cache. A smaller product stays there as a whole, and the
// chain's longer runs are faster than the rows of blocks.
const epilogueBytes = 4 << 20

// epilogue is the chain as what a product does to its blocks; ok is false, and e
// empty, if it is more than a bias and a function of one operand.
func (o matMulChain) epilogue(p *program, columns int) (e gemm.Epilogue, ok bool) {
	rest := o.Chain.Code[:o.Chain.N]
	last := reference(0)
	if bias, ok := p.bias(rest[0], columns); ok {
		e.Bias = bias
		rest, last = rest[1:], ^0
	}
	switch {
	case len(rest) == 0:
		return e, true
	case len(rest) > 1 || rest[0].In[0] != last || rest[0].Arity != 1:
		return gemm.Epilogue{}, false
	}
	f := rest[0].Op
	e.Act = func(dst, x []float32) { f.tile(dst, x, nil, nil, 0) }
	return e, true
}

// bias is the row of so many columns that an instruction adds to operand 0.
func (p *program) bias(ins instruction, columns int) (row []float32, ok bool) {
	if ins.Op != elementwise(binary{add}) {
		return nil, false
	}
	x, y := ins.In[0], ins.In[1]
	if y == 0 {
		x, y = y, x
	}
	if x != 0 || y <= 0 || p.in[y].hold != 1 || p.in[y].period != columns {
		return nil, false
	}
	return p.in[y].data, true
}

func matMulChainCPU(o matMulChain, c *kernel.Call) error {
	product := kernel.Call{In: c.In[:2], Out: c.Out, Scratch: c.Scratch, Pool: c.Pool}
	p := newProgram(o.Chain, append([]tensor.View{c.Out[0]}, c.In[2:]...), c.Out[0])
	var e gemm.Epilogue
	whole := false
	if len(c.Out[0].Data) >= epilogueBytes {
		e, whole = o.epilogue(p, c.Out[0].Type.Size(-1))
	}
	if err := o.MatMul.compute(&product, gemm.Product{Epilogue: e}); err != nil || whole {
		return err
	}
	p.run(c.Pool)
	return nil
}

func init() {
	kernel.Register(kernel.CPU, matMulChainCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: matMulChain{Chain: code(1, one(unary{tanh}, 0))},
			In: []graph.Type{f(3, 4), f(4, 5)}, Second: true},
		Sample{Op: matMulChain{Chain: code(2, two(binary{add}, 0, 1))},
			In: []graph.Type{f(2, 3, 4), f(4, 5), f(5)}, Second: true},
		Sample{Op: matMulChain{matMul{TransB: true},
			code(2, two(binary{add}, 1, 0), one(unary{gelu}, ^0))},
			In: []graph.Type{f(2, 3, 4), f(2, 5, 4), f(1, 5)}, Second: true},
		Sample{Op: matMulChain{matMul{TransA: true},
			code(2, two(binary{sub}, 1, 0), two(binary{mul}, ^0, 1))},
			In: []graph.Type{f(4, 3), f(4, 5), f(3, 5)}, Second: true},
		Sample{Op: matMulChain{Chain: code(3, two(binary{add}, 0, 1), one(unary{sigmoid}, ^0),
			two(binary{mul}, ^1, 2))},
			In: []graph.Type{f(3, 4), f(4, 5), f(5), f(3, 1)}, Second: true},
		Sample{Op: matMulChain{matMul{TransB: true, Reduce: true},
			code(2, two(binary{add}, 0, 1), one(affine{Factor: 2}, ^0))},
			In: []graph.Type{f(2, 3, 4), f(2, 5, 4), f(5)}, Second: true},
		Sample{Op: matMulChain{matMul{TransA: true, TransB: true, Reduce: true},
			code(1, one(unary{square}, 0))},
			In: []graph.Type{f(2, 4, 3), f(2, 5, 4)}, Second: true},
	)
}
