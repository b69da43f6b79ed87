package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/tensor"
)

// ResizeBilinear gives images x f32[n c h w] another size by linear interpolation
// along both axes. Elements are squares, so the centre of element i of the
// result is at (i+½)·h/height−½ of x; what lies beyond the outermost centres is as
// at these. Nothing is averaged when an image shrinks.
func ResizeBilinear(x graph.Value, height, width int) graph.Value {
	return apply(bilinear{height, width}, x)
}

// bilinear and bilinearGrad are linear and each other's gradients.
type bilinear struct{ H, W int }

func (bilinear) Name() string { return "resize-bilinear" }

// framing checks images and another size, and is their type of that size.
func framing(in []graph.Type, h, w int) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	if in[0].Rank() != 4 {
		return nil, fmt.Errorf("operand is %s, want four axes", in[0])
	}
	return []graph.Type{framed(in[0], h, w)}, nil
}

func (o bilinear) Infer(in []graph.Type) ([]graph.Type, error) { return framing(in, o.H, o.W) }

func (bilinear) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 8) }

func (o bilinear) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	h, w := frameSize(n.In[0].Type())
	return []graph.Value{apply(bilinearGrad{h, w}, dout[0])}
}

// between is where element i of n lies among those of a source of m elements, with
// ratio m/n: lo with weight 1−f and hi with weight f.
func between(i int, ratio float64, m int) (lo, hi int, f float32) {
	at := (float64(i)+0.5)*ratio - 0.5
	at = min(max(at, 0), float64(m-1))
	lo = int(at)
	return lo, min(lo+1, m-1), float32(at - float64(lo))
}

// scaling is the geometry of planes of h×w elements and of their images of
// oh×ow.
type scaling struct{ h, w, oh, ow int }

func scalingOf(from, to graph.Type) scaling {
	return scaling{from.Size(2), from.Size(3), to.Size(2), to.Size(3)}
}

// corners visits the elements of a resized plane: f gets the four elements that it
// lies between and their weights.
func (s scaling) corners(f func(i int, from [4]int, weight [4]float32)) {
	vertical, horizontal := float64(s.h)/float64(s.oh), float64(s.w)/float64(s.ow)
	for y := range s.oh {
		top, bottom, down := between(y, vertical, s.h)
		for x := range s.ow {
			left, right, along := between(x, horizontal, s.w)
			from := [4]int{top*s.w + left, top*s.w + right, bottom*s.w + left, bottom*s.w + right}
			weight := [4]float32{(1 - down) * (1 - along), (1 - down) * along, down * (1 - along), down * along}
			f(y*s.ow+x, from, weight)
		}
	}
}

// planes visits the planes in parallel: f gets their offsets in the source and in
// the resized images.
func (s scaling) planes(c *kernel.Call, total int, f func(source, resized int)) {
	size := s.h * s.w
	c.Pool.For(total/size, max(1, grain/4/(size+s.oh*s.ow)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i*size, i*s.oh*s.ow)
		}
	})
}

func bilinearCPU(_ bilinear, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	s := scalingOf(c.In[0].Type, c.Out[0].Type)
	s.planes(c, len(x), func(source, resized int) {
		plane := x[source : source+s.h*s.w]
		s.corners(func(i int, from [4]int, weight [4]float32) {
			var sum float32
			for k, w := range weight {
				sum += float32(w * plane[from[k]])
			}
			out[resized+i] = sum
		})
	})
	return nil
}

// bilinearGrad gives images of H×W what bilinear takes from them.
type bilinearGrad struct{ H, W int }

func (bilinearGrad) Name() string { return "resize-bilinear-grad" }

func (o bilinearGrad) Infer(in []graph.Type) ([]graph.Type, error) { return framing(in, o.H, o.W) }

func (bilinearGrad) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: 8 * int64(in[0].Elems()), Bytes: bytes(in, out)}
}

func (o bilinearGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	h, w := frameSize(n.In[0].Type())
	return []graph.Value{ResizeBilinear(dout[0], h, w)}
}

func bilinearGradCPU(_ bilinearGrad, c *kernel.Call) error {
	d, out := c.In[0].F32(), c.Out[0].F32()
	s := scalingOf(c.Out[0].Type, c.In[0].Type)
	s.planes(c, len(out), func(source, resized int) {
		plane := out[source : source+s.h*s.w]
		clear(plane)
		s.corners(func(i int, from [4]int, weight [4]float32) {
			for k, w := range weight {
				plane[from[k]] += float32(w * d[resized+i])
			}
		})
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, bilinearCPU)
	kernel.Register(kernel.CPU, bilinearGradCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: bilinear{8, 6}, In: []graph.Type{f(2, 3, 4, 3)}, Second: true},
		Sample{Op: bilinear{3, 2}, In: []graph.Type{f(1, 1, 5, 7)}, Second: true},
		Sample{Op: bilinear{1, 17}, In: []graph.Type{f(3, 1, 5, 1)}, Second: true},
		Sample{Op: bilinearGrad{4, 3}, In: []graph.Type{f(2, 3, 8, 6)}, Second: true},
		Sample{Op: bilinearGrad{5, 7}, In: []graph.Type{f(1, 1, 3, 2)}, Second: true},
	)
}
