package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// noiseAt is a random operation on some elements of a value, from element At on:
// each draws the noise that it has in the whole.
type noiseAt struct {
	Of elementwise
	At int
}

// noiseFrom is a random operation on the elements of its operand from one on.
func noiseFrom(op elementwise, at int) elementwise {
	if o, ok := op.(noiseAt); ok {
		op, at = o.Of, at+o.At
	}
	if _, window := op.(noiseWindow); at == 0 && !window { // a window's axes are those of its part
		return op
	}
	return noiseAt{op, at}
}

func (o noiseAt) Name() string { return o.Of.Name() }

func (o noiseAt) Infer(in []graph.Type) ([]graph.Type, error) {
	switch of := o.Of.(type) {
	case dropout:
		if of.Shared != 0 {
			return nil, fmt.Errorf("noise from element %d on is shared", o.At)
		}
	case noiseWindow:
		return o.windowed(of, in)
	case jitter:
	default:
		return nil, fmt.Errorf("no random operation")
	}
	if o.At < 0 {
		return nil, fmt.Errorf("noise from element %d on", o.At)
	}
	return o.Of.Infer(in)
}

// windowed infers what some elements of a window are.
func (o noiseAt) windowed(of noiseWindow, in []graph.Type) ([]graph.Type, error) {
	out, err := of.Of.Infer(in)
	if _, shared := of.shared(); err == nil && (shared || o.At < 0 ||
		out[0].Elems() > of.Win.elems()-o.At) {
		err = fmt.Errorf("noise from element %d on of a window of %d", o.At, of.Win.elems())
	}
	return out, err
}

func (o noiseAt) Cost(in, out []graph.Type) graph.Cost { return o.Of.Cost(in, out) }

// InPlace: every element depends on its own operand alone.
func (noiseAt) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP: the same noise on the gradient.
func (o noiseAt) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(o, dout[0], n.In[1]), {}}
}

func (o noiseAt) tile(dst, x, _ []float32, seed []int32, at int) {
	o.Of.tile(dst, x, nil, seed, o.At+at)
}

func noiseAtCPU(o noiseAt, c *kernel.Call) error {
	x, seed, out := c.In[0].F32(), c.In[1].I32(), c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) { o.tile(out[lo:hi], x[lo:hi], nil, seed, lo) })
	return nil
}

func init() {
	kernel.Register(kernel.CPU, noiseAtCPU)
	seed := tensor.Of(graph.I32, 2)
	x := tensor.Of(graph.F32, 3, 101)
	register(
		Sample{Op: noiseAt{dropout{Rate: 0.4, Salt: 7}, 5}, In: []graph.Type{x, seed},
			NoGrad: []int{1}, Second: true},
		Sample{Op: noiseAt{jitter{Eps: 0.01, Salt: 5}, 1000}, In: []graph.Type{x, seed},
			NoGrad: []int{1}, Second: true},
	)
}
