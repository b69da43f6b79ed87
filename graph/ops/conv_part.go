package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/conv"
)

// convFilterPart adds images From and following to what the gradient of the filters of a
// convolution keeps of them. Operand 0 is what it has kept so far, unless From is zero; the images
// and the gradients of the result follow. It is made after differentiation, and has no gradient.
type convFilterPart struct {
	Of   conv.Shape
	From int
}

func (convFilterPart) Name() string { return "conv2d_filter_grad-part" }

// kept is the type of what is kept.
func (o convFilterPart) kept() (graph.Type, error) {
	if err := o.Of.Validate(); err != nil {
		return graph.Type{}, err
	}
	if o.From < 0 || o.From >= o.Of.Batch {
		return graph.Type{}, fmt.Errorf("images from %d on, of %d", o.From, o.Of.Batch)
	}
	images, elements, end := conv.FilterSums(o.Of)
	switch {
	case o.From%images != 0:
		return graph.Type{}, fmt.Errorf("images from %d on, want a multiple of %d", o.From, images)
	case end:
		return tensor.Of(graph.F32, elements), nil
	}
	return tensor.Of(graph.F32, o.Of.OutC, o.Of.InC/o.Of.Groups, o.Of.KH, o.Of.KW), nil
}

// images are the images and the gradients among the operands.
func (o convFilterPart) images(in []graph.Type) []graph.Type {
	return in[min(flag(o.From > 0), len(in)):]
}

func (o convFilterPart) Infer(in []graph.Type) ([]graph.Type, error) {
	kept, err := o.kept()
	if err != nil {
		return nil, err
	}
	rows := o.images(in)
	if err := images(rows); err != nil {
		return nil, err
	}
	s, n := o.Of, rows[0].Size(0)
	x := tensor.Of(graph.F32, n, s.InC, s.InH, s.InW)
	dy := tensor.Of(graph.F32, n, s.OutC, s.OutH(), s.OutW())
	block, _, _ := conv.FilterSums(s)
	rest := s.Batch - o.From
	if n > rest || n%block != 0 && n < rest || !rows[0].SameShape(x) || !rows[1].SameShape(dy) {
		return nil, fmt.Errorf("images %s and gradients %s from %d on, of %d in blocks of %d",
			rows[0], rows[1], o.From, s.Batch, block)
	}
	if o.From > 0 && !in[0].Equal(kept) {
		return nil, fmt.Errorf("they are added to %s, want %s", in[0], kept)
	}
	return []graph.Type{kept}, nil
}

func (o convFilterPart) Cost(in, out []graph.Type) graph.Cost {
	some := o.Of
	some.Batch = o.images(in)[0].Size(0)
	return graph.Cost{FLOPs: some.FLOPs(), Bytes: bytes(in, out),
		Scratch: conv.ScratchFilterPart(o.Of)}
}

// InPlace: images are added to where the sums are.
func (o convFilterPart) InPlace(_, _ []graph.Type) []int { return []int{0}[:flag(o.From > 0)] }

// pieces: it is one, which reads images as they are.
func (o convFilterPart) pieces(in, out []graph.Type) []piece {
	return []piece{{op: o, in: make([]stretch, len(in)), out: make([]stretch, len(out)),
		direct: []int{flag(o.From > 0)}}}
}

func (convFilterPart) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func convFilterPartCPU(o convFilterPart, c *kernel.Call) error {
	in, sums := c.In, c.Out[0].F32()
	if o.From > 0 {
		if kept := in[0].F32(); &kept[0] != &sums[0] {
			copy(sums, kept)
		}
		in = in[1:]
	}
	if n := in[0].Type.Size(0); n > 0 {
		conv.AddFilter(c.Pool, o.Of, o.From, n, sourceOf(in[0]), in[1].F32(), sums,
			floats(c.Scratch))
	} else if o.From == 0 {
		clear(sums)
	}
	return nil
}

// convFilterEnd is the gradient of the filters of what its parts have kept.
type convFilterEnd struct{ Of conv.Shape }

func (convFilterEnd) Name() string { return "conv2d_filter_grad-end" }

func (o convFilterEnd) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	kept, err := convFilterPart{Of: o.Of}.kept()
	if err != nil {
		return nil, err
	}
	if !in[0].Equal(kept) || kept.Rank() != 1 {
		return nil, fmt.Errorf("sums are %s, want %s", in[0], kept)
	}
	s := o.Of
	return []graph.Type{tensor.Of(graph.F32, s.OutC, s.InC/s.Groups, s.KH, s.KW)}, nil
}

// Cost: the scratch holds the sums, which are added up in place.
func (convFilterEnd) Cost(in, out []graph.Type) graph.Cost {
	c := streaming(in, out, 1)
	c.Scratch = in[0].Bytes()
	return c
}

func (convFilterEnd) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

func convFilterEndCPU(o convFilterEnd, c *kernel.Call) error {
	sums := floats(c.Scratch)[:c.In[0].Type.Elems()]
	copy(sums, c.In[0].F32())
	conv.EndFilter(c.Pool, o.Of, sums, c.Out[0].F32())
	return nil
}

// Cut is between blocks of images, in which they are added up.
func (o convFilterGrad) Cut(in, out []graph.Type) (graph.Cut, bool) {
	s, err := o.shape(in)
	if err != nil || s.Batch == 0 {
		return graph.Cut{}, false
	}
	c, ok := cutRows(in, in, 1)
	c.Out = []int{0}
	block, elements, end := conv.FilterSums(s)
	if c.Align = block; end {
		c.Sum, c.Finish = tensor.Of(graph.F32, elements), convFilterEnd{s}
	}
	return c, ok
}

// Part adds images to the sums.
func (o convFilterGrad) Part(in, _ []graph.Type, lo, _ int) graph.Op {
	s, _ := o.shape(in)
	return convFilterPart{Of: s, From: lo}
}

func init() {
	kernel.Register(kernel.CPU, convFilterPartCPU)
	kernel.Register(kernel.CPU, convFilterEndCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	same := Conv{Pad: SamePad(3)}.shape(3, 3, 17, 17, 4, 3, 3)
	_, elements, _ := conv.FilterSums(same)
	flat := Conv{}.shape(3, 5, 17, 17, 4, 1, 1)
	small := Conv{Pad: SamePad(3)}.shape(2, 2, 3, 3, 3, 3, 3)
	register(
		Sample{Op: convFilterPart{Of: small}, In: []graph.Type{f(2, 2, 3, 3), f(2, 3, 3, 3)},
			NoGrad: []int{0, 1}},
		Sample{Op: convFilterPart{Of: same}, NoGrad: []int{0, 1},
			In: []graph.Type{f(2, 3, 17, 17), f(2, 4, 17, 17)}},
		Sample{Op: convFilterPart{same, 1}, NoGrad: []int{0, 1, 2},
			In: []graph.Type{f(elements), f(1, 3, 17, 17), f(1, 4, 17, 17)}},
		Sample{Op: convFilterPart{flat, 1}, NoGrad: []int{0, 1, 2},
			In: []graph.Type{f(4, 5, 1, 1), f(2, 5, 17, 17), f(2, 4, 17, 17)}},
		Sample{Op: convFilterEnd{same}, In: []graph.Type{f(elements)}, NoGrad: []int{0}},
		Sample{Op: convFilterGrad{Conv{Pad: SamePad(3)}.defaults(), 3, 3}, Second: true,
			In: []graph.Type{f(3, 3, 17, 17), f(3, 4, 17, 17)}, Eps: 1e-1},
	)
}
