package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/conv"
)

// Conv says how a filter moves over an image. Pairs are vertical and horizontal.
type Conv struct {
	Stride   [2]int // zero means 1
	Dilation [2]int // distance of the filter's elements; zero means 1
	Pad      [4]int // zeros above, left of, below and right of the image
	Groups   int    // into which channels fall, without mixing; zero means 1
}

// SamePad is the padding that keeps an image's size under an odd filter of k×k with
// stride 1.
func SamePad(k int) [4]int { return [4]int{k / 2, k / 2, k / 2, k / 2} }

// defaults replaces zeros by what they mean.
func (c Conv) defaults() Conv {
	for _, p := range []*int{&c.Stride[0], &c.Stride[1], &c.Dilation[0], &c.Dilation[1],
		&c.Groups} {
		if *p == 0 {
			*p = 1
		}
	}
	return c
}

// shape is the convolution of images of ch×h×w elements by o filters of kh×kw.
func (c Conv) shape(batch, ch, h, w, o, kh, kw int) conv.Shape {
	c = c.defaults()
	return conv.Shape{
		Batch: batch, InC: ch, InH: h, InW: w, OutC: o, KH: kh, KW: kw,
		StrideH: c.Stride[0], StrideW: c.Stride[1], DilH: c.Dilation[0], DilW: c.Dilation[1],
		PadTop: c.Pad[0], PadLeft: c.Pad[1], PadBottom: c.Pad[2], PadRight: c.Pad[3],
		Groups: c.Groups,
	}
}

// images checks for two operands of rank 4.
func images(in []graph.Type) error {
	if err := want(in, graph.F32, graph.F32); err != nil {
		return err
	}
	for i, t := range in {
		if t.Rank() != 4 {
			return fmt.Errorf("operand %d is %s, want four axes", i, t)
		}
	}
	return nil
}

// imageType is a result with the batch axis of an operand.
func imageType(in graph.Type, channels, h, w int) []graph.Type {
	return []graph.Type{tensor.Named(graph.F32, in.Shape[0], graph.Dim{Size: channels},
		graph.Dim{Size: h}, graph.Dim{Size: w})}
}

// Conv2D is the convolution (without a reversal of the filter, as is usual) of
// images x [n c h w] with filters w [o c/groups kh kw]: [n o oh ow], where
// oh = (h + pads - dilation·(kh-1) - 1)/stride + 1 and likewise ow.
func Conv2D(x, w graph.Value, c Conv) graph.Value { return apply(conv2D{c.defaults()}, x, w) }

// conv2D is Conv2D. With convInputGrad and convFilterGrad it is closed under
// differentiation: each is linear in both operands, and the gradients of each are
// the other two.
type conv2D struct{ Conv }

func (conv2D) Name() string { return "conv2d" }

func (o conv2D) shape(in []graph.Type) (s conv.Shape, err error) {
	if err := images(in); err != nil {
		return s, err
	}
	x, w := in[0], in[1]
	s = o.Conv.shape(x.Size(0), x.Size(1), x.Size(2), x.Size(3), w.Size(0), w.Size(2), w.Size(3))
	if err := s.Validate(); err != nil {
		return s, err
	}
	if s.InC/s.Groups != w.Size(1) {
		return s, fmt.Errorf("filters of %d channels for %d in %d groups", w.Size(1), s.InC,
			s.Groups)
	}
	return s, nil
}

func (o conv2D) Infer(in []graph.Type) ([]graph.Type, error) {
	s, err := o.shape(in)
	if err != nil {
		return nil, err
	}
	return imageType(in[0], s.OutC, s.OutH(), s.OutW()), nil
}

func (o conv2D) Cost(in, out []graph.Type) graph.Cost {
	s, err := o.shape(in)
	if err != nil {
		return graph.Cost{}
	}
	return graph.Cost{FLOPs: s.FLOPs(), Bytes: bytes(in, out), Scratch: conv.ScratchForward(s)}
}

func (o conv2D) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, w, dy := n.In[0], n.In[1], dout[0]
	return []graph.Value{o.inputGrad(dy, w, x.Type()), o.filterGrad(x, dy, w.Type())}
}

// inputGrad is the gradient of images of type x.
func (c Conv) inputGrad(dy, w graph.Value, x graph.Type) graph.Value {
	return apply(convInputGrad{c, x.Size(2), x.Size(3)}, dy, w)
}

// filterGrad is the gradient of filters of type w.
func (c Conv) filterGrad(x, dy graph.Value, w graph.Type) graph.Value {
	return apply(convFilterGrad{c, w.Size(2), w.Size(3)}, x, dy)
}

func conv2DCPU(o conv2D, c *kernel.Call) error { return o.compute(c, nil) }

// compute is the kernel; done, if there is one, is called for what is complete.
func (o conv2D) compute(c *kernel.Call, done func(lo, hi int)) error {
	s, err := o.shape([]graph.Type{c.In[0].Type, c.In[1].Type})
	if err != nil {
		return err
	}
	conv.Forward(c.Pool, s, c.In[0].F32(), c.In[1].F32(), c.Out[0].F32(), floats(c.Scratch), done)
	return nil
}

// convVariants are the forms that the samples of the three operations take, with
// the operands of conv2D.
func convVariants() []Sample {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	variant := func(c Conv, x, w graph.Type) Sample {
		return Sample{Op: conv2D{c.defaults()}, In: []graph.Type{x, w}, Second: true}
	}
	return []Sample{
		variant(Conv{}, f(2, 3, 5, 4), f(4, 3, 3, 3)),
		variant(Conv{Pad: SamePad(3)}, f(3, 2, 3, 3), f(5, 2, 3, 3)),
		variant(Conv{Pad: [4]int{0, 1, 2, 0}}, f(1, 1, 3, 4), f(3, 1, 3, 5)),
		variant(Conv{Stride: [2]int{2, 2}, Pad: [4]int{0, 1, 1, 1}}, f(2, 3, 4, 3), f(3, 3, 3, 3)),
		variant(Conv{Stride: [2]int{3, 1}}, f(1, 17, 7, 3), f(2, 17, 4, 2)),
		variant(Conv{Dilation: [2]int{2, 1}, Pad: [4]int{2, 0, 2, 1}}, f(2, 2, 4, 3),
			f(3, 2, 3, 3)),
		variant(Conv{}, f(1, 5, 3, 3), f(3, 5, 1, 1)),
		variant(Conv{}, f(1, 17, 17, 17), f(3, 17, 1, 1)),
		variant(Conv{Stride: [2]int{2, 2}}, f(1, 5, 3, 3), f(2, 5, 1, 1)),
		variant(Conv{Groups: 3, Pad: SamePad(3)}, f(2, 3, 3, 3), f(3, 1, 3, 3)),
		variant(Conv{Groups: 2}, f(2, 4, 4, 3), f(6, 2, 3, 2)),
	}
}

func init() {
	kernel.Register(kernel.CPU, conv2DCPU)
	register(convVariants()...)
}
