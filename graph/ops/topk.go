package ops

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// TopK is the k largest elements of every row of the last axis, the largest first
// and the first of equals first, and their positions: x f32[… n] → f32[… k] and
// i32[… k]. NaN is larger than all numbers, as for [Max] and [ArgMax]. The gradient goes to
// those elements.
func TopK(x graph.Value, k int) (values, indices graph.Value) {
	out := applyN(2, topK{K: k}, x)
	return out[0], out[1]
}

// TopKAlong is TopK along any axis, or the smallest elements, the smallest first: NaN comes last
// then.
func TopKAlong(x graph.Value, along, k int, smallest bool) (values, indices graph.Value) {
	if !x.Valid() {
		return
	}
	rank := x.Type().Rank()
	i := axis(along, rank)
	if i < 0 {
		x.Graph().Fail(fmt.Errorf("%s has no axis %d", x.Type(), along))
		return
	}
	if i == rank-1 {
		out := applyN(2, topK{K: k, Least: smallest}, x)
		return out[0], out[1]
	}
	order := axesFrom(0, rank) // of which the axis and the last change places
	order[i], order[rank-1] = rank-1, i
	out := applyN(2, topK{K: k, Least: smallest}, Transpose(x, order...))
	return Transpose(out[0], order...), Transpose(out[1], order...)
}

// Sort is the elements along an axis in ascending order, or in descending order, and where they
// were: f32 and i32. Equals keep their order, and NaN is larger than all numbers. A GPU looks
// through all elements of the axis for each of them.
func Sort(x graph.Value, along int, descending bool) (values, indices graph.Value) {
	n := 0
	if i := axis(along, x.Type().Rank()); i >= 0 {
		n = x.Type().Size(i)
	}
	return TopKAlong(x, along, n, !descending)
}

type topK struct {
	K     int
	Least bool // the smallest
}

func (topK) Name() string { return "top-k" }

func (o topK) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	if in[0].Rank() == 0 || o.K < 1 || o.K > in[0].Size(-1) {
		return nil, fmt.Errorf("the %d %s of rows of %s", o.K, map[bool]string{false: "largest",
			true: "smallest"}[o.Least], in[0])
	}
	t := resized(in[0], in[0].Rank()-1, o.K)
	return []graph.Type{t, {DType: graph.I32, Shape: t.Shape}}, nil
}

func (topK) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[0].Elems()), Bytes: bytes(in, out)}
}

func (topK) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if !dout[0].Valid() {
		return none(1)
	}
	return []graph.Value{apply(scatterLast{N: n.In[0].Type().Size(-1)}, n.Value(1), dout[0])}
}

// topKCPU keeps the first so far in order: few elements displace one, once the first ones are
// there. All of a row are sorted.
func topKCPU(o topK, c *kernel.Call) error {
	x, values, indices := c.In[0].F32(), c.Out[0].F32(), c.Out[1].I32()
	n := c.In[0].Type.Size(-1)
	rows(c, len(x), n, func(lo, hi int) {
		at := lo / n * o.K
		if o.K == n {
			o.sorted(values[at:at+n], indices[at:at+n], x[lo:hi])
			return
		}
		o.first(values[at:at+o.K], indices[at:at+o.K], x[lo:hi])
	})
	return nil
}

// rank is larger for what comes earlier.
func (o topK) rank(v float32) int64 {
	if o.Least {
		return -order(v + 0) // zeros are equal
	}
	return order(v + 0)
}

func (o topK) first(values []float32, indices []int32, row []float32) {
	have, last := 0, int64(0)
	for i, v := range row {
		rank := o.rank(v)
		if have == len(values) && rank <= last {
			continue
		}
		at := min(have, len(values)-1)
		for ; at > 0 && rank > o.rank(values[at-1]); at-- {
			values[at], indices[at] = values[at-1], indices[at-1]
		}
		values[at], indices[at] = v, int32(i)
		have = min(have+1, len(values))
		last = o.rank(values[have-1])
	}
}

