package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Split is along all axes: over those that are added up, a sum is one of sums.
func (s sum) Split(in, _ []graph.Type) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, in[0])
	added := axes[s.Lo:s.Hi]
	sums(&r, added...)
	kept := append([][]int{}, axes[:s.Lo]...)
	if s.Keep {
		kept = append(kept, make([][]int, s.Hi-s.Lo)...)
	}
	r.In, r.Out = [][][]int{axes}, [][][]int{append(kept, axes[s.Hi:]...)}
	r.Adds = [][]int{{0}}
	whole := s.geometry(in[0])
	r.Local = func(at []graph.Part) graph.Op {
		own := s.geometry(part(in[0], axes, at))
		if divided(at, added...) || own.blocks == whole.blocks && own.side == whole.side {
			return s
		}
		return sumLike{s, whole.blocks, whole.side}
	}
	return r, true
}

// sumLike is some of the sums of a value, added up as all are: in so many blocks of rows,
// of which so many are added side by side. How many are best depends on how many sums there
// are, and the bits on that.
type sumLike struct {
	Sum          sum
	Blocks, Side int
}

func (o sumLike) Name() string { return o.Sum.Name() }

func (o sumLike) Infer(in []graph.Type) ([]graph.Type, error) {
	if o.Blocks < 1 || o.Side < 0 || o.Side > narrow {
		return nil, fmt.Errorf("a sum in %d blocks, of which %d rows are added at a time",
			o.Blocks, o.Side)
	}
	out, err := o.Sum.Infer(in)
	if r := o.Sum.geometry; err == nil && o.Side == 0 && r(in[0]).inner > 1 {
		err = fmt.Errorf("rows of %s have more than one element", in[0])
	}
	return out, err
}

func (o sumLike) geometry(t graph.Type) reduction {
	r := o.Sum.geometry(t)
	r.blocks, r.side = o.Blocks, o.Side
	return r
}

// Cost: the scratch holds the partial sums.
func (o sumLike) Cost(in, out []graph.Type) graph.Cost {
	c := graph.Cost{FLOPs: int64(in[0].Elems()), Bytes: bytes(in, out)}
	if o.Blocks > 1 {
		c.Scratch = int64(o.Blocks) * out[0].Bytes()
	}
	return c
}

// VJP is that of any sum.
func (o sumLike) VJP(n *graph.Node, dout []graph.Value) []graph.Value { return o.Sum.VJP(n, dout) }

func sumLikeCPU(o sumLike, c *kernel.Call) error {
	o.geometry(c.In[0].Type).sum(c)
	return nil
}

// Split is along all axes, over which the result is a sum; so is each of two.
func (sumSquares) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, in[0])
	sums(&r, axes...)
	r.In, r.Out = [][][]int{axes}, [][][]int{make([][]int, out[0].Rank())}
	return r, true
}

func init() {
	kernel.Register(kernel.CPU, sumLikeCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: sumLike{sum{Lo: 1, Hi: 2}, 3, 8}, In: []graph.Type{f(2, 100, 5)}, Second: true,
			Eps: 1e-1},
		Sample{Op: sumLike{sum{Lo: 0, Hi: 1}, 2, 0}, In: []graph.Type{f(300)}, Second: true,
			Eps: 1e-1},
		Sample{Op: sumLike{sum{Lo: 0, Hi: 1}, 5, 1}, In: []graph.Type{f(17, 3)}, Second: true},
	)
}
