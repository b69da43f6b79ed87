package ops

import (
	"fmt"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
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
	if h < 1 || w < 1 || in[0].Size(2) == 0 || in[0].Size(3) == 0 {
		return nil, fmt.Errorf("images of %s cannot be resized to %d×%d", in[0], h, w)
	}
	return []graph.Type{framed(in[0], h, w)}, nil
}

func (o bilinear) Infer(in []graph.Type) ([]graph.Type, error) { return framing(in, o.H, o.W) }

func (bilinear) Cost(in, out []graph.Type) graph.Cost {
	c := streaming(in, out, 8)
	c.Scratch = resizeScratch(in[0], out[0])
	return c
}

func (o bilinear) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	h, w := frameSize(n.In[0].Type())
	return []graph.Value{apply(bilinearGrad{h, w}, dout[0])}
}

// between is where element i of n lies among those of a source of m elements, with
// ratio m/n: lo with weight 1−f and hi with weight f.
func between(i int, ratio float64, m int) (lo, hi int, f float32) {
	at := float64((float64(i)+0.5)*ratio) - 0.5
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

// neighbours is where the elements of a row of a resized plane lie in a row of the
// plane.
type neighbours struct {
	left, right []int32
	along       []float32 // the weight of right
}

// resizeBlocks is the number of blocks of planes.
func resizeBlocks(from, to graph.Type) int {
	size := from.Size(2)*from.Size(3) + to.Size(2)*to.Size(3)
	return blocksOf(from.Size(0)*from.Size(1), size, 1)
}

// resizeScratch is the bytes of neighbours, and of a row for every block.
func resizeScratch(from, to graph.Type) int64 {
	return 4 * (3*int64(to.Size(3)) + int64(resizeBlocks(from, to))*int64(from.Size(3)))
}

// planes visits the planes in parallel: f gets a plane's number, the neighbours of
// a row's elements, and a row of scratch.
func (s scaling) planes(c *kernel.Call, from, to graph.Type,
	f func(plane int, n neighbours, row []float32)) {
	scratch := floats(c.Scratch)
	at := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(scratch))), 2*s.ow)
	n := neighbours{at[:s.ow], at[s.ow:], scratch[2*s.ow : 3*s.ow]}
	ratio := float64(s.w) / float64(s.ow)
	for x := range s.ow {
		left, right, along := between(x, ratio, s.w)
		n.left[x], n.right[x], n.along[x] = int32(left), int32(right), along
	}
	rows, planes, blocks := scratch[3*s.ow:], from.Size(0)*from.Size(1), resizeBlocks(from, to)
	c.Pool.Run(blocks, func(b int) {
		lo, hi := block(b, blocks, planes)
		for i := lo; i < hi; i++ {
			f(i, n, rows[b*s.w:(b+1)*s.w])
		}
	})
}

func bilinearCPU(_ bilinear, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	from, to := c.In[0].Type, c.Out[0].Type
	s := scalingOf(from, to)
	s.planes(c, from, to, func(i int, n neighbours, row []float32) {
		s.resize(out[i*s.oh*s.ow:(i+1)*s.oh*s.ow], x[i*s.h*s.w:(i+1)*s.h*s.w], n, row)
	})
	return nil
}

// resize interpolates between two rows of a plane, and then between the elements of
// that row.
func (s scaling) resize(out, plane []float32, n neighbours, row []float32) {
	vertical := float64(s.h) / float64(s.oh)
	left, right := n.left, n.right
	for y := range s.oh {
		top, bottom, down := between(y, vertical, s.h)
		vec.MulScalar(row, plane[top*s.w:(top+1)*s.w], 1-down)
		vec.Axpy(row, down, plane[bottom*s.w:(bottom+1)*s.w])
		to := out[y*s.ow : (y+1)*s.ow]
		for x, along := range n.along[:len(to)] {
			a, b := row[left[x]], row[right[x]]
			to[x] = float32((1-along)*a) + float32(along*b)
		}
	}
}

// bilinearGrad gives images of H×W what bilinear takes from them.
type bilinearGrad struct{ H, W int }

func (bilinearGrad) Name() string { return "resize-bilinear-grad" }

func (o bilinearGrad) Infer(in []graph.Type) ([]graph.Type, error) { return framing(in, o.H, o.W) }

func (bilinearGrad) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: 8 * int64(in[0].Elems()), Bytes: bytes(in, out),
		Scratch: resizeScratch(out[0], in[0])}
}

func (o bilinearGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	h, w := frameSize(n.In[0].Type())
	return []graph.Value{ResizeBilinear(dout[0], h, w)}
}

func bilinearGradCPU(_ bilinearGrad, c *kernel.Call) error {
	d, out := c.In[0].F32(), c.Out[0].F32()
	from, to := c.Out[0].Type, c.In[0].Type
	s := scalingOf(from, to)
	s.planes(c, from, to, func(i int, n neighbours, row []float32) {
		s.spread(out[i*s.h*s.w:(i+1)*s.h*s.w], d[i*s.oh*s.ow:(i+1)*s.oh*s.ow], n, row)
	})
	return nil
}

// spread is the transpose of resize: it gives the elements of a row what those of a
// resized row took from them, and then two rows of the plane.
func (s scaling) spread(plane, d []float32, n neighbours, row []float32) {
	clear(plane)
	vertical := float64(s.h) / float64(s.oh)
	left, right := n.left, n.right
	for y := range s.oh {
		top, bottom, down := between(y, vertical, s.h)
		from := d[y*s.ow : (y+1)*s.ow]
		clear(row)
		for x, along := range n.along[:len(from)] {
			row[left[x]] += float32((1 - along) * from[x])
			row[right[x]] += float32(along * from[x])
		}
		vec.Axpy(plane[top*s.w:(top+1)*s.w], 1-down, row)
		vec.Axpy(plane[bottom*s.w:(bottom+1)*s.w], down, row)
	}
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
