package ops

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Sum adds up x over some axes, all of them if none are given, and drops them. A
// negative axis counts from the end. x is of numbers: sums of integers wrap, and those of 16-bit
// numbers are added up in f32.
func Sum(x graph.Value, axes ...int) graph.Value { return reduceAxes(x, axes, false) }

// SumKeep is Sum that keeps the axes with size 1.
func SumKeep(x graph.Value, axes ...int) graph.Value { return reduceAxes(x, axes, true) }

// Mean is Sum divided by the number of elements summed: NaN of none.
func Mean(x graph.Value, axes ...int) graph.Value {
	s := Sum(x, axes...)
	if !s.Valid() {
		return s
	}
	if isF64(s) {
		return Div(s, scalar(s, float64(x.Type().Elems())/float64(max(1, s.Type().Elems()))))
	}
	return Scale(s, share(s.Type(), x.Type()))
}

// share is what a sum is multiplied by to be a mean: one over the number of elements
// that each of its own is a sum of.
func share(sum, of graph.Type) float32 {
	if sum.Elems() == 0 {
		return 1
	}
	return float32(sum.Elems()) / float32(of.Elems())
}

// reduceAxes sums over runs of neighbouring axes, the last first.
func reduceAxes(x graph.Value, axes []int, keep bool) graph.Value {
	if !x.Valid() {
		return x
	}
	rank := x.Type().Rank()
	chosen := make([]bool, rank)
	for _, a := range axes {
		i := axis(a, rank)
		if i < 0 {
			x.Graph().Fail(fmt.Errorf("sum over axis %d: %s has none such", a, x.Type()))
			return graph.Value{}
		}
		chosen[i] = true
	}
	if len(axes) == 0 {
		for i := range chosen {
			chosen[i] = true
		}
	}
	for hi := rank; hi > 0; hi-- {
		lo := hi
		for lo > 0 && chosen[lo-1] {
			lo--
		}
		if lo < hi {
			x = sumOver(x, lo, hi, keep)
			hi = lo + 1
		}
	}
	return x
}

// sumOver adds up over axes lo to hi-1.
func sumOver(x graph.Value, lo, hi int, keep bool) graph.Value {
	if !x.Valid() {
		return x
	}
	shape := slices.Clone(x.Type().Shape)
	y := foldOver(foldSum, x, lo, hi, func(x graph.Value) graph.Value {
		return apply(sum{Lo: lo, Hi: hi, Keep: keep}, x)
	})
	for i := lo; i < hi && keep; i++ {
		shape[i] = graph.Dim{Size: 1}
	}
	if keep && y.Valid() && y.Type().Rank() < len(shape) {
		return Reshape(y, shape...)
	}
	return y
}

// sum adds up over axes Lo to Hi-1.
type sum struct {
	Lo, Hi int
	Keep   bool
}

func (sum) Name() string { return "sum" }

func (s sum) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	t := in[0]
	if s.Lo < 0 || s.Hi > t.Rank() || s.Lo >= s.Hi {
		return nil, fmt.Errorf("sum over axes %d to %d of %s", s.Lo, s.Hi-1, t)
	}
	shape := slices.Clone(t.Shape[:s.Lo])
	if s.Keep {
		shape = append(shape, make([]graph.Dim, s.Hi-s.Lo)...)
		for i := s.Lo; i < s.Hi; i++ {
			shape[i].Size = 1
		}
	}
	return []graph.Type{{DType: graph.F32, Shape: append(shape, t.Shape[s.Hi:]...)}}, nil
}

// Cost: the scratch holds the partial sums.
func (s sum) Cost(in, out []graph.Type) graph.Cost {
	c := graph.Cost{FLOPs: int64(in[0].Elems()), Bytes: bytes(in, out)}
	if r := s.geometry(in[0]); r.blocks > 1 {
		c.Scratch = 4 * int64(r.outer) * int64(r.blocks) * int64(r.inner)
	}
	return c
}

func (s sum) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x := n.In[0].Type()
	kept := slices.Clone(x.Shape)
	for i := s.Lo; i < s.Hi; i++ {
		kept[i] = graph.Dim{Size: 1}
	}
	return []graph.Value{BroadcastTo(Reshape(dout[0], kept...), x.Sizes()...)}
}

// reduction is the geometry of a sum: outer times n rows of inner elements, the
// rows added up.
type reduction struct {
	outer, n, inner int
	blocks          int // the rows are added in so many blocks, then the blocks
	side            int // rows of a block added side by side; 0 for rows of one element
}

// wide is a number of columns worth dividing among threads.
const wide = 1 << 12

func (s sum) geometry(t graph.Type) reduction {
	r := reduction{
		outer:  graph.Type{Shape: t.Shape[:s.Lo]}.Elems(),
		n:      graph.Type{Shape: t.Shape[s.Lo:s.Hi]}.Elems(),
		inner:  graph.Type{Shape: t.Shape[s.Hi:]}.Elems(),
		blocks: 1,
	}
	r.side = besides(r.inner)
	if r.inner < wide {
		r.blocks = max(1, blocksOf(r.n, r.inner, 64)/max(1, r.outer))
	}
	return r
}

// besides is how many rows of n elements are added side by side: as many as a vector
// primitive is worth calling for.
func besides(n int) int {
	if n == 1 {
		return 0
	}
	side := 1
	for 2*side*n <= narrow && n > 0 {
		side *= 2
	}
	return side
}

