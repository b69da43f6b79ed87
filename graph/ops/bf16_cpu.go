package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// inBF16CPU converts operands, computes and rounds, block by block.
func inBF16CPU(o inBF16, c *kernel.Call) error {
	in, out := viewTypes(c.In), viewTypes(c.Out)
	if code, ok := o.asChain(in, out); ok {
		newProgram(code, c.In, c.Out[0]).run(c.Pool)
		return nil
	}
	if op, ok := o.asItIs(in, out); ok {
		run, err := kernel.Lookup(kernel.CPU, op)
		if err != nil {
			return err
		}
		return run(op, c)
	}
	if pieces := o.pieces(in, out); pieces != nil {
		for _, p := range pieces {
			if err := p.run(c); err != nil {
				return err
			}
		}
		return nil
	}
	return o.compute(o.tiling(in, out, tileBytes, takesBF16(o.Op)), c)
}

func viewTypes(views []tensor.View) []graph.Type {
	types := make([]graph.Type, len(views))
	for i, v := range views {
		types[i] = v.Type
	}
	return types
}

// compute computes by a tiling.
func (o inBF16) compute(t tiling, c *kernel.Call) error {
	inner := kernel.Call{Pool: c.Pool, In: make([]tensor.View, len(c.In)),
		Out: make([]tensor.View, len(c.Out))}
	if !t.tiled() {
		return o.block(t, c, &inner, 0, 0)
	}
	return t.blocks(func(lo, hi int) error { return o.block(t, c, &inner, lo, hi) })
}

// block computes rows lo to hi-1, or all, by an inner call.
func (o inBF16) block(t tiling, c, inner *kernel.Call, lo, hi int) error {
	b := o.slab(t, lo, hi)
	run, err := kernel.Lookup(kernel.CPU, b.op)
	if err != nil {
		return err
	}
	scratch := c.Scratch
	take := func(ty graph.Type) tensor.View {
		n := ty.Bytes()
		v := tensor.View{Type: ty, Data: scratch[:n:n]}
		scratch = scratch[padded(n):]
		return v
	}
	for i, v := range c.In {
		v = t.rowsOf(v, b.in[i], t.cut.In, i, lo)
		if t.fromBF16[i] {
			x := take(b.in[i])
			each16(c, v.U16(), x.F32(), vec.F32FromBF16)
			v = x
		}
		inner.In[i] = v
	}
	for i, v := range c.Out {
		v = t.rowsOf(v, b.out[i], t.cut.Out, i, lo)
		if t.toBF16[i] {
			v = take(b.out[i])
		}
		inner.Out[i] = v
	}
	inner.Scratch = scratch
	if err := run(b.op, inner); err != nil {
		return err
	}
	for i, v := range inner.Out {
		if t.toBF16[i] {
			half := t.rowsOf(c.Out[i], b.out[i], t.cut.Out, i, lo)
			each16(c, half.U16(), v.F32(), func(x []float32, h []uint16) { vec.BF16FromF32(h, x) })
		}
	}
	return nil
}

// rowsOf is what of a value a block has, which begins with row lo: it has the block's shape,
// and its own element type.
func (t tiling) rowsOf(v tensor.View, of graph.Type, cut []int, i, lo int) tensor.View {
	ty := graph.Type{DType: v.Type.DType, Shape: of.Shape}
	if !t.tiled() || cut[i] == 0 {
		return tensor.View{Type: ty, Data: v.Data}
	}
	row := len(v.Data) / t.cut.Rows
	return tensor.View{Type: ty, Data: v.Data[lo*row : lo*row+int(ty.Bytes())]}
}

// each16 converts elements between two and four bytes on the call's threads.
func each16(c *kernel.Call, half []uint16, x []float32, f func([]float32, []uint16)) {
	c.Pool.For(len(x), grain, func(lo, hi int) { f(x[lo:hi], half[lo:hi]) })
}

// takesBF16 reports whether an operation's kernel reads matrices of bfloat16 as they are: it has
// the bits of the same numbers in f32.
func takesBF16(op graph.Op) bool {
	_, ok := op.(matMul)
	return ok
}

// asChain is the operation as a chain, which reads and writes bfloat16 by itself, if it is
// elementwise.
func (o inBF16) asChain(in, out []graph.Type) (chain, bool) {
	e, ok := isElementwise(o)
	if !ok || len(in) > 2 {
		return chain{}, false
	}
	for _, t := range in {
		if _, ok := spreadOver(t, out[0]); !ok && t.DType != graph.I32 {
			return chain{}, false
		}
	}
	return single(e, len(in)), true
}

// tile computes the operation and rounds.
func (o inBF16) tile(dst, x, y []float32, seed []int32, at int) {
	o.Op.(elementwise).tile(dst, x, y, seed, at)
	if !o.rounds(0) {
		return
	}
	for i, x := range dst {
		dst[i] = tensor.FromBF16(tensor.ToBF16(x))
	}
}

func init() {
	kernel.Register(kernel.CPU, inBF16CPU)
	h := func(sizes ...int) graph.Type { return tensor.Of(graph.BF16, sizes...) }
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	fixed := []int{0, 1, 2} // differences of operands vanish in rounding
	register(
		Sample{Op: inBF16{matMul{}, 1}, In: []graph.Type{h(2, 3, 4), h(4, 5)}, NoGrad: fixed[:2]},
		Sample{Op: inBF16{matMul{TransA: true}, 0}, In: []graph.Type{h(4, 3), f(4, 5)},
			NoGrad: fixed[:2]},
		Sample{Op: inBF16{matMul{TransB: true, Reduce: true}, 1},
			In: []graph.Type{f(2, 3, 4), h(2, 5, 4)}, NoGrad: fixed[:2]},
		Sample{Op: inBF16{unary{tanh}, 1}, In: []graph.Type{h(3, 17)}, NoGrad: fixed[:1]},
		Sample{Op: inBF16{binary{mul}, 1}, In: []graph.Type{h(3, 17), f(17)}, NoGrad: fixed[:2]},
		Sample{Op: inBF16{binary{mul}, 1}, In: []graph.Type{h(3, 5, 1), f(3, 1, 4)},
			NoGrad: fixed[:2]},
		Sample{Op: inBF16{dropout{Rate: 0.5}, 1}, In: []graph.Type{h(3, 17),
			tensor.Of(graph.I32, 2)}, NoGrad: fixed[:2]},
		Sample{Op: inBF16{softmax{}, 1}, In: []graph.Type{h(3, 17)}, NoGrad: fixed[:1]},
		Sample{Op: inBF16{crossEntropy{}, 0}, In: []graph.Type{h(4, 5), tensor.Of(graph.I32, 4)},
			NoGrad: fixed[:2]},
		Sample{Op: inBF16{softmaxGrad{}, 1}, In: []graph.Type{f(3, 17), h(3, 17)},
			NoGrad: fixed[:2]},
		Sample{Op: inBF16{sum{0, 1, false}, 0}, In: []graph.Type{h(9, 5)}, NoGrad: fixed[:1]},
		Sample{Op: inBF16{layerNorm{1e-5}, 1}, In: []graph.Type{h(6, 8), f(8), h(8)},
			NoGrad: fixed},
		Sample{Op: code(3, two(inBF16{binary{add}, 1}, 0, 1),
			two(inBF16{dropout{Rate: 0.4, Salt: 7}, 1}, ^0, 2)), In: []graph.Type{h(3, 17),
			h(3, 1), tensor.Of(graph.I32, 2)}, NoGrad: fixed},
	)
}
