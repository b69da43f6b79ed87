package ops

import (
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// tileBytesCUDA is tileBytes on a GPU, which is kept busy by more.
const tileBytesCUDA = 64 << 20

// inBF16CUDA computes chains, matrix products and what else has kernels for it on bfloat16 as it
// is; of others it converts operands, computes and rounds, block by block.
func inBF16CUDA(o inBF16, c *cuda.Call) ([]cuda.Command, error) {
	in, out := typesOf(c.In), typesOf(c.Out)
	if code, ok := o.asChain(in, out); ok {
		return chainCUDA(code, c)
	}
	if m, ok := o.halves(in); ok {
		return m.commands(c.In[0], c.In[1], c.Out[0], 0)
	}
	if takesBF16CUDA(o.Op, in, out) {
		return cuda.Commands(o.Op, c)
	}
	t := o.tiling(in, out, tileBytesCUDA, false)
	var list []cuda.Command
	block := func(lo, hi int) error {
		commands, err := o.slabCUDA(t, c, lo, hi)
		list = append(list, commands...)
		return err
	}
	if t.tiled() {
		return list, t.blocks(block)
	}
	return list, block(0, 0)
}

// halves is the operation as a product of two matrices of bfloat16, if a single one makes the
// result: sums of several would be rounded between them.
func (o inBF16) halves(in []graph.Type) (matMul, bool) {
	m, ok := o.Op.(matMul)
	return m, ok && in[0].DType == in[1].DType && (!m.Reduce || m.TransA && !m.TransB)
}

// takesBF16CUDA reports whether an operation's commands are for such operands and results.
func takesBF16CUDA(op graph.Op, in, out []graph.Type) bool {
	return hasForm(formBF16CUDA(op), in, out)
}

// formBF16CUDA is the form of operands and results of which the commands of an operation read and
// write bfloat16 as it is: those that have many elements, while sums, statistics and scales are
// f32. They compute in f32, and round results once. A star is either.
func formBF16CUDA(op graph.Op) string {
	switch op.(type) {
	case conv2D, convInputGrad, convFilterGrad, softmaxGrad:
		return "hh>h"
	case softmax, windowSum, windowSpread:
		return "h>h"
	case sum, sumLike, sumSquares, logSumExp:
		return "h>f"
	case crossEntropy, correct:
		return "h.>f"
	case crossEntropyGrad:
		return "h.f>h"
	case binary, clippedReluGrad:
		return "**>*"
	case clippedRelu:
		return "*>*"
	case dropout, noiseWindow:
		return "h.>h"
	case lstm:
		return "*ff**>*ff"
	case lstmGrad:
		return "*f***ff*>*ff**"
	case ctc:
		return "h...>f"
	case ctcGrad:
		return "h...f>f"
	case batchNorm:
		return "hff>hff"
	case batchNormGrad:
		return "hfffh>hff"
	case maxPool, topK:
		return "h>h."
	case embedding, embeddingPart:
		return "h.>h"
	case maxPoolGrad, embeddingGrad, embeddingPartGrad, takeGrad:
		return ".h>h"
	case layerNorm, layerOver:
		return "hff>h"
	case rmsNorm:
		return "hf>h"
	case layerNormGrad, rmsNormGrad:
		return "hfh>h"
	case layerOverGrad:
		return "hfh>hff"
	case layerScaleGrad, rmsScaleGrad:
		return "hh>f"
	case groupedMatMul, groupedMatMulPart, groupedOuter, groupedOuterPart, expertOuter:
		return "hh.>h"
	case expertMatMul:
		return "hhh.>h"
	}
	return formOfAttention(op)
}

// formOfAttention is the form of what computes attention: what masks, drops and turns is whole.
func formOfAttention(op graph.Op) string {
	switch o := op.(type) {
	case attention:
		return "hhh" + strings.Repeat(".", o.masks()) + ">hf"
	case attentionGrad:
		return "hhhfhf" + strings.Repeat(".", o.Of.masks()) + ">hhh"
	case rotary:
		return "h." + strings.Repeat(".", flag(o.Rated)) + ">h"
	}
	return ""
}

// kernelOf is the name of the kernel for elements of an operand's type: there is a second one for
// bfloat16.
func kernelOf(name string, o cuda.Operand) string {
	if o.Type.DType == graph.BF16 {
		return name + "_16"
	}
	return name
}

// slabCUDA computes rows lo to hi-1, or all.
func (o inBF16) slabCUDA(t tiling, c *cuda.Call, lo, hi int) ([]cuda.Command, error) {
	b := o.slab(t, lo, hi)
	inner := cuda.Call{TF32: c.TF32, Scratch: c.Scratch}
	var before, after []cuda.Command
	take := func(ty graph.Type) cuda.Operand {
		x := cuda.Operand{Addr: inner.Scratch, Type: ty}
		inner.Scratch += uint64(padded(ty.Bytes()))
		return x
	}
	for i, v := range c.In {
		v = t.rowsCUDA(v, b.in[i], t.cut.In, i, lo)
		if t.fromBF16[i] {
			x := take(b.in[i])
			before = append(before, overElements("widen", elems(x), x, v, elems(x)))
			v = x
		}
		inner.In = append(inner.In, v)
	}
	for i, v := range c.Out {
		v = t.rowsCUDA(v, b.out[i], t.cut.Out, i, lo)
		if t.toBF16[i] {
			x := take(b.out[i])
			after = append(after, overElements("narrow", elems(x), v, x, elems(x)))
			v = x
		}
		inner.Out = append(inner.Out, v)
	}
	commands, err := cuda.Commands(b.op, &inner)
	return append(append(before, commands...), after...), err
}

// rowsCUDA is what of a value a block has, as rowsOf is on the host.
func (t tiling) rowsCUDA(v cuda.Operand, of graph.Type, cut []int, i, lo int) cuda.Operand {
	of.DType = v.Type.DType
	v.Type = of
	if t.tiled() && cut[i] > 0 {
		v.Addr += uint64(lo) * uint64(of.Bytes()) / uint64(of.Size(0))
	}
	return v
}

// scratchBF16CUDA is what the commands need.
func scratchBF16CUDA(o inBF16, in, out []graph.Type) int64 {
	if _, ok := o.asChain(in, out); ok {
		return 0
	}
	if _, ok := o.halves(in); ok {
		return 0
	}
	if takesBF16CUDA(o.Op, in, out) {
		return cuda.ScratchOf(o.Op, in, out)
	}
	return o.most(o.tiling(in, out, tileBytesCUDA, false), func(b slab) int64 {
		return cuda.ScratchOf(b.op, b.in, b.out)
	})
}

func init() {
	cuda.Register(inBF16CUDA, scratchBF16CUDA)
	cuda.Exact(func(o inBF16) bool { return cuda.IsExact(o.Op) })
	cuda.Convolves(func(o inBF16, in, out []graph.Type) (cuda.Conv, bool) {
		if !takesBF16CUDA(o.Op, in, out) {
			return cuda.Conv{}, false
		}
		return cuda.Convolution(o.Op, in, out)
	})
}
