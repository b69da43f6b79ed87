package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/quant"
)

// LinearCrossEntropyPacked is [LinearCrossEntropy] by a matrix whose rows are packed as
// [PackedType] says, as many as there are classes: x f32[… k], labels i32[…] → f32[…]. The matrix
// has no gradient. Bits are those of [MatMulPacked] and [CrossEntropy], and of their gradients.
func LinearCrossEntropyPacked(x, w, labels graph.Value, format string,
	smoothing float32) graph.Value {
	if !x.Valid() || !w.Valid() || !labels.Valid() {
		return graph.Value{}
	}
	f, err := quant.Parse(format)
	if err == nil && x.Type().Rank() < 2 {
		err = fmt.Errorf("linear cross-entropy of %s: want two axes or more", x)
	}
	if err != nil {
		x.Graph().Fail(err)
		return graph.Value{}
	}
	of := linearLoss{Trans: true, Smoothing: smoothing}
	return apply(fixedLoss{Of: of, Format: f, Width: x.Type().Size(-1)}, x, w, labels)
}

// fixedLoss is the cross-entropy of a product by a matrix that is not trained: rows of Width
// elements in a format of few bits, or f32.
type fixedLoss struct {
	Of     linearLoss
	Format quant.Format // 0: f32
	Width  int          // 0 in f32
}

func (fixedLoss) Name() string { return "fixed-linear-cross-entropy" }

// packed is a product by rows of few bits, to logits or back.
func (o fixedLoss) packed(back bool) packedMatMul {
	return packedMatMul{Format: o.Format, Width: o.Width, Back: back}
}

// note calls f with the matrix, if it is packed, and how.
func (o fixedLoss) note(w graph.Value, f func(w graph.Value, format quant.Format, width int)) {
	if o.Format != 0 {
		f(w, o.Format, o.Width)
	}
}

// product is the operation that makes logits, or, back, rows of their gradient.
func (o fixedLoss) product(back bool) graph.Op {
	switch {
	case o.Format != 0:
		return o.packed(back)
	case back:
		return o.Of.dx()
	}
	return o.Of.logits()
}

func (o fixedLoss) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 3); err != nil {
		return nil, err
	}
	in = append([]graph.Type(nil), in...)
	if o.Format != 0 {
		if err := checkPacked(in[1], o.Width, o.Format); err != nil {
			return nil, err
		}
		in[1] = tensor.Of(graph.F32, in[1].Size(0), o.Width)
	}
	return o.Of.Infer(in)
}

// Cost is that of the product and of the losses.
func (o fixedLoss) Cost(in, out []graph.Type) graph.Cost {
	b := o.blocks(in)
	return graph.Cost{FLOPs: b.flops(2) + 14*int64(b.n)*int64(b.v), Bytes: bytes(in, out),
		Scratch: o.scratch(b)}
}

// scratch is that for the logits of a block, and for its rows as the product rounds them.
func (o fixedLoss) scratch(b lossBlocks) int64 {
	if o.Format == 0 {
		return b.logits(b.rows).Bytes()
	}
	return b.beside() + int64(b.rows)*o.packed(false).rounded()
}

// beside is where in scratch the rows are.
func (b lossBlocks) beside() int64 { return (b.logits(b.rows).Bytes() + 63) &^ 63 }

// VJP: the matrix is not trained.
func (o fixedLoss) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	all := applyN(2, fixedLossGrad(o), n.In[0], n.In[1], n.In[2], dout[0])
	return []graph.Value{all[1], {}, {}}
}

// CheckData wants labels that are classes.
func (o fixedLoss) CheckData(in []tensor.View) error {
	return checkIDs(known(in[2]), o.blocks([]graph.Type{in[0].Type, in[1].Type}).v)
}

// fixedRows is how many rows have their logits at a time, at most.
const fixedRows = 512

// blocks are of any rows, since there is no sum over them.
func (o fixedLoss) blocks(in []graph.Type) lossBlocks {
	lead := graph.Type{Shape: in[0].Shape[:in[0].Rank()-1]}
	b := lossBlocks{n: lead.Elems(), d: in[0].Size(-1)}
	if _, b.v = flip(in[1], o.Of.Trans); o.Format != 0 {
		b.v = in[1].Size(0)
	}
	b.rows = max(1, min(b.n, fixedRows, mostRows(b.v)))
	return b
}

// multiply computes a product of some of n rows, with the bits that it has of all.
func (o fixedLoss) multiply(c *kernel.Call, n int, back bool) error {
	if o.Format != 0 {
		return packedMatMulCPU(o.packed(back).ordered(n, c.In[1].Type), c)
	}
	p := o.Of.logits()
	if back {
		p = o.Of.dx()
	}
	return p.compute(c, p.ordered(n, c.Out[0].Type.Size(-1), c.In[0].Type.Size(-1)))
}

