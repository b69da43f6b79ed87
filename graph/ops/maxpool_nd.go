package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// maxPoolND is the largest element of every window, and its place in its plane, i32. Windows
// are of any size and may have gaps.
type maxPoolND struct{ windows }

func (maxPoolND) Name() string { return "max-pool-nd" }

func (o maxPoolND) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	t, err := o.pooled(in[0])
	if err != nil {
		return nil, err
	}
	if o.elements(in[0]) > math.MaxInt32 {
		return nil, fmt.Errorf("planes of %s have more than 2^31 elements", in[0])
	}
	return []graph.Type{t, {DType: graph.I32, Shape: t.Shape}}, nil
}

func (o maxPoolND) Cost(in, out []graph.Type) graph.Cost {
	n := int64(1)
	for _, s := range o.Axis[:o.N] {
		n *= int64(s.Size)
	}
	return streaming(in, out, n)
}

// VJP puts the gradients where the elements were.
func (o maxPoolND) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if !dout[0].Valid() {
		return none(1)
	}
	x, y := n.In[0].Type(), n.Out[0]
	rows := func(v graph.Value) graph.Value {
		return ReshapeSizes(v, y.Size(0), y.Size(1), o.elements(y))
	}
	d := apply(scatterLast{N: o.elements(x)}, rows(n.Value(1)), rows(dout[0]))
	return []graph.Value{Reshape(d, x.Shape...)}
}

// maxPoolNDCPU splits over planes; a plane has three axes, the first ones of size 1.
func maxPoolNDCPU(o maxPoolND, c *kernel.Call) error {
	x, out, places := c.In[0].F32(), c.Out[0].F32(), c.Out[1].I32()
	b := o.box(c.In[0].Type, c.Out[0].Type)
	size, windows := b.in[0]*b.in[1]*b.in[2], b.out[0]*b.out[1]*b.out[2]
	c.Pool.For(len(x)/size, max(1, grain/4/size), func(lo, hi int) {
		for p := lo; p < hi; p++ {
			plane := x[p*size : (p+1)*size]
			for i := range windows {
				k := b.largest(plane, i)
				out[p*windows+i], places[p*windows+i] = plane[k], int32(k)
			}
		}
	})
	return nil
}

// box is the geometry of windows in planes of three axes.
type box struct {
	axis    [maxSpatial]sweep
	in, out [maxSpatial]int
}

func (w windows) box(x, pooled graph.Type) (b box) {
	for i := range maxSpatial {
		b.axis[i], b.in[i], b.out[i] = sweep{1, 1, 1, 0, 0}, 1, 1
		if k := i - maxSpatial + w.N; k >= 0 {
			b.axis[i], b.in[i], b.out[i] = w.Axis[k], x.Size(2+k), pooled.Size(2+k)
		}
	}
	return b
}

// taps are where the elements of window i are that are inside, along an axis: the first, and
// the end.
func (b *box) taps(axis, i int) (first, end int) {
	s := b.axis[axis]
	first = i*s.Stride - s.Before
	end = min(b.in[axis], first+s.length())
	if first < 0 {
		first += (-first + s.Dilation - 1) / s.Dilation * s.Dilation
	}
	return first, end
}

// largest is where in a plane the largest element of window i is, the first of equals.
func (b *box) largest(plane []float32, i int) int {
	at, most := -1, int64(0)
	d0, d1 := b.taps(0, i/b.out[2]/b.out[1])
	h0, h1 := b.taps(1, i/b.out[2]%b.out[1])
	w0, w1 := b.taps(2, i%b.out[2])
	for d := d0; d < d1; d += b.axis[0].Dilation {
		for h := h0; h < h1; h += b.axis[1].Dilation {
			row := (d*b.in[1] + h) * b.in[2]
			for w := w0; w < w1; w += b.axis[2].Dilation {
				if v := order(plane[row+w]); at < 0 || v > most {
					at, most = row+w, v
				}
			}
		}
	}
	return at
}

func init() {
	kernel.Register(kernel.CPU, maxPoolNDCPU)
	x := func(w []sweep, sizes ...int) Sample {
		o := maxPoolND{windows{N: len(w)}}
		copy(o.Axis[:], w)
		return Sample{Op: o, In: []graph.Type{tensor.Of(graph.F32, sizes...)},
			Fill: fills{0: spaced(0)}, Results: []int{0}, Second: true, Eps: 1e-3}
	}
	register(
		x([]sweep{{3, 2, 2, 1, 1}}, 2, 3, 9),
		x([]sweep{{2, 1, 3, 0, 0}, {3, 2, 1, 2, 1}}, 1, 2, 5, 6),
		x([]sweep{{2, 1, 2, 1, 1}, {2, 2, 1, 0, 0}, {3, 1, 1, 1, 2}}, 2, 1, 4, 4, 3),
		x([]sweep{{300, 3, 1, 0, 0}}, 1, 2, 310),
	)
}
