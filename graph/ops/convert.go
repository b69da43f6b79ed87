package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Cast converts x to another element type, of any to any; x itself if it has that. The
// gradient passes between floating-point types and stops at integers.
//
// To an integer is towards zero: what is too large or too small, infinities too, becomes
// the largest or smallest integer of the type, and NaN zero. To a floating-point type is
// to nearest even, to 16-bit ones by way of f32: what is too large becomes an infinity,
// and NaN stays NaN, quiet, with its sign. As a bool everything but zero is true, NaN
// too, and true is one.
func Cast(x graph.Value, to graph.DType) graph.Value {
	if x.Valid() && x.Type().DType == to {
		return x
	}
	return apply(cast{To: to}, x)
}

// CastTo is the operation of [Cast].
func CastTo(to graph.DType) graph.Op { return cast{To: to} }

type cast struct{ To graph.DType }

func (cast) Name() string { return "cast" }

func (o cast) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	if o.To.Size() == 0 {
		return nil, fmt.Errorf("%s does not convert to %s", in[0], o.To)
	}
	return []graph.Type{{DType: o.To, Shape: in[0].Shape}}, nil
}

func (cast) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

func (o cast) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	from := n.In[0].Type().DType
	if from.Floating() && o.To.Floating() {
		return []graph.Value{Cast(dout[0], from)}
	}
	return none(1)
}

// casts are quick ways to convert elements lo to hi-1. All others are by
// [tensor.Convert], with the same results.
var casts = map[[2]graph.DType]func(out, x tensor.View, lo, hi int){
	{graph.F32, graph.I32}: func(out, x tensor.View, lo, hi int) {
		saturate(out.I32()[lo:hi], x.F32()[lo:hi])
	},
	{graph.I32, graph.F32}: func(out, x tensor.View, lo, hi int) {
		convert(out.F32()[lo:hi], x.I32()[lo:hi])
	},
	{graph.U8, graph.F32}: func(out, x tensor.View, lo, hi int) {
		convert(out.F32()[lo:hi], x.U8()[lo:hi])
	},

	{graph.F32, graph.BF16}: func(out, x tensor.View, lo, hi int) {
		vec.BF16FromF32(out.U16()[lo:hi], x.F32()[lo:hi])
	},
	{graph.BF16, graph.F32}: func(out, x tensor.View, lo, hi int) {
		vec.F32FromBF16(out.F32()[lo:hi], x.U16()[lo:hi])
	},
	{graph.F32, graph.F16}: func(out, x tensor.View, lo, hi int) {
		vec.F16FromF32(out.U16()[lo:hi], x.F32()[lo:hi])
	},
	{graph.F16, graph.F32}: func(out, x tensor.View, lo, hi int) {
		vec.F32FromF16(out.F32()[lo:hi], x.U16()[lo:hi])
	},
}

func convert[T int32 | uint8](dst []float32, x []T) {
	for i := range dst {
		dst[i] = float32(x[i])
	}
}

// saturate spells out what the language leaves to the processor.
func saturate(dst []int32, x []float32) {
	const end = 1 << 31
	for i, v := range x {
		switch {
		case v >= end:
			dst[i] = math.MaxInt32
		case v < -end:
			dst[i] = math.MinInt32
		case v == v:
			dst[i] = int32(v)
		default:
			dst[i] = 0
		}
	}
}

func castCPU(o cast, c *kernel.Call) error {
	run := casts[[2]graph.DType{c.In[0].Type.DType, o.To}]
	if run == nil {
		run = tensor.Convert
	}
	c.Pool.For(c.Out[0].Type.Elems(), grain, func(lo, hi int) { run(c.Out[0], c.In[0], lo, hi) })
	return nil
}

// OneHot is 1 at the index and 0 elsewhere: ids i32[…] in [0, depth) →
// f32[… depth]. It has no gradient.
func OneHot(ids graph.Value, depth int) graph.Value { return apply(oneHot{Depth: depth}, ids) }

type oneHot struct{ Depth int }

func (oneHot) Name() string { return "one-hot" }

func (o oneHot) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32); err != nil {
		return nil, err
	}
	if o.Depth < 1 {
		return nil, fmt.Errorf("depth is %d, want 1 or more", o.Depth)
	}
	shape := append(append([]graph.Dim(nil), in[0].Shape...), graph.Dim{Size: o.Depth})
	return []graph.Type{{DType: graph.F32, Shape: shape}}, nil
}

func (oneHot) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (oneHot) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

func oneHotCPU(o oneHot, c *kernel.Call) error { return inRow{whole: o.Depth}.mark(c, o.Depth) }

// mark sets the places of rows of so many to 1, and what is elsewhere to 0.
func (p inRow) mark(c *kernel.Call, size int) error {
	ids, out := c.In[0].I32(), c.Out[0].F32()
	if err := checkIDs(ids, p.whole); err != nil {
		return err
	}
	rows(c, len(out), size, func(lo, hi int) {
		clear(out[lo:hi])
		if at, ok := p.place(ids[lo/size], size); ok {
			out[lo+at] = 1
		}
	})
	return nil
}

// NotZero is 1 where an index is not 0 and 0 where it is: the weights of
// positions that are not padding. It has no gradient.
func NotZero(ids graph.Value) graph.Value { return apply(notZero{}, ids) }

type notZero struct{}

func (notZero) Name() string { return "not-zero" }

func (notZero) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32); err != nil {
		return nil, err
	}
	return []graph.Type{{DType: graph.F32, Shape: in[0].Shape}}, nil
}

func (notZero) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

func (notZero) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

func notZeroCPU(_ notZero, c *kernel.Call) error {
	ids, out := c.In[0].I32(), c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) {
		for i, id := range ids[lo:hi] {
			out[lo+i] = 0
			if id != 0 {
				out[lo+i] = 1
			}
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, castCPU)
	kernel.Register(kernel.CPU, oneHotCPU)
	kernel.Register(kernel.CPU, notZeroCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	register(
		Sample{Op: cast{graph.I32}, In: []graph.Type{f(17)}, NoGrad: []int{0}},
		Sample{Op: cast{graph.F32}, In: []graph.Type{ids(17)}, NoGrad: []int{0}},
		Sample{Op: cast{graph.F32}, In: []graph.Type{tensor.Of(graph.U8, 17)}, NoGrad: []int{0}},
		Sample{Op: cast{graph.BF16}, In: []graph.Type{f(17)}, NoGrad: []int{0}},
		Sample{Op: cast{graph.F16}, In: []graph.Type{f(3, 5)}, NoGrad: []int{0}},
		Sample{Op: cast{graph.Bool}, In: []graph.Type{f(3, 5)}, NoGrad: []int{0}},
		Sample{Op: cast{graph.I64}, In: []graph.Type{ids(17)}, NoGrad: []int{0}},
		Sample{Op: cast{graph.F64}, In: []graph.Type{f(17)}, NoGrad: []int{0}},
		Sample{Op: cast{graph.U64}, In: []graph.Type{f(17)}, NoGrad: []int{0}},
		Sample{Op: oneHot{5}, In: []graph.Type{ids(2, 3)}, Fill: fills{0: below(5)},
			NoGrad: []int{0}},
		Sample{Op: notZero{}, In: []graph.Type{ids(17)}, NoGrad: []int{0}},
	)
}
