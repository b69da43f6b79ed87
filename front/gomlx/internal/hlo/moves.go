package hlo

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/custom"
)

// Iota is the index along an axis, for every element of a shape: i32.
func Iota(g *graph.Graph, sizes []int, axis int) graph.Value {
	return result(g.Apply(iotaOp{Sizes: listOf(sizes), Axis: axis}))
}

type iotaOp struct {
	streaming
	Sizes list
	Axis  int
}

func (iotaOp) Name() string { return "iota" }

func (o iotaOp) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := errors.Join(operands(in, 0), check(o.Sizes)); err != nil {
		return nil, err
	}
	if o.Axis < 0 || o.Axis >= o.Sizes.N {
		return nil, fmt.Errorf("axis %d of %d", o.Axis, o.Sizes.N)
	}
	return []graph.Type{graph.Of(graph.I32, o.Sizes.of()...)}, nil
}

func iotaCPU(o iotaOp, c *custom.Call) error {
	x, step := c.Out[0].I32(), strides(c.Out[0].Type, 1)[o.Axis]
	for i := range x {
		x[i] = int32(i / step % o.Sizes.At[o.Axis])
	}
	return nil
}

// Pad puts elements around and between those of x, of any element type: lo before an axis, hi
// after it and inner between any two. Fewer than none takes elements away.
func Pad(x, fill graph.Value, lo, hi, inner []int) graph.Value {
	return apply(pad{Lo: listOf(lo), Hi: listOf(hi), Inner: listOf(inner)}, x, fill)
}

type pad struct {
	streaming
	Lo, Hi, Inner list
}

func (pad) Name() string { return "pad-between" }

func (o pad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := errors.Join(operands(in, 2), check(o.Lo, o.Hi, o.Inner)); err != nil {
		return nil, err
	}
	x := in[0]
	if r := x.Rank(); o.Lo.N != r || o.Hi.N != r || o.Inner.N != r {
		return nil, fmt.Errorf("padding for %d, %d and %d axes of %s", o.Lo.N, o.Hi.N, o.Inner.N, x)
	}
	if want := graph.Of(x.DType); !in[1].Equal(want) {
		return nil, fmt.Errorf("filled with %s, want %s", in[1], want)
	}
	sizes := x.Sizes()
	for i, n := range sizes {
		if o.Inner.At[i] < 0 {
			return nil, fmt.Errorf("%d elements between those of axis %d", o.Inner.At[i], i)
		}
		sizes[i] = max(0, o.Lo.At[i]+n+max(0, n-1)*o.Inner.At[i]+o.Hi.At[i])
	}
	return []graph.Type{graph.Of(x.DType, sizes...)}, nil
}

func padCPU(o pad, c *custom.Call) error {
	x, out := c.In[0], c.Out[0]
	fill(out, c.In[1])
	bytes := int(x.Type.DType.Size())
	ss, ds := strides(x.Type, bytes), strides(out.Type, bytes)
	sizes := x.Type.Sizes()
	from, to := 0, 0
	for i, n := range sizes {
		step := o.Inner.At[i] + 1
		first := max(0, (-o.Lo.At[i]+step-1)/step)
		end := min(n, (out.Type.Size(i)-o.Lo.At[i]+step-1)/step)
		sizes[i] = max(0, end-first)
		if sizes[i] == 0 {
			return nil
		}
		from += first * ss[i]
		to += (o.Lo.At[i] + first*step) * ds[i]
		ds[i] *= step
	}
	move(out.Data, x.Data, to, from, bytes, sizes, ds[:], ss[:])
	return nil
}

// Reinterpret is x's bits as elements of a type of another size: smaller ones are along a new last
// axis, and larger ones are made of the last axis.
func Reinterpret(x graph.Value, to graph.DType) graph.Value { return apply(reinterpret{To: to}, x) }

type reinterpret struct {
	streaming
	To graph.DType
}

func (reinterpret) Name() string { return "reinterpret" }

func (o reinterpret) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	t, sizes := in[0], in[0].Sizes()
	have, want := int(t.DType.Size()), int(o.To.Size())
	switch {
	case t.DType == graph.Bool || o.To == graph.Bool || want == 0:
		return nil, fmt.Errorf("the bits of %s as %s: truth values have none", t, o.To)
	case want < have:
		sizes = append(sizes, have/want)
	case want > have && (t.Rank() == 0 || t.Size(-1) != want/have):
		return nil, fmt.Errorf("the bits of %s as %s: the last axis is not one element", t, o.To)
	case want > have:
		sizes = sizes[:len(sizes)-1]
	}
	return []graph.Type{graph.Of(o.To, sizes...)}, nil
}

func reinterpretCPU(_ reinterpret, c *custom.Call) error {
	copy(c.Out[0].Data, c.In[0].Data)
	return nil
}
