package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/libm"
)

// RandomUniform is a value of type t, which is f32, with elements uniform in
// [0, 1): multiples of 2⁻²⁴. They depend on seed, i32[2], and on name, as for
// [Dropout].
func RandomUniform(seed graph.Value, t graph.Type, name string) graph.Value {
	return random(seed, t, name, false)
}

// RandomNormal is RandomUniform with elements that are normal with mean 0 and
// variance 1. None is farther from 0 than 6.7.
func RandomNormal(seed graph.Value, t graph.Type, name string) graph.Value {
	return random(seed, t, name, true)
}

func random(seed graph.Value, t graph.Type, name string, normal bool) graph.Value {
	if !seed.Valid() {
		return seed
	}
	if t.DType != graph.F32 {
		seed.Graph().Fail(fmt.Errorf("random value of type %s, want f32", t))
		return graph.Value{}
	}
	return apply(noise{Normal: normal, Salt: claimed(seed, name), Shape: newDims(t.Shape)}, seed)
}

// noise is drawn and never changed: it has no gradient.
type noise struct {
	Normal bool // or uniform
	Salt   uint64
	Shape  dims
}

func (o noise) Name() string {
	if o.Normal {
		return "random-normal"
	}
	return "random-uniform"
}

func (o noise) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	if err := checkSeed(in[0]); err != nil {
		return nil, err
	}
	if err := o.Shape.check(); err != nil {
		return nil, err
	}
	return []graph.Type{o.Shape.typ(graph.F32)}, nil
}

func (o noise) Cost(in, out []graph.Type) graph.Cost {
	if o.Normal {
		return streaming(in, out, 40)
	}
	return streaming(in, out, 2)
}

func (noise) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func noiseCPU(o noise, c *kernel.Call) error {
	out, key, draw := c.Out[0].F32(), streamKey(c.In[0].I32(), o.Salt), o.draw()
	c.Pool.For(len(out), grain, func(lo, hi int) { draw(out[lo:hi], key, lo) })
	return nil
}

// draw is what draws elements at, at+1, … of a stream.
func (o noise) draw() func(dst []float32, key uint64, at int) {
	if o.Normal {
		return normals
	}
	return uniforms
}

// uniforms draws elements at, at+1, … of a stream.
func uniforms(dst []float32, key uint64, at int) {
	var words [256]uint32
	for len(dst) > 0 {
		n := min(len(words), len(dst))
		vec.Philox(words[:n], key, uint64(at))
		for i, w := range words[:n] {
			dst[i] = unit(w)
		}
		dst, at = dst[n:], at+n
	}
}

// normals draws elements at, at+1, … of a stream. Elements 2i and 2i+1 are made of
// words 2i and 2i+1, by whoever asks for either.
func normals(dst []float32, key uint64, at int) {
	var words [256]uint32
	for len(dst) > 0 {
		odd := at & 1
		n := min(len(words)-odd, len(dst))
		vec.Philox(words[:(odd+n+1)&^1], key, uint64(at-odd))
		for i := range n {
			k := odd + i
			x, y := gaussian(words[k&^1], words[k|1])
			if k&1 == 1 {
				x = y
			}
			dst[i] = float32(x)
		}
		dst, at = dst[n:], at+n
	}
}

// gaussian makes two random words two normal numbers (Box and Muller 1958): the
// coordinates of a point at a random angle, at the distance that has the
// distribution of theirs. A word stands for the upper end of its interval, so that
// the logarithm is finite.
func gaussian(distance, angle uint32) (x, y float64) {
	const words = 1 << 32
	r := math.Sqrt(-2 * libm.Log((float64(distance)+1)/words))
	y, x = libm.Sincos(2 * math.Pi * float64(angle) / words)
	return r * x, r * y
}

func init() {
	kernel.Register(kernel.CPU, noiseCPU)
	seed := []graph.Type{tensor.Of(graph.I32, 2)}
	for _, normal := range []bool{false, true} {
		register(
			Sample{Op: noise{normal, 3, sized([]int{3, 5, 67})}, In: seed, NoGrad: []int{0}},
			Sample{Op: noise{normal, 5, sized(nil)}, In: seed, NoGrad: []int{0}},
			Sample{Op: noise{normal, 7, sized([]int{3 * grain})}, In: seed, NoGrad: []int{0}},
		)
	}
}
