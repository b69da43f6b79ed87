package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// pointKind is an elementwise operation of a GPU, as elements.cu numbers them.
type pointKind int32

const (
	pointBinary        pointKind = 0 // and the kinds of binary before weigh
	pointUnary         pointKind = 8 // and the kinds of unary
	pointReluSlope     pointKind = 18
	pointTanhSlope     pointKind = 19
	pointSigmoidSlope  pointKind = 20
	pointGeluSlope     pointKind = 21
	pointFunction      pointKind = 22 // and the kinds of function
	pointSiluSlope     pointKind = 36
	pointGeluTanh      pointKind = 37
	pointGeluTanhSlope pointKind = 38
	pointScale         pointKind = 39
	pointShift         pointKind = 40
	pointClip          pointKind = 41
	pointClipSlope     pointKind = 42
	pointClipped       pointKind = 43
	pointClippedSlope  pointKind = 44
	pointPowScalar     pointKind = 45
	pointDropout       pointKind = 46
	pointJitter        pointKind = 47
	pointWeigh         pointKind = 48 // and the kinds of binary behind it
	pointBits          pointKind = 51 // and the kinds of bitwise
)

// point is an elementwise operation with its constants.
type point struct {
	kind       pointKind
	p, q       float32
	limit      uint32 // of the random words that keep an element
	salt, from uint64 // of noise: its stream and where in it element 0 is
	round      bool   // the result is rounded to bfloat16
	window     cudaWalk
}

// pointwise is an operation that the kernel of chains can compute, which interprets them. A chain
// comes with a kernel of its own besides, for devices that compile it. In either no instruction's
// arithmetic is fused with another's, so that what is fused has the bits of what is not.
type pointwise interface{ point() point }

func (b binary) point() point {
	if b.Kind >= weigh {
		return point{kind: pointWeigh + pointKind(b.Kind-weigh)}
	}
	return point{kind: pointBinary + pointKind(b.Kind)}
}
func (o bitwise) point() point { return point{kind: pointBits + pointKind(o.Kind)} }

func (u unary) point() point { return point{kind: pointUnary + pointKind(u.Kind)} }

func (s slope) point() point {
	return point{kind: map[unaryKind]pointKind{relu: pointReluSlope, tanh: pointTanhSlope,
		sigmoid: pointSigmoidSlope, gelu: pointGeluSlope}[s.Kind]}
}

func (f function) point() point { return point{kind: pointFunction + pointKind(f.Kind)} }
func (siluGrad) point() point   { return point{kind: pointSiluSlope} }
func (geluTanh) point() point   { return point{kind: pointGeluTanh} }

func (geluTanhGrad) point() point { return point{kind: pointGeluTanhSlope} }

func (a affine) point() point {
	if a.Factor == 1 {
		return point{kind: pointShift, p: a.Shift}
	}
	return point{kind: pointScale, p: a.Factor}
}

func (o clip) point() point            { return point{kind: pointClip, p: o.Lo, q: o.Hi} }
func (o clipGrad) point() point        { return point{kind: pointClipSlope, p: o.Lo, q: o.Hi} }
func (o clippedRelu) point() point     { return point{kind: pointClipped, p: o.Limit} }
func (o clippedReluGrad) point() point { return point{kind: pointClippedSlope, p: o.Limit} }
func (o powScalar) point() point       { return point{kind: pointPowScalar, p: o.Exponent} }

func (o dropout) point() point {
	keep := 1 - o.Rate
	if keep >= 1 {
		return point{kind: pointDropout, p: 1, limit: math.MaxUint32, salt: o.Salt}
	}
	return point{kind: pointDropout, p: 1 / keep, salt: o.Salt,
		limit: uint32(math.Ceil(float64(float64(keep)*(1<<32))) - 1)}
}

func (o jitter) point() point { return point{kind: pointJitter, p: o.Eps, salt: o.Salt} }

func (o noiseAt) point() point {
	p := o.Of.(pointwise).point()
	p.from = uint64(o.At)
	return p
}

func (o noiseWindow) point() point {
	p := o.Of.(pointwise).point()
	p.window = o.Win.walk()
	return p
}

