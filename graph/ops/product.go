package ops

import (
	"fmt"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Prod multiplies x over some axes, all of them if none are given, which are dropped. It
// multiplies in 64 bits. The gradient is right where elements are zero, too, and so is
// the second; there is no third. Products of integers wrap; those of f64 have no gradient.
func Prod(x graph.Value, axes ...int) graph.Value {
	x, lo, hi := together(x, axes)
	if lo == hi {
		return x
	}
	return foldOver(foldProd, x, lo, hi, func(x graph.Value) graph.Value {
		return apply(prod{Lo: lo, Hi: hi}, x)
	})
}

// prod multiplies over axes Lo to Hi-1.
type prod struct{ Lo, Hi int }

func (prod) Name() string { return "prod" }

func (o prod) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	out, err := dropped(in[0], o.Lo, o.Hi)
	return []graph.Type{out}, err
}

func (prod) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[0].Elems()), Bytes: bytes(in, out)}
}

func (o prod) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	kept := append([]graph.Dim{}, n.In[0].Type().Shape...)
	for i := o.Lo; i < o.Hi; i++ {
		kept[i] = graph.Dim{Size: 1}
	}
	return []graph.Value{Mul(apply(others{o.Lo, o.Hi, false}, n.In[0]), Reshape(dout[0], kept...))}
}

func prodCPU(o prod, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	r := sum{Lo: o.Lo, Hi: o.Hi}.geometry(c.In[0].Type)
	c.Pool.For(len(out), max(1, grain/max(1, r.n)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			product, first := 1.0, i/r.inner*r.n*r.inner+i%r.inner
			for k := range r.n {
				product *= float64(x[first+k*r.inner])
			}
			out[i] = float32(product)
		}
	})
	return nil
}

// others is, of every element, the product of all others over axes Lo to Hi-1. With a
// tangent, operand 1, it is how fast that changes along the tangent.
type others struct {
	Lo, Hi  int
	Tangent bool
}

func (o others) Name() string {
	if o.Tangent {
		return "prod-of-others-grad"
	}
	return "prod-of-others"
}

func (o others) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, []graph.DType{graph.F32, graph.F32}[:o.operands()]...); err != nil {
		return nil, err
	}
	if _, err := dropped(in[0], o.Lo, o.Hi); err != nil {
		return nil, err
	}
	if o.Tangent && !in[0].SameShape(in[1]) {
		return nil, fmt.Errorf("operands differ in shape")
	}
	return in[:1:1], nil
}

func (o others) operands() int {
	if o.Tangent {
		return 2
	}
	return 1
}

func (o others) geometry(t graph.Type) reduction { return sum{Lo: o.Lo, Hi: o.Hi}.geometry(t) }

// blocks is in how many blocks columns are computed.
func (o others) blocks(r reduction) int { return blocksOf(r.outer*r.inner, r.n, 1) }

// Cost: the scratch has the products up to every element of a column, and how fast they
// change, for each block.
func (o others) Cost(in, out []graph.Type) graph.Cost {
	c := streaming(in, out, 6)
	r := o.geometry(in[0])
	c.Scratch = int64(o.blocks(r)) * int64(r.n) * int64(unsafe.Sizeof(moving{}))
	return c
}

func (o others) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if o.Tangent {
		return noSecond(n)
	}
	return []graph.Value{apply(others{o.Lo, o.Hi, true}, n.In[0], dout[0])}
}

// moving is a number and how fast it changes.
type moving struct{ value, rate float64 }

func (a moving) times(b moving) moving {
	return moving{a.value * b.value,
		float64(a.value*b.rate) + float64(a.rate*b.value)}
}

func othersCPU(o others, c *kernel.Call) error {
	out := c.Out[0].F32()
	r := o.geometry(c.In[0].Type)
	blocks, columns := o.blocks(r), r.outer*r.inner
	scratch := unsafe.Slice((*moving)(unsafe.Pointer(unsafe.SliceData(c.Scratch))), blocks*r.n)
	element := func(i int) moving { return moving{value: float64(c.In[0].F32()[i])} }
	if o.Tangent {
		element = func(i int) moving {
			return moving{float64(c.In[0].F32()[i]), float64(c.In[1].F32()[i])}
		}
	}
	c.Pool.Run(blocks, func(b int) {
		before := scratch[b*r.n : (b+1)*r.n]
		lo, hi := block(b, blocks, columns)
		for i := lo; i < hi; i++ {
			first := i/r.inner*r.n*r.inner + i%r.inner
			o.column(out[first:], before, r.inner, func(k int) moving {
				return element(first + k*r.inner)
			})
		}
	})
	return nil
}

// column computes a column of elements that are stride apart: the product of those
// before each, from the first on, times that of those behind, from the last on.
func (o others) column(out []float32, before []moving, stride int, element func(k int) moving) {
	p := moving{value: 1}
	for k := range before {
		before[k] = p
		p = p.times(element(k))
	}
	p = moving{value: 1}
	for k := len(before) - 1; k >= 0; k-- {
		all := before[k].times(p)
		p = p.times(element(k))
		if out[k*stride] = float32(all.value); o.Tangent {
			out[k*stride] = float32(all.rate)
		}
	}
}

func init() {
	kernel.Register(kernel.CPU, prodCPU)
	kernel.Register(kernel.CPU, othersCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	for _, op := range []prod{{0, 2}, {1, 2}, {0, 1}} {
		register(Sample{Op: op, In: []graph.Type{f(3, 4)}, Second: true})
	}
	register(
		Sample{Op: prod{1, 2}, In: []graph.Type{f(2, 3, 5)}, Second: true},
		Sample{Op: others{0, 1, false}, In: []graph.Type{f(4, 3)}},
		Sample{Op: others{0, 1, true}, In: []graph.Type{f(4, 3), f(4, 3)}, NoGrad: []int{0, 1}},
	)
}
