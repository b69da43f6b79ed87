package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/libm"
)

// Nesterov is m ← mu·m + grad, w ← w − lr·(grad + mu·m): Nesterov's momentum as
// Sutskever et al. (2013) write it, and PyTorch.
func Nesterov(w, m, grad, lr graph.Value, mu float32, gate ...Gate) *graph.Node {
	return behind(gate, nesterov{Mu: mu}, []graph.Value{w, m}, grad, lr)
}

// AdamW is w ← w − lr·decay·w, and then [Adam] (Loshchilov and Hutter 2019): the
// decay is no part of the gradient, which the moments are of.
func AdamW(w, m, v, grad, lr, step graph.Value, beta1, beta2, eps, decay float32,
	gate ...Gate) *graph.Node {
	return behind(gate, adamW{adam: adam{Beta1: beta1, Beta2: beta2, Eps: eps}, Decay: decay},
		[]graph.Value{w, m, v}, grad, lr, step)
}

// AccumulateUntil is v ← v + x, and v ← 0 where the gate opens: a sum of what came
// since it last did.
func AccumulateUntil(v, x graph.Value, gate Gate) *graph.Node {
	return update(accumulateUntil{Every: gate.Every}, []graph.Value{v}, x, gate.Step)
}

type nesterov struct{ Mu float32 }

func (nesterov) Name() string { return "nesterov" }

func (o nesterov) Infer(in []graph.Type) ([]graph.Type, error) { return momentum(o).Infer(in) }

func (nesterov) Cost(in, _ []graph.Type) graph.Cost { return updateCost(in, 3, 2, 6) }

func (nesterov) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func nesterovCPU(o nesterov, c *kernel.Call) error {
	w, m, g, lr := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.In[3].F32()[0]
	inSpans(c, len(w), func(_, lo, hi int, buf []float32) {
		w, m, g, step := w[lo:hi], m[lo:hi], g[lo:hi], buf[:hi-lo]
		vec.MulScalar(m, m, o.Mu)
		vec.Add(m, m, g)
		vec.MulScalar(step, m, o.Mu)
		vec.Add(step, step, g)
		vec.SGD(w, step, lr)
	})
	return nil
}

type adamW struct {
	adam
	Decay float32
}

func (adamW) Name() string { return "adamw" }

func (o adamW) Infer(in []graph.Type) ([]graph.Type, error) {
	if !(o.Decay >= 0) {
		return nil, fmt.Errorf("weight decay %v is negative", o.Decay)
	}
	return o.adam.Infer(in)
}

func (adamW) Cost(in, _ []graph.Type) graph.Cost { return updateCost(in, 4, 3, 13) }

func adamWCPU(o adamW, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	w, m, v, g := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.In[3].F32()
	lr, step := c.In[4].F32()[0], float64(c.In[5].F32()[0])
	corr1 := float32(1 - libm.Pow(float64(o.Beta1), step))
	corr2 := float32(1 - libm.Pow(float64(o.Beta2), step))
	keep := 1 - float32(lr*o.Decay)
	inSpans(c, len(w), func(_, lo, hi int, _ []float32) {
		w, m, v, g := w[lo:hi], m[lo:hi], v[lo:hi], g[lo:hi]
		vec.MulScalar(w, w, keep)
		vec.Adam(w, m, v, g, lr, o.Beta1, o.Beta2, o.Eps, corr1, corr2)
	})
	return nil
}

type accumulateUntil struct{ Every int }

func (accumulateUntil) Name() string { return "accumulate-until" }

func (o accumulateUntil) Infer(in []graph.Type) ([]graph.Type, error) {
	if o.Every < 1 {
		return nil, fmt.Errorf("a sum of %d executions, want 1 or more", o.Every)
	}
	return nil, checkUpdate(in, 2, 1)
}

func (accumulateUntil) Cost(in, _ []graph.Type) graph.Cost { return updateCost(in, 2, 1, 1) }

func (accumulateUntil) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func accumulateUntilCPU(o accumulateUntil, c *kernel.Call) error {
	v, x := c.In[0].F32(), c.In[1].F32()
	if (every{N: o.Every}).open(c.In[2]) {
		c.Pool.For(len(v), grain, func(lo, hi int) { clear(v[lo:hi]) })
		return nil
	}
	c.Pool.For(len(v), grain, func(lo, hi int) { vec.Add(v[lo:hi], v[lo:hi], x[lo:hi]) })
	return nil
}

func init() {
	kernel.Register(kernel.CPU, nesterovCPU)
	kernel.Register(kernel.CPU, adamWCPU)
	kernel.Register(kernel.CPU, accumulateUntilCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	w, scalar := f(5, 17), f()
	register(
		Sample{Op: nesterov{Mu: 0.9}, In: []graph.Type{w, w, w, scalar}, Update: 2},
		Sample{Op: adamW{adam{Beta1: 0.9, Beta2: 0.98, Eps: 1e-9}, 0.1},
			In:     []graph.Type{w, w, w, w, scalar, scalar},
			Update: 3, Fill: fills{2: positive, 5: ones}},
		Sample{Op: accumulateUntil{Every: 1}, In: []graph.Type{w, w, scalar}, Update: 1,
			Fill: fills{2: ones}},
		Sample{Op: accumulateUntil{Every: 2}, In: []graph.Type{w, w, scalar}, Update: 1,
			Fill: fills{2: ones}},
	)
}