// walk is from the window's elements to those of the whole.
func (w window) walk() cudaWalk {
	var out cudaWalk
	step := 1
	for i := int(w.N) - 1; i >= 0; i-- {
		out.axes = append(out.axes, strided{int(w.Size[i]), each{step}})
		out.base[0] += int(w.At[i]) * step
		step *= int(w.Whole[i])
	}
	slices.Reverse(out.axes)
	return out
}

// pointwiseCUDA computes an operation alone.
func pointwiseCUDA[O pointwise](o O, c *cuda.Call) ([]cuda.Command, error) {
	ins := instruction{In: [2]reference{0, 1}, Arity: int8(len(c.In))}
	launch, err := chainLaunch([]instruction{ins}, []point{o.point()}, c.In, c.Out[0])
	return []cuda.Command{launch}, err
}

func chainCUDA(o chain, c *cuda.Call) ([]cuda.Command, error) {
	launch, err := o.launch(c.In, c.Out[0])
	return []cuda.Command{launch}, err
}

// launch is the chain on operands.
func (c chain) launch(in []cuda.Operand, out cuda.Operand) (cuda.Command, error) {
	points := make([]point, c.N)
	for i, ins := range c.Code[:c.N] {
		var ok bool
		if points[i], ok = pointOf(ins.Op); !ok {
			return nil, fmt.Errorf("no cuda kernel for %s in a chain", ins.Op.Name())
		}
	}
	return chainLaunch(c.Code[:c.N], points, in, out)
}

// pointOf is an operation as a chain has it; ok is false if it has none such.
func pointOf(op graph.Op) (p point, ok bool) {
	if o, ok := op.(inBF16); ok {
		p, ok := pointOf(o.Op)
		p.round = o.rounds(0)
		return p, ok
	}
	o, ok := op.(pointwise)
	if ok {
		p = o.point()
	}
	return p, ok
}

// chainLaunch packs a program as the kernel's Chain, with the kernel that is written for it.
func chainLaunch(code []instruction, points []point, in []cuda.Operand,
	out cuda.Operand) (cuda.Command, error) {
	noise, err := windowOfAll(points)
	if err != nil {
		return nil, err
	}
	c := cuda.Chain{N: elems(out), Half: half(out.Type), Window: len(noise.axes) > 0}
	list := []any{c.N, int32(len(code)), c.Half}
	for i := range maxChainOperands {
		if i >= len(in) {
			list = append(list, uint64(0), 1, 1, 0)
			continue
		}
		hold, period, err := repetition(in[i].Type, out.Type)
		if err != nil {
			return nil, err
		}
		s := cuda.Spread{Hold: hold, Period: period, Half: half(in[i].Type)}
		c.In = append(c.In, s)
		list = append(list, in[i], s.Hold, s.Period, s.Half, int32(0))
	}
	for i := range maxInstructions {
		if i >= len(code) {
			list = append(list, int32(0), int32(0), int32(cuda.None), false, float32(0),
				float32(0), uint32(0), false, uint64(0), uint64(0))
			continue
		}
		ins, p := code[i].onCUDA(points[i]), points[i]
		c.Code = append(c.Code, ins)
		list = append(list, int32(ins.Op), int32(ins.A), int32(ins.B), keeps(code, i), p.p, p.q,
			p.limit, p.round, p.salt, p.from)
	}
	list = append(list, noise.args(out)...)
	width := c.Width()
	launch := overElements("chain", (c.N+width-1)/width, list...)
	launch.Written = c.Write()
	return launch, nil
}

// onCUDA is an instruction with its operation as a GPU has them.
func (ins instruction) onCUDA(p point) cuda.Instruction {
	out := cuda.Instruction{Op: int(p.kind), A: int(ins.In[0]), B: cuda.None, Rounded: p.round,
		Noise: p.draws(), From: p.from}
	if ins.Arity > 1 {
		out.B = int(ins.In[1])
	}
	return out
}

// draws reports whether an operation draws noise.
func (p point) draws() bool { return p.kind == pointDropout || p.kind == pointJitter }

// windowOfAll is the window that instructions draw noise in, the same for all.
func windowOfAll(points []point) (w cudaWalk, err error) {
	for _, p := range points {
		switch {
		case !p.draws():
		case len(w.axes) == 0:
			w = p.window
		case !slices.Equal(w.axes, p.window.axes) || w.base != p.window.base:
			return w, errors.New("noise of several windows in a chain")
		}
	}
	return w, nil
}