func (o topK) sorted(values []float32, indices []int32, row []float32) {
	for i := range indices {
		indices[i] = int32(i)
	}
	slices.SortFunc(indices, func(a, b int32) int {
		return cmp.Or(cmp.Compare(o.rank(row[b]), o.rank(row[a])), cmp.Compare(a, b))
	})
	for i, k := range indices {
		values[i] = row[k]
	}
}

// scatterLast puts elements at positions of rows of N zeros: indices i32[… k],
// d f32[… k] → f32[… N]; elements at one position add up. It and gatherLast are
// linear in f32 operands and each other's gradients.
type scatterLast struct{ N int }

func (scatterLast) Name() string { return "scatter-last" }

func (o scatterLast) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32, graph.F32); err != nil {
		return nil, err
	}
	if in[0].Rank() == 0 || o.N < 0 || !in[0].SameShape(in[1]) {
		return nil, fmt.Errorf("elements %s at positions %s of %d", in[1], in[0], o.N)
	}
	return []graph.Type{resized(in[1], in[1].Rank()-1, o.N)}, nil
}

func (scatterLast) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[1].Elems()), Bytes: bytes(in, out)}
}

func (scatterLast) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{{}, apply(gatherLast{}, n.In[0], dout[0])}
}

func scatterLastCPU(o scatterLast, c *kernel.Call) error {
	indices, d, out := c.In[0].I32(), c.In[1].F32(), c.Out[0].F32()
	if err := checkIDs(indices, o.N); err != nil {
		return err
	}
	k := c.In[0].Type.Size(-1)
	rows(c, len(out), o.N, func(lo, hi int) {
		clear(out[lo:hi])
		for i := lo / o.N * k; i < hi/o.N*k; i++ {
			out[lo+int(indices[i])] += d[i]
		}
	})
	return nil
}

// gatherLast takes elements at positions of rows: indices i32[… k], x f32[… n] →
// f32[… k].
type gatherLast struct{}

func (gatherLast) Name() string { return "gather-last" }

func (gatherLast) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32, graph.F32); err != nil {
		return nil, err
	}
	last := in[0].Rank() - 1
	if last < 0 || last != in[1].Rank()-1 ||
		!resized(in[0], last, 1).SameShape(resized(in[1], last, 1)) {
		return nil, fmt.Errorf("positions %s of rows of %s", in[0], in[1])
	}
	return []graph.Type{resized(in[1], last, in[0].Size(-1))}, nil
}

func (gatherLast) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: in[0].Bytes() + 2*out[0].Bytes()}
}

func (gatherLast) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{{}, apply(scatterLast{N: n.In[1].Type().Size(-1)}, n.In[0], dout[0])}
}

func gatherLastCPU(_ gatherLast, c *kernel.Call) error {
	indices, x, out := c.In[0].I32(), c.In[1].F32(), c.Out[0].F32()
	n := c.In[1].Type.Size(-1)
	if err := checkIDs(indices, n); err != nil {
		return err
	}
	k := c.In[0].Type.Size(-1)
	rows(c, len(out), k, func(lo, hi int) {
		row := x[lo/k*n : (lo/k+1)*n]
		for i := lo; i < hi; i++ {
			out[i] = row[indices[i]]
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, topKCPU)
	kernel.Register(kernel.CPU, scatterLastCPU)
	kernel.Register(kernel.CPU, gatherLastCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	ranked := func(k int, x graph.Type) Sample {
		return Sample{Op: topK{K: k}, In: []graph.Type{x}, Fill: fills{0: spaced(0)},
			Results: []int{0}, Second: true, Eps: 1e-3}
	}
	least := func(s Sample) Sample {
		s.Op = topK{s.Op.(topK).K, true}
		return s
	}
	register(
		least(ranked(2, f(3, 17))), least(ranked(17, f(2, 17))),
		ranked(2, f(3, 5)), ranked(17, f(17)), ranked(1, f(2, 3, 5)), ranked(3, f(5, 17)),
		Sample{Op: scatterLast{17}, In: []graph.Type{ids(3, 5), f(3, 5)}, NoGrad: []int{0},
			Fill: fills{0: below(17)}, Second: true},
		Sample{Op: gatherLast{}, In: []graph.Type{ids(3, 5), f(3, 4)}, NoGrad: []int{0},
			Fill: fills{0: below(4)}, Second: true},
	)
}