// backwards makes rows' gradients of logits, which it overwrites with theirs.
func (o fixedLoss) backwards(c *kernel.Call, b lossBlocks, lo, hi int, logits tensor.View) error {
	g := kernel.Call{In: []tensor.View{logits, rowBlock(c.In[2], lo, hi),
		rowBlock(c.In[3], lo, hi)}, Out: []tensor.View{logits}, Pool: c.Pool}
	if err := crossEntropyGradCPU(crossEntropyGrad{o.Of.Smoothing}, &g); err != nil {
		return err
	}
	dx := kernel.Call{In: []tensor.View{logits, c.In[1]},
		Out: []tensor.View{rowBlock(c.Out[1], lo, hi, b.d)}, Pool: c.Pool}
	return o.multiply(&dx, b.n, true)
}

func fixedLossCPU(o fixedLoss, c *kernel.Call) error {
	b := o.blocks([]graph.Type{c.In[0].Type, c.In[1].Type})
	return o.each(c, b, func(int, int, tensor.View) error { return nil })
}

// fixedLossGrad is the losses, and the gradient of rows from that of the losses: operands x, w,
// labels and the gradient.
type fixedLossGrad fixedLoss

func (fixedLossGrad) Name() string { return "fixed-linear-cross-entropy-grad" }

func (o fixedLossGrad) loss() fixedLoss { return fixedLoss(o) }

func (o fixedLossGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	losses, err := lossesOf(in, o.loss().Infer)
	if err != nil {
		return nil, err
	}
	return []graph.Type{losses, in[0]}, nil
}

// Cost is that of two products, of the losses and of the gradient of the logits.
func (o fixedLossGrad) Cost(in, out []graph.Type) graph.Cost {
	b := o.loss().blocks(in)
	return graph.Cost{FLOPs: b.flops(4) + 31*int64(b.n)*int64(b.v), Bytes: bytes(in, out),
		Scratch: o.loss().scratch(b)}
}

// CheckData wants labels that are classes.
func (o fixedLossGrad) CheckData(in []tensor.View) error { return o.loss().CheckData(in[:3]) }

// VJP is by composition: logits, and their gradient, are values. The matrix is not trained.
func (o fixedLossGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, w, labels, d := n.In[0], n.In[1], n.In[2], n.In[3]
	loss, ofLogits := o.loss(), crossEntropyGrad{o.Of.Smoothing}
	logits := apply(loss.product(false), x, w)
	var back, dd graph.Value
	if a := dout[1]; a.Valid() {
		gradient := apply(ofLogits, logits, labels, d)
		all := ofLogits.VJP(gradient.Node, []graph.Value{apply(loss.product(false), a, w)})
		back, dd = all[0], all[2]
	}
	if l := dout[0]; l.Valid() {
		back = plus(back, apply(ofLogits, logits, labels, l))
	}
	return []graph.Value{apply(loss.product(true), back, w), {}, {}, dd}
}

func fixedLossGradCPU(o fixedLossGrad, c *kernel.Call) error {
	loss := o.loss()
	b := loss.blocks([]graph.Type{c.In[0].Type, c.In[1].Type})
	return loss.each(c, b, func(lo, hi int, logits tensor.View) error {
		return loss.backwards(c, b, lo, hi, logits)
	})
}

func init() {
	kernel.Register(kernel.CPU, fixedLossCPU)
	kernel.Register(kernel.CPU, fixedLossGradCPU)
	for _, s := range fixedLossSamples() {
		register(s)
	}
}

// fixedLossSamples are of matrices of f32, of few bits and of 16.
func fixedLossSamples() (list []Sample) {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	add := func(o fixedLoss, x, w, labels graph.Type) {
		fill := fills{2: below(o.blocks([]graph.Type{x, w}).v)}
		if w.DType == graph.U8 {
			fill[1] = packedRows(o.Format, o.Width)
		}
		in := []graph.Type{x, w, labels}
		a := Sample{Op: o, In: in, Fill: fill, NoGrad: []int{1, 2}, Second: true}
		b := Sample{Op: fixedLossGrad(o), In: append(in[:3:3], f(labels.Sizes()...)), Fill: fill,
			NoGrad: []int{1, 2}, Second: true, Tol: 2e-2}
		if o.packed(false).rounded() > 0 { // in steps, which differences show
			a.NoGrad, a.Second = []int{0, 1, 2}, false
			b.NoGrad, b.Second = a.NoGrad, false
		}
		list = append(list, a, b)
	}
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	rows := linearLoss{Trans: true, Smoothing: 0.1}
	add(fixedLoss{}, f(3, 4), f(4, 5), ids(3))
	add(fixedLoss{Of: rows}, f(2, 2, 3), f(5, 3), ids(2, 2))
	add(fixedLoss{Of: rows, Format: quant.BF16, Width: 7}, f(2, 3, 7), tensor.Of(graph.BF16, 5, 7),
		ids(2, 3))
	add(fixedLoss{Of: rows, Format: quant.Q8_0, Width: 32}, f(3, 32), tensor.Of(graph.U8, 5, 34),
		ids(3))
	return list
}
