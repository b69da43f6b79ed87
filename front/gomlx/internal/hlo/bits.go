package hlo

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/custom"
	"github.com/gomem/gomem/internal/libm"
)

// BitCount is how many bits of each integer are one.
func BitCount(x graph.Value) graph.Value { return apply(count{}, x) }

// LeadingZeros is how many bits of each integer are zero before the first that is one.
func LeadingZeros(x graph.Value) graph.Value { return apply(count{Zeros: true}, x) }

type count struct {
	streaming
	Zeros bool
}

func (count) Name() string { return "count-bits" }

func (count) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if in[0].DType.Floating() || in[0].DType == graph.Bool {
		return nil, fmt.Errorf("the bits of %s, which is no integer", in[0])
	}
	return in[:1:1], nil
}

// InPlace: every element is read before it is written.
func (count) InPlace(_, _ []graph.Type) []int { return []int{0} }

func countCPU(o count, c *custom.Call) error {
	in, out := c.In[0], c.Out[0]
	switch in.Type.DType.Size() {
	case 1:
		countBits(o, c, elements[uint8](out), elements[uint8](in))
	case 2:
		countBits(o, c, elements[uint16](out), elements[uint16](in))
	case 4:
		countBits(o, c, elements[uint32](out), elements[uint32](in))
	default:
		countBits(o, c, elements[uint64](out), elements[uint64](in))
	}
	return nil
}

func countBits[T uint8 | uint16 | uint32 | uint64](o count, c *custom.Call, out, x []T) {
	width := bits.Len64(uint64(^T(0)))
	c.For(len(x), grain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if o.Zeros {
				out[i] = T(width - bits.Len64(uint64(x[i])))
			} else {
				out[i] = T(bits.OnesCount64(uint64(x[i])))
			}
		}
	})
}

// Function is a function of f64 that graph/ops has of f32 alone.
type Function uint8

// The functions.
const (
	Log1p Function = iota // log(1+x), accurate where x is small
	Expm1                 // eˣ−1, accurate where x is small
	Erf                   // the error function: Go's, whose last bit may be another processor's
)

// Apply is the function of every element of x, f64.
func (f Function) Apply(x graph.Value) graph.Value { return apply(wide{Of: f}, x) }

type wide struct {
	streaming
	Of Function
}

func (wide) Name() string { return "function-of-f64" }

func (wide) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if in[0].DType != graph.F64 {
		return nil, fmt.Errorf("%s, want f64", in[0])
	}
	return in[:1:1], nil
}

// InPlace: every element is read before it is written.
func (wide) InPlace(_, _ []graph.Type) []int { return []int{0} }

func wideCPU(o wide, c *custom.Call) error {
	f := [...]func(float64) float64{Log1p: libm.Log1p, Expm1: expm1, Erf: math.Erf}[o.Of]
	x, out := c.In[0].F64(), c.Out[0].F64()
	c.For(len(x), grain/8, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out[i] = f(x[i])
		}
	})
	return nil
}

// expm1 is Kahan's: the error of e−1 where e = eˣ is near 1 is that of log e, which divides it.
func expm1(x float64) float64 {
	e := libm.Exp(x)
	switch {
	case e == 1:
		return x
	case e-1 == -1 || e > 2 || e != e:
		return e - 1
	}
	return (e - 1) * x / libm.Log(e)
}
