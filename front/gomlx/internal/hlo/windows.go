package hlo

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/custom"
)

// Moving is how a window moves over the axes of a value: for every axis its size, by how many
// elements it moves, how far its elements are apart, and how far it reaches out before the first
// and after the last element.
type Moving struct{ Size, Stride, Dilation, Lo, Hi []int }

func (m Moving) lists() moving {
	return moving{listOf(m.Size), listOf(m.Stride), listOf(m.Dilation), listOf(m.Lo), listOf(m.Hi)}
}

// moving is Moving as attributes.
type moving struct{ Size, Stride, Dilation, Lo, Hi list }

// over are the sizes of what a window yields over axes of such sizes.
func (m moving) over(sizes []int) ([]int, error) {
	if err := check(m.Size, m.Stride, m.Dilation, m.Lo, m.Hi); err != nil {
		return nil, err
	}
	out := make([]int, len(sizes))
	for _, l := range []list{m.Size, m.Stride, m.Dilation, m.Lo, m.Hi} {
		if l.N != len(sizes) {
			return nil, fmt.Errorf("a window of %d axes over %d", l.N, len(sizes))
		}
	}
	for i, n := range sizes {
		if m.Size.At[i] < 1 || m.Stride.At[i] < 1 || m.Dilation.At[i] < 1 {
			return nil, fmt.Errorf("a window of %d elements along axis %d, %d apart, by %d",
				m.Size.At[i], i, m.Dilation.At[i], m.Stride.At[i])
		}
		free := n + m.Lo.At[i] + m.Hi.At[i] - (m.Size.At[i]-1)*m.Dilation.At[i] - 1
		if free >= 0 {
			out[i] = free/m.Stride.At[i] + 1
		}
	}
	return out, nil
}

// element is the index of the element of a value with sizes and steps that is at place in of the
// window at place at; false outside.
func (m *moving) element(sizes []int, steps, at, in [maxRank]int) (int, bool) {
	j := 0
	for a, n := range sizes {
		i := at[a]*m.Stride.At[a] + in[a]*m.Dilation.At[a] - m.Lo.At[a]
		if i < 0 || i >= n {
			return 0, false
		}
		j += i * steps[a]
	}
	return j, true
}

// Window puts the elements of every place of a window together; what a window has outside does not
// count. x is of numbers of any type but 16-bit floating-point ones.
func Window(how How, x graph.Value, m Moving) graph.Value {
	return apply(window{How: how, Moving: m.lists()}, x)
}

type window struct {
	noGradient
	How    How
	Moving moving
}

func (window) Name() string { return "window" }

func (o window) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	sizes, err := o.Moving.over(in[0].Sizes())
	if err := errors.Join(err, numeric(in[0].DType, o.How)); err != nil {
		return nil, err
	}
	return []graph.Type{graph.Of(in[0].DType, sizes...)}, nil
}

func (o window) Cost(in, out []graph.Type) graph.Cost {
	each := graph.Of(graph.F32, o.Moving.Size.of()...).Elems()
	return graph.Cost{FLOPs: int64(out[0].Elems()) * int64(each),
		Bytes: in[0].Bytes() + out[0].Bytes()}
}

func windowCPU(o window, c *custom.Call) error {
	x, out := c.In[0], c.Out[0]
	fill(out, Neutral(o.How, x.Type.DType))
	put := folder(o.How, out, x)
	sizes, steps := x.Type.Sizes(), strides(x.Type, 1)
	places := out.Type.Sizes()
	c.For(out.Type.Elems(), grain/16, func(lo, hi int) {
		at, in := odometer{sizes: places}, odometer{sizes: o.Moving.Size.of()}
		at.seek(lo)
		for i := lo; i < hi; i++ {
			for more := true; more; more = in.next() {
				if j, ok := o.Moving.element(sizes, steps, at.at, in.at); ok {
					put(i, j)
				}
			}
			at.next()
		}
	})
	return nil
}

// Select is zeros of x's shape, but that the element of source for each place of a window is added
// where the largest element of x is in that place, or the smallest: the first of equals.
func Select(x, source graph.Value, m Moving, least bool) graph.Value {
	return apply(selection{Least: least, Moving: m.lists()}, x, source)
}

type selection struct {
	noGradient
	Least  bool
	Moving moving
}

func (selection) Name() string { return "select-and-scatter" }

func (o selection) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	x := in[0]
	sizes, err := o.Moving.over(x.Sizes())
	if err := errors.Join(err, numeric(x.DType, Sum)); err != nil {
		return nil, err
	}
	if want := graph.Of(x.DType, sizes...); !in[1].Equal(want) {
		return nil, fmt.Errorf("%s for the places of a window over %s, want %s", in[1], x, want)
	}
	return []graph.Type{graph.Of(x.DType, x.Sizes()...)}, nil
}

func (o selection) Cost(in, out []graph.Type) graph.Cost {
	return window{Moving: o.Moving}.Cost(in[:1], in[1:])
}

func selectCPU(o selection, c *custom.Call) error {
	x, source, out := c.In[0], c.In[1], c.Out[0]
	clear(out.Data)
	if len(source.Data) == 0 {
		return nil
	}
	put := folder(Sum, out, source)
	ahead := arithmeticOf(x.Type.DType).ahead(x, o.Least)
	sizes, steps := x.Type.Sizes(), strides(x.Type, 1)
	at, in := odometer{sizes: source.Type.Sizes()}, odometer{sizes: o.Moving.Size.of()}
	for i := range source.Type.Elems() {
		best := -1
		for more := true; more; more = in.next() {
			j, ok := o.Moving.element(sizes, steps, at.at, in.at)
			if ok && (best < 0 || ahead(j, best)) {
				best = j
			}
		}
		if best >= 0 {
			put(best, i)
		}
		at.next()
	}
	return nil
}
