package ops

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/libm"
)

// Rotation says how Rotary turns pairs of elements.
type Rotation struct {
	Base        float32 // of the rates, 10,000 if it is 0
	Width       int     // how many of the first elements are turned, all if it is 0
	Interleaved bool    // pairs are neighbours, as in GPT-J, rather than half the width apart
	Heads       bool    // every position has rows of several heads: x is f32[… length heads width]
}

// length is the axis of the positions.
func (r Rotation) length(x graph.Type) int {
	if r.Heads {
		return x.Rank() - 3
	}
	return x.Rank() - 2
}

// heads is how many rows beside each other have one position.
func (r Rotation) heads(x graph.Type) int {
	if r.Heads {
		return x.Size(-2)
	}
	return 1
}

// Rotary is the rotary position embedding (Su and others 2021): in every row of x
// f32[… length width] pair i of elements is turned by the angle
// position · base^(−2i/width). Pairs are half the width apart, as in LLaMA, or
// neighbours. The positions, below 2²⁰, are those of the rows, i32[length] or, one for
// each element of x's first axis, i32[batch length]; or i32[], that of the first row,
// which the others follow. Angles are taken in 64 bits.
func Rotary(x, positions graph.Value, r Rotation) graph.Value {
	if r.Base == 0 {
		r.Base = 10000
	}
	if r.Width == 0 && x.Valid() && x.Type().Rank() > 0 {
		r.Width = x.Type().Size(-1)
	}
	return apply(rotary{Rotation: r}, x, positions)
}

// RotaryBy is [Rotary] with rates of one's own for each pair, f64[width/2], by which positions are
// multiplied: longer contexts than a model was trained with have slower ones.
func RotaryBy(x, positions, rates graph.Value, r Rotation) graph.Value {
	if r.Base = 1; r.Width == 0 && x.Valid() && x.Type().Rank() > 0 {
		r.Width = x.Type().Size(-1)
	}
	return apply(rotary{Rotation: r, Rated: true}, x, positions, rates)
}

// rotary turns by the angles, or back: the gradient.
type rotary struct {
	Rotation
	Rated bool // the rates are operand 2
	Back  bool
}

func (rotary) Name() string { return "rotary" }

// maxPosition bounds the angles, for libm.Sincos.
const maxPosition = 1 << 20

func (o rotary) Infer(in []graph.Type) ([]graph.Type, error) {
	types := []graph.DType{graph.F32, graph.I32, graph.F64}
	if err := want(in, types[:2+flag(o.Rated)]...); err != nil {
		return nil, err
	}
	x, p := in[0], in[1]
	if rates := graph.Of(graph.F64, o.Width/2); o.Rated && !in[2].SameShape(rates) {
		return nil, fmt.Errorf("rates are %s, want %s", in[2], rates)
	}
	if o.length(x) < 0 {
		return nil, fmt.Errorf("operand 0 is %s, want rows of a sequence: %d axes or more", x,
			2+flag(o.Heads))
	}
	if o.Width < 2 || o.Width%2 != 0 || o.Width > x.Size(-1) {
		return nil, fmt.Errorf("the first %d elements of rows of %s cannot be turned in pairs",
			o.Width, x)
	}
	if !(o.Base >= 1) || math.IsInf(float64(o.Base), 0) {
		return nil, fmt.Errorf("the base of the rates is %g, want a number of 1 or more", o.Base)
	}
	length := x.Size(o.length(x))
	ok := p.Rank() == 0 || p.Rank() == 1 && p.Size(0) == length ||
		p.Rank() == 2 && o.length(x) > 0 && p.Size(0) == x.Size(0) && p.Size(1) == length
	if !ok {
		return nil, fmt.Errorf("positions are %s, want i32[], i32[%d] or i32[batch %d]", p, length,
			length)
	}
	return in[:1:1], nil
}

// sequences is how many rows have a position of their own.
func (o rotary) sequences(in []graph.Type) int {
	n := in[0].Size(o.length(in[0]))
	if in[1].Rank() == 2 {
		n *= in[0].Size(0)
	}
	return n
}

// Cost: the scratch has the rates in 64 bits, and the cosine and the sine of every angle.
func (o rotary) Cost(in, out []graph.Type) graph.Cost {
	c := streaming(in, out, 3)
	angles := int64(o.sequences(in)) * int64(o.Width/2)
	c.FLOPs, c.Scratch = c.FLOPs+60*angles, 8*(int64(o.Width/2)+angles)
	return c
}