// repetition is how an operand is spread over a result; a period of 0 is all of the result.
func repetition(t, out graph.Type) (hold, period int, err error) {
	if t.DType == graph.I32 {
		return 1, 1, nil // a seed
	}
	s, ok := spreadOver(t, out)
	if !ok {
		return 0, 0, fmt.Errorf("%s repeats along %s in more than one way", t, out)
	}
	if s.hold == 1 && s.period == out.Elems() {
		return 1, 0, nil
	}
	return s.hold, s.period, nil
}

// keeps reports whether an instruction behind the next reads the result of instruction i.
func keeps(code []instruction, i int) bool {
	for k := i + 2; k < len(code); k++ {
		for _, r := range code[k].In[:code[k].Arity] {
			if r == ^reference(i) {
				return true
			}
		}
	}
	return false
}

// binaryCUDA is a chain of one, unless an operand repeats in more than one way.
func binaryCUDA(o binary, c *cuda.Call) ([]cuda.Command, error) {
	for _, x := range c.In {
		if _, ok := spreadOver(x.Type, c.Out[0].Type); !ok {
			w := broadcastWalk(c.Out[0].Type, typesOf(c.In))
			halves := 0
			for i, v := range []cuda.Operand{c.Out[0], c.In[0], c.In[1]} {
				halves |= flag(half(v.Type)) << i
			}
			return only(overElements("binary_walk", elems(c.Out[0]),
				w.args(int32(o.point().kind), int32(halves), c.Out[0], c.In[0], c.In[1])...))
		}
	}
	return pointwiseCUDA(o, c)
}

// noiseWindowCUDA has the places of shared noise in the whole.
func noiseWindowCUDA(o noiseWindow, c *cuda.Call) ([]cuda.Command, error) {
	d, shared := o.shared()
	if !shared {
		return pointwiseCUDA(o, c)
	}
	w, p := o.Win.walk(), d.point()
	for i := range w.axes {
		if w.axes[i].size = c.Out[0].Type.Size(i); d.Shared>>i&1 == 1 {
			w.axes[i].stride = each{}
		}
	}
	return only(overElements(kernelOf("dropout_shared", c.In[0]), elems(c.Out[0]),
		w.args(c.Out[0], c.In[0], c.In[1], p.salt, p.limit, p.p)...))
}

// dropoutCUDA draws noise that elements share where it is needed, rather than once.
func dropoutCUDA(o dropout, c *cuda.Call) ([]cuda.Command, error) {
	noise := o.noise(c.Out[0].Type)
	if noise.Elems() == elems(c.Out[0]) {
		return pointwiseCUDA(o, c)
	}
	w, p := broadcastWalk(c.Out[0].Type, []graph.Type{noise}), o.point()
	return only(overElements(kernelOf("dropout_shared", c.In[0]), elems(c.Out[0]),
		w.args(c.Out[0], c.In[0], c.In[1], p.salt, p.limit, p.p)...))
}

func init() {
	cuda.Register(binaryCUDA, nil)
	cuda.Register(pointwiseCUDA[unary], nil)
	cuda.Register(pointwiseCUDA[slope], nil)
	cuda.Register(pointwiseCUDA[function], nil)
	cuda.Register(pointwiseCUDA[siluGrad], nil)
	cuda.Register(pointwiseCUDA[geluTanh], nil)
	cuda.Register(pointwiseCUDA[geluTanhGrad], nil)
	cuda.Register(pointwiseCUDA[affine], nil)
	cuda.Register(pointwiseCUDA[clip], nil)
	cuda.Register(pointwiseCUDA[clipGrad], nil)
	cuda.Register(pointwiseCUDA[clippedRelu], nil)
	cuda.Register(pointwiseCUDA[clippedReluGrad], nil)
	cuda.Register(pointwiseCUDA[powScalar], nil)
	cuda.Register(dropoutCUDA, nil)
	cuda.Register(pointwiseCUDA[jitter], nil)
	cuda.Register(noiseWindowCUDA, nil)
	cuda.Register(pointwiseCUDA[noiseAt], nil)
	cuda.Register(chainCUDA, nil)
}
