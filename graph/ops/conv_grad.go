package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/conv"
)

// ConvTranspose2D is the transpose of Conv2D as a linear map, which makes images
// larger: from x [n o h w] and filters w [o c/groups kh kw] to [n c H W], the
// images that Conv2D with the same c takes to images of x's size. With a stride there
// are several such sizes; size chooses H and W, and zeros the smallest.
func ConvTranspose2D(x, w graph.Value, c Conv, size [2]int) graph.Value {
	c = c.defaults()
	if x.Valid() && w.Valid() && x.Type().Rank() == 4 && w.Type().Rank() == 4 {
		for i := range size {
			if size[i] == 0 {
				span := c.Dilation[i]*(w.Type().Size(2+i)-1) + 1
				size[i] = (x.Type().Size(2+i)-1)*c.Stride[i] + span - c.Pad[i] - c.Pad[i+2]
			}
		}
	}
	return apply(convInputGrad{c, size[0], size[1]}, x, w)
}

// convInputGrad is the gradient of conv2D's images, of H×W elements, from those of
// its result and the filters.
type convInputGrad struct {
	Conv
	H, W int
}

func (convInputGrad) Name() string { return "conv2d_input_grad" }

func (o convInputGrad) shape(in []graph.Type) (s conv.Shape, err error) {
	if err := images(in); err != nil {
		return s, err
	}
	dy, w := in[0], in[1]
	groups := max(1, o.Groups)
	s = o.Conv.shape(dy.Size(0), w.Size(1)*groups, o.H, o.W, w.Size(0), w.Size(2), w.Size(3))
	return s, checkResult(s, dy)
}

// checkResult checks a shape, and that its result is of type dy.
func checkResult(s conv.Shape, dy graph.Type) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.OutC != dy.Size(1) || s.OutH() != dy.Size(2) || s.OutW() != dy.Size(3) {
		return fmt.Errorf("gradient %s of a result of %d channels, %d×%d", dy, s.OutC, s.OutH(),
			s.OutW())
	}
	return nil
}

func (o convInputGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	s, err := o.shape(in)
	if err != nil {
		return nil, err
	}
	return imageType(in[0], s.InC, s.InH, s.InW), nil
}

func (o convInputGrad) Cost(in, out []graph.Type) graph.Cost {
	s, err := o.shape(in)
	if err != nil {
		return graph.Cost{}
	}
	return graph.Cost{FLOPs: s.FLOPs(), Bytes: bytes(in, out), Scratch: conv.ScratchGradInput(s)}
}

func (o convInputGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	dy, w, ddx := n.In[0], n.In[1], dout[0]
	return []graph.Value{Conv2D(ddx, w, o.Conv), o.filterGrad(ddx, dy, w.Type())}
}

func convInputGradCPU(o convInputGrad, c *kernel.Call) error {
	s, err := o.shape([]graph.Type{c.In[0].Type, c.In[1].Type})
	if err != nil {
		return err
	}
	conv.GradInput(c.Pool, s, c.In[0].F32(), c.In[1].F32(), c.Out[0].F32(), floats(c.Scratch))
	return nil
}

// convFilterGrad is the gradient of conv2D's filters, of KH×KW elements, from its
// images and the gradients of its result.
type convFilterGrad struct {
	Conv
	KH, KW int
}

func (convFilterGrad) Name() string { return "conv2d_filter_grad" }

func (o convFilterGrad) shape(in []graph.Type) (s conv.Shape, err error) {
	if err := images(in); err != nil {
		return s, err
	}
	x, dy := in[0], in[1]
	if x.Size(0) != dy.Size(0) {
		return s, fmt.Errorf("batches of %d and %d images", x.Size(0), dy.Size(0))
	}
	s = o.Conv.shape(x.Size(0), x.Size(1), x.Size(2), x.Size(3), dy.Size(1), o.KH, o.KW)
	return s, checkResult(s, dy)
}

func (o convFilterGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	s, err := o.shape(in)
	if err != nil {
		return nil, err
	}
	return []graph.Type{{DType: graph.F32, Shape: []graph.Dim{
		{Size: s.OutC}, {Size: s.InC / s.Groups}, {Size: s.KH}, {Size: s.KW},
	}}}, nil
}

func (o convFilterGrad) Cost(in, out []graph.Type) graph.Cost {
	s, err := o.shape(in)
	if err != nil {
		return graph.Cost{}
	}
	return graph.Cost{FLOPs: s.FLOPs(), Bytes: bytes(in, out), Scratch: conv.ScratchGradFilter(s)}
}

func (o convFilterGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, dy, ddw := n.In[0], n.In[1], dout[0]
	return []graph.Value{o.inputGrad(dy, ddw, x.Type()), Conv2D(x, ddw, o.Conv)}
}

func convFilterGradCPU(o convFilterGrad, c *kernel.Call) error {
	s, err := o.shape(inF32([]graph.Type{c.In[0].Type, c.In[1].Type}))
	if err != nil {
		return err
	}
	conv.GradFilterOf(c.Pool, s, sourceOf(c.In[0]), c.In[1].F32(), c.Out[0].F32(),
		floats(c.Scratch))
	return nil
}

// sourceOf is images as they are, of f32 or of bfloat16.
func sourceOf(v tensor.View) conv.Source {
	if half(v.Type) {
		return conv.Source{BF16: v.U16()}
	}
	return conv.Source{F32: v.F32()}
}

func init() {
	kernel.Register(kernel.CPU, convInputGradCPU)
	kernel.Register(kernel.CPU, convFilterGradCPU)
	for _, v := range convVariants() {
		o, x, w := v.Op.(conv2D), v.In[0], v.In[1]
		y, _ := o.Infer(v.In)
		register(
			Sample{Op: convInputGrad{o.Conv, x.Size(2), x.Size(3)}, In: []graph.Type{y[0], w},
				Second: true},
			Sample{Op: convFilterGrad{o.Conv, w.Size(2), w.Size(3)}, In: []graph.Type{x, y[0]},
				Second: true},
		)
	}
}
