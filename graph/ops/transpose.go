package ops

import (
	"fmt"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Transpose orders x's axes anew: axis i of the result is axis perm[i] of x.
func Transpose(x graph.Value, perm ...int) graph.Value {
	t := transpose{N: len(perm)}
	for i, p := range perm[:min(len(perm), maxRank)] {
		t.Perm[i] = p
	}
	return apply(t, x)
}

type transpose struct {
	N    int
	Perm [maxRank]int
}

func (transpose) Name() string { return "transpose" }

func (o transpose) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	t := in[0]
	if o.N != t.Rank() || o.N > maxRank {
		return nil, fmt.Errorf("an order of %d axes for %s", o.N, t)
	}
	out := graph.Type{DType: t.DType}
	var seen [maxRank]bool
	for _, p := range o.Perm[:o.N] {
		if p < 0 || p >= o.N || seen[p] {
			return nil, fmt.Errorf("%v is not an order of axes", o.Perm[:o.N])
		}
		seen[p] = true
		out.Shape = append(out.Shape, t.Shape[p])
	}
	return []graph.Type{out}, nil
}

func (transpose) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (o transpose) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if !n.In[0].Type().DType.Floating() {
		return none(1)
	}
	back := make([]int, o.N)
	for i, p := range o.Perm[:o.N] {
		back[p] = i
	}
	return []graph.Value{Transpose(dout[0], back...)}
}

// moved is an axis of the result: its size and its stride in the operand.
type moved struct{ size, stride int }

// axes lists the result's axes, those of size 1 left out and neighbours that
// are neighbours in the operand merged.
func (o transpose) axes(t tensor.Type) []moved {
	stride := make([]int, t.Rank())
	step := 1
	for i := t.Rank() - 1; i >= 0; i-- {
		stride[i] = step
		step *= t.Shape[i].Size
	}
	var out []moved
	for _, p := range o.Perm[:o.N] {
		a := moved{t.Shape[p].Size, stride[p]}
		if a.size == 1 {
			continue
		}
		if k := len(out); k > 0 && out[k-1].stride == a.stride*a.size {
			out[k-1] = moved{out[k-1].size * a.size, a.stride}
			continue
		}
		out = append(out, a)
	}
	if len(out) == 0 {
		out = append(out, moved{1, 1})
	}
	return out
}

// transposeCPU moves elements of any type by their size.
func transposeCPU(o transpose, c *kernel.Call) error {
	switch c.In[0].Type.DType.Size() {
	case 1:
		move[uint8](o, c)
	case 2:
		move[uint16](o, c)
	case 4:
		move[uint32](o, c)
	default:
		move[uint64](o, c)
	}
	return nil
}

// raw is a view's elements as words of their size.
func raw[T any](v tensor.View) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(v.Data))), v.Type.Elems())
}

// move copies rows of the result where they are contiguous in the
// operand; otherwise it goes by tiles over the result's last axis and the axis
// that is contiguous in the operand, so that both sides use whole cache lines.
func move[T any](o transpose, c *kernel.Call) {
	x, out := raw[T](c.In[0]), raw[T](c.Out[0])
	axes := o.axes(c.In[0].Type)
	last := axes[len(axes)-1]
	if last.stride == 1 {
		eachRow(c, axes[:len(axes)-1], last.size, func(at, from int) {
			copy(out[at:at+last.size], x[from:])
		})
		return
	}
	inner := len(axes) - 1
	for axes[inner].stride != 1 {
		inner--
	}
	// The outer axes without the contiguous one, which the tiles run over.
	outer := append(append([]moved{}, axes[:inner]...), axes[inner+1:len(axes)-1]...)
	tiles(c, axes, inner, outer, func(at, from, rows, rowStep int) {
		tile(out[at:], x[from:], rows, last.size, rowStep, last.stride)
	})
}

