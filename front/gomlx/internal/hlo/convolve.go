package hlo

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/custom"
)

// Convolve is the convolution of x [n c s…] with filters w [o c/groups k…], over any number of
// axes, of numbers of any type but 16-bit floating-point ones: [n o …]. The window moves over the
// axes s; its size is the filters'.
func Convolve(x, w graph.Value, m Moving, groups int) graph.Value {
	return apply(convolve{Moving: m.lists(), Groups: groups}, x, w)
}

type convolve struct {
	noGradient
	Moving moving
	Groups int
}

func (convolve) Name() string { return "convolve" }

func (o convolve) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	x, w := in[0], in[1]
	if x.DType != w.DType || x.Rank() < 2 || x.Rank() != w.Rank() || o.Groups < 1 ||
		w.Size(0)%o.Groups != 0 || x.Size(1) != w.Size(1)*o.Groups {
		return nil, fmt.Errorf("%s with filters %s in %d groups", x, w, o.Groups)
	}
	for i, k := range w.Sizes()[2:] {
		if o.Moving.Size.At[i] != k {
			return nil, fmt.Errorf("a window of %d along an axis where filters have %d",
				o.Moving.Size.At[i], k)
		}
	}
	sizes, err := o.Moving.over(x.Sizes()[2:])
	if err := errors.Join(err, numeric(x.DType, Sum)); err != nil {
		return nil, err
	}
	return []graph.Type{graph.Of(x.DType, append([]int{x.Size(0), w.Size(0)}, sizes...)...)}, nil
}

func (convolve) Cost(in, out []graph.Type) graph.Cost {
	each := in[1].Elems() / max(1, in[1].Size(0))
	return graph.Cost{FLOPs: 2 * int64(out[0].Elems()) * int64(each),
		Bytes: in[0].Bytes() + in[1].Bytes() + out[0].Bytes()}
}

func convolveCPU(o convolve, c *custom.Call) error {
	x, w, out := c.In[0], c.In[1], c.Out[0]
	clear(out.Data)
	add := arithmeticOf(x.Type.DType).multiply(out, x, w)
	sizes, kernel := x.Type.Sizes()[2:], w.Type.Sizes()[2:]
	steps := strides(graph.Of(graph.U8, sizes...), 1)
	image, filter := graph.Of(graph.U8, sizes...).Elems(), graph.Of(graph.U8, kernel...).Elems()
	channels, each := w.Type.Size(1), w.Type.Size(0)/o.Groups
	places := out.Type.Sizes()
	c.For(out.Type.Elems(), max(1, grain/(1+channels*filter)), func(lo, hi int) {
		at, in := odometer{sizes: places}, odometer{sizes: kernel}
		at.seek(lo)
		for i := lo; i < hi; i++ {
			first := at.at[0]*x.Type.Size(1) + at.at[1]/each*channels
			var place [maxRank]int
			copy(place[:], at.at[2:])
			k := at.at[1] * channels * filter
			for more := true; more; more = in.next() {
				if j, ok := o.Moving.element(sizes, steps, place, in.at); ok {
					for ch := range channels {
						add(i, (first+ch)*image+j, k+ch*filter)
					}
				}
				k++
			}
			at.next()
		}
	})
	return nil
}