// blocksOf is the number of blocks into which an operation divides rows of n
// elements, a block having so many rows or more. It depends on the shape alone:
// where blocks are summed, so do the bits.
func blocksOf(rows, n, least int) int {
	const most = 64
	return max(1, min(most, rows/max(1, least), rows*n/grain))
}

// block is the range of rows of block b.
func block(b, blocks, rows int) (lo, hi int) {
	per := (rows + blocks - 1) / blocks
	return min(rows, b*per), min(rows, (b+1)*per)
}

// sumCPU has three ways, chosen by the shape: long rows are divided among
// threads, few tall columns are added in blocks of rows, and else every thread
// has columns of its own.
func sumCPU(s sum, c *kernel.Call) error {
	s.geometry(c.In[0].Type).sum(c)
	return nil
}

func (r reduction) sum(c *kernel.Call) {
	x, out := c.In[0].F32(), c.Out[0].F32()
	switch {
	case len(x) == 0:
		clear(out)
	case r.inner >= wide:
		r.strips(c, out, x)
	case r.blocks > 1:
		r.partial(c, out, x)
	default:
		c.Pool.For(r.outer, max(1, grain/(r.n*r.inner)), func(lo, hi int) {
			lanes := r.lanes()
			for o := lo; o < hi; o++ {
				r.add(out[o*r.inner:(o+1)*r.inner], x[o*r.n*r.inner:(o+1)*r.n*r.inner], lanes)
			}
		})
	}
}

// strips divides the rows.
func (r reduction) strips(c *kernel.Call, out, x []float32) {
	c.Pool.For(r.outer*r.inner, max(wide/4, grain/r.n), func(lo, hi int) {
		for lo < hi { // one outer index at a time
			o, at := lo/r.inner, lo%r.inner
			end := min(r.inner, at+hi-lo)
			dst := out[o*r.inner+at : o*r.inner+end]
			copy(dst, x[o*r.n*r.inner+at:])
			for k := 1; k < r.n; k++ {
				from := (o*r.n + k) * r.inner
				vec.Add(dst, dst, x[from+at:from+end])
			}
			lo += end - at
		}
	})
}

// partial adds up blocks of rows, and then the blocks in order.
func (r reduction) partial(c *kernel.Call, out, x []float32) {
	sums := floats(c.Scratch)
	c.Pool.For(r.outer*r.blocks, 1, func(from, to int) {
		lanes := r.lanes()
		for i := from; i < to; i++ {
			lo, hi := block(i%r.blocks, r.blocks, r.n)
			first := i / r.blocks * r.n
			r.add(sums[i*r.inner:(i+1)*r.inner], x[(first+lo)*r.inner:(first+hi)*r.inner], lanes)
		}
	})
	lanes := r.lanes()
	for o := range r.outer {
		r.add(out[o*r.inner:(o+1)*r.inner], sums[o*r.blocks*r.inner:(o+1)*r.blocks*r.inner], lanes)
	}
}

// narrow is a number of elements below which a call of a vector primitive does
// too little.
const narrow = 256

// lanes is what add needs for the rows.
func (r reduction) lanes() []float32 {
	if r.side < 2 {
		return nil
	}
	return make([]float32, r.side*r.inner)
}

// add adds up the rows of x, each as long as dst. Short rows are added several at a time,
// in lanes, which are folded by halves.
func (r reduction) add(dst, x, lanes []float32) {
	if r.side == 0 {
		dst[0] = vec.Sum(x)
		return
	}
	n := len(dst)
	width := n
	for 2*width <= min(r.side*n, len(x)) {
		width *= 2
	}
	acc := dst
	if width > n {
		acc = lanes[:width]
	}
	rest := x[copy(acc, x):]
	for ; len(rest) >= width; rest = rest[width:] {
		vec.Add(acc, acc, rest[:width])
	}
	vec.Add(acc[:len(rest)], acc, rest)
	for ; width > n; width /= 2 {
		vec.Add(acc[:width/2], acc, acc[width/2:width])
	}
	copy(dst, acc)
}

func init() {
	kernel.Register(kernel.CPU, sumCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: sum{Lo: 0, Hi: 2}, In: []graph.Type{f(3, 5)}, Second: true},
		Sample{Op: sum{Lo: 1, Hi: 2}, In: []graph.Type{f(3, 17)}, Second: true},
		Sample{Op: sum{Lo: 0, Hi: 1}, In: []graph.Type{f(3, 17)}, Second: true},
		Sample{Op: sum{Lo: 1, Hi: 2, Keep: true}, In: []graph.Type{f(2, 3, 5)}, Second: true},
		Sample{Op: sum{Lo: 1, Hi: 3}, In: []graph.Type{f(2, 3, 5, 4)}, Second: true},
		Sample{Op: sum{Lo: 0, Hi: 1}, In: []graph.Type{f(300, 70)}, Second: true, Eps: 1e-1},
		Sample{Op: sum{Lo: 1, Hi: 2}, In: []graph.Type{f(1, 20000)}, Second: true, Eps: 1e-1},
		Sample{Op: sum{Lo: 0, Hi: 1}, In: []graph.Type{f(3, wide+1)}, Second: true, Eps: 1e-1},
	)
}
