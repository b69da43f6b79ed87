package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// convChain is a convolution and the elementwise operations on it, in one: with a bias, say, an
// activation and a residual. Operand 0 of the chain is the convolution; its other operands follow
// images and filters. The bits are those of the operations on their own.
type convChain struct {
	Conv  conv2D
	Chain chain
}

func (o conv2D) before(c chain) graph.Op { return convChain{o, c} }

func (o convChain) Name() string { return o.Conv.Name() + "+" + o.Chain.Name() }

// Operations counts the convolution and the instructions.
func (o convChain) Operations() int { return 1 + o.Chain.Operations() }

func (o convChain) Infer(in []graph.Type) ([]graph.Type, error) {
	return o.Chain.inferBehind(o.Conv, in)
}

func (o convChain) Cost(in, out []graph.Type) graph.Cost {
	return o.Chain.costBehind(o.Conv, in, out)
}

func (o convChain) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return o.Chain.gradsBehind(o.Conv, n, dout)
}

func convChainCPU(o convChain, c *kernel.Call) error {
	images := kernel.Call{In: c.In[:2], Out: c.Out, Scratch: c.Scratch, Pool: c.Pool}
	p := newProgram(o.Chain, append([]tensor.View{c.Out[0]}, c.In[2:]...), c.Out[0])
	if len(c.Out[0].Data) >= epilogueBytes {
		return o.Conv.compute(&images, p.elements)
	}
	if err := o.Conv.compute(&images, nil); err != nil {
		return err
	}
	p.run(c.Pool)
	return nil
}

func init() {
	kernel.Register(kernel.CPU, convChainCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	same := conv2D{Conv{Pad: SamePad(3)}.defaults()}
	register(
		Sample{Op: convChain{same, code(2, two(binary{add}, 0, 1), one(unary{tanh}, ^0))},
			In: []graph.Type{f(2, 3, 3, 3), f(5, 3, 3, 3), f(5, 1, 1)}, Second: true},
		Sample{Op: convChain{conv2D{Conv{Groups: 3}.defaults()},
			code(2, two(binary{mul}, 1, 0), two(binary{add}, ^0, 0))},
			In: []graph.Type{f(1, 3, 4, 3), f(3, 1, 2, 2), f(1, 3, 3, 2)}, Second: true},
		Sample{Op: convChain{conv2D{Conv{}.defaults()}, code(2, one(unary{sigmoid}, 0),
			two(binary{sub}, ^0, 1))}, Second: true,
			In: []graph.Type{f(2, 3, 3, 2), f(4, 3, 1, 1), f(2, 4, 3, 2)}},
	)
}