// InPlace: a pair is read before it is overwritten.
func (rotary) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP turns the gradient back.
func (o rotary) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	o.Back = !o.Back
	return append([]graph.Value{apply(o, append([]graph.Value{dout[0]}, n.In[1:]...)...)},
		none(len(n.In)-1)...)
}

// CheckData wants positions whose angles are accurate.
func (o rotary) CheckData(in []tensor.View) error {
	most := maxPosition
	if in[1].Type.Rank() == 0 {
		most -= in[0].Type.Size(o.length(in[0].Type)) - 1
	}
	for _, p := range known(in[1]) {
		if p < 0 || int(p) >= most {
			return fmt.Errorf("position %d is not between 0 and %d", p, most-1)
		}
	}
	return nil
}

func rotaryCPU(o rotary, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	x, out := c.In[0].F32(), c.Out[0].F32()
	width, half := c.In[0].Type.Size(-1), o.Width/2
	length, heads := c.In[0].Type.Size(o.length(c.In[0].Type)), o.heads(c.In[0].Type)
	types := []graph.Type{c.In[0].Type, c.In[1].Type}
	table := floats(c.Scratch[8*half:])
	o.fill(c, table, c.In[1].I32(), o.sequences(types))
	each := c.In[0].Type.Rows(1) // rows that share the positions
	if c.In[1].Type.Rank() == 2 {
		each /= max(1, c.In[0].Type.Size(0))
	}
	rows(c, len(x), width, func(lo, hi int) {
		row := lo / width
		at := (row/each*length + row/heads%length) * 2 * half
		o.turn(out[lo:hi], x[lo:hi], table[at:at+half], table[at+half:at+2*half])
	})
	return nil
}

// fill computes the cosines, and then the sines, of every row's angles.
func (o rotary) fill(c *kernel.Call, table []float32, positions []int32, rows int) {
	half := o.Width / 2
	rates := unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(c.Scratch))), half)
	if o.Rated {
		copy(rates, c.In[2].F64())
	} else {
		for i := range rates {
			rates[i] = libm.Pow(float64(o.Base), -2*float64(i)/float64(o.Width))
		}
	}
	c.Pool.For(rows, max(1, 512/half), func(lo, hi int) {
		for row := lo; row < hi; row++ {
			position := float64(positions[0]) + float64(row)
			if len(positions) == rows {
				position = float64(positions[row])
			}
			angles := table[2*row*half : 2*(row+1)*half]
			for i, rate := range rates {
				sin, cos := libm.Sincos(float64(position * rate))
				angles[i], angles[half+i] = float32(cos), float32(sin)
			}
		}
	})
}

// turn computes a row.
func (o rotary) turn(dst, x, cos, sin []float32) {
	copy(dst[o.Width:], x[o.Width:])
	first, second, step := 0, len(cos), 1
	if o.Interleaved {
		second, step = 1, 2
	}
	for i, c := range cos {
		s := sin[i]
		if o.Back {
			s = -s
		}
		a, b := x[first+i*step], x[second+i*step]
		dst[first+i*step] = float32(a*c) - float32(b*s)
		dst[second+i*step] = float32(b*c) + float32(a*s)
	}
}

func init() {
	kernel.Register(kernel.CPU, rotaryCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	i := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	turned := func(width int, interleaved bool, in ...graph.Type) Sample {
		return Sample{Op: rotary{Rotation: Rotation{Base: 1e4, Width: width,
			Interleaved: interleaved}}, In: in, Fill: fills{1: below(9)}, NoGrad: []int{1},
			Second: true}
	}
	heads := func(in ...graph.Type) Sample {
		s := turned(4, false, in...)
		o := s.Op.(rotary)
		o.Heads = true
		s.Op = o
		return s
	}
	register(
		turned(6, false, f(2, 3, 5, 6), i()), turned(4, false, f(5, 6), i(5)),
		turned(6, true, f(2, 3, 5, 6), i(2, 5)), turned(2, true, f(4, 5, 3), i(5)),
		heads(f(2, 5, 3, 6), i()), heads(f(5, 3, 4), i(5)), heads(f(2, 5, 3, 6), i(2, 5)),
		Sample{Op: rotary{Rotation: Rotation{Base: 1, Width: 4}, Rated: true},
			In:   []graph.Type{f(2, 3, 6), i(3), tensor.Of(graph.F64, 2)},
			Fill: fills{1: below(9)}, NoGrad: []int{1, 2}, Second: true},
		Sample{Op: rotary{Rotation: Rotation{Base: 500, Width: 4}, Back: true},
			In: []graph.Type{f(2, 3, 4), i(2, 3)}, NoGrad: []int{1}, Second: true},
	)
}