// eachRow calls f with the position of every row of the result and where it
// starts in the operand.
func eachRow(c *kernel.Call, axes []moved, size int, f func(at, from int)) {
	rows := 1
	for _, a := range axes {
		rows *= a.size
	}
	c.Pool.For(rows, max(1, grain/size), func(lo, hi int) {
		for row := lo; row < hi; row++ {
			f(row*size, offset(row, axes))
		}
	})
}

// offset is where index row of the axes lies in the operand.
func offset(row int, axes []moved) int {
	from := 0
	for i := len(axes) - 1; i >= 0; i-- {
		from += row % axes[i].size * axes[i].stride
		row /= axes[i].size
	}
	return from
}

// tiles calls f for every index of the outer axes and every block of rows along
// the axis that is contiguous in the operand.
func tiles(c *kernel.Call, axes []moved, inner int, outer []moved,
	f func(at, from, rows, rowStep int)) {
	step := make([]int, len(axes)) // strides in the result
	for i, s := len(axes)-1, 1; i >= 0; i-- {
		step[i] = s
		s *= axes[i].size
	}
	steps := append(append([]int{}, step[:inner]...), step[inner+1:len(axes)-1]...)
	count, blocks := 1, (axes[inner].size+side-1)/side
	for _, a := range outer {
		count *= a.size
	}
	c.Pool.For(count*blocks, max(1, grain/(side*axes[len(axes)-1].size)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			first := i % blocks * side
			at, rest := first*step[inner], i/blocks
			for k := len(outer) - 1; k >= 0; k-- {
				at += rest % outer[k].size * steps[k]
				rest /= outer[k].size
			}
			f(at, first+offset(i/blocks, outer), min(side, axes[inner].size-first), step[inner])
		}
	})
}

// side is how many elements of a row of the operand a tile takes: some cache
// lines, which are then read whole even where rows are far apart.
const side = 64

// tile transposes: dst has rows of n elements, rowStep apart; src has n rows,
// stride apart, of which it takes four at a time.
func tile[T any](dst, src []T, rows, n, rowStep, stride int) {
	j := 0
	for ; j+4 <= n; j += 4 {
		from := src[j*stride:]
		a, b := from[:rows], from[stride:][:rows]
		c, d := from[2*stride:][:rows], from[3*stride:][:rows]
		for i := range a {
			to := dst[i*rowStep+j:][:4]
			to[0], to[1], to[2], to[3] = a[i], b[i], c[i], d[i]
		}
	}
	for ; j < n; j++ {
		for i, v := range src[j*stride:][:rows] {
			dst[i*rowStep+j] = v
		}
	}
}

func init() {
	kernel.Register(kernel.CPU, transposeCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	perm := func(p ...int) transpose {
		t := transpose{N: len(p)}
		copy(t.Perm[:], p)
		return t
	}
	register(
		Sample{Op: perm(1, 0), In: []graph.Type{f(3, 5)}, Second: true},
		Sample{Op: perm(1, 0), In: []graph.Type{f(35, 67)}, Second: true},
		Sample{Op: perm(0, 2, 1, 3), In: []graph.Type{f(2, 3, 4, 5)}, Second: true},
		Sample{Op: perm(2, 0, 1), In: []graph.Type{f(2, 3, 5)}, Second: true},
		Sample{Op: perm(3, 1, 0, 2), In: []graph.Type{f(2, 3, 4, 17)}, Second: true},
		Sample{Op: perm(2, 1, 0), In: []graph.Type{f(2, 1, 5)}, Second: true},
		Sample{Op: perm(0, 1), In: []graph.Type{f(2, 5)}, Second: true},
		Sample{Op: perm(), In: []graph.Type{f()}, Second: true},
		Sample{Op: perm(1, 0), In: []graph.Type{tensor.Of(graph.I32, 35, 67)}, NoGrad: []int{0}},
		Sample{Op: perm(2, 0, 1), In: []graph.Type{tensor.Of(graph.BF16, 3, 5, 7)},
			NoGrad: []int{0}},
		Sample{Op: perm(0, 2, 1), In: []graph.Type{tensor.Of(graph.U8, 3, 5, 17)},
			NoGrad: []int{0}},
	)
}
