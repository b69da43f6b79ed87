package ops

import (
	"fmt"
	"math/rand/v2"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/libm"
)

// Optimizers are update nodes: they write a variable and its optimizer state in
// place. The learning rate lr and the number of the step, which starts at 1,
// are operands of type f32[], so that schedules stay outside the graph.

// SGD is w ← w − lr·grad.
func SGD(w, grad, lr graph.Value, gate ...Gate) *graph.Node {
	return behind(gate, sgd{}, []graph.Value{w}, grad, lr)
}

// Momentum is m ← mu·m + grad, w ← w − lr·m (Polyak's, as TensorFlow has it).
func Momentum(w, m, grad, lr graph.Value, mu float32, gate ...Gate) *graph.Node {
	return behind(gate, momentum{Mu: mu}, []graph.Value{w, m}, grad, lr)
}

// Adam is Kingma and Ba's algorithm 1 (2015), with m and v the state.
func Adam(w, m, v, grad, lr, step graph.Value, beta1, beta2, eps float32,
	gate ...Gate) *graph.Node {
	return behind(gate, adam{Beta1: beta1, Beta2: beta2, Eps: eps}, []graph.Value{w, m, v}, grad,
		lr, step)
}

// Accumulate is v ← v + x, for running sums.
func Accumulate(v, x graph.Value) *graph.Node {
	return update(accumulate{}, []graph.Value{v}, x)
}

// update makes an update node in the graph of the first variable.
func update(op graph.Op, vars []graph.Value, reads ...graph.Value) *graph.Node {
	for _, v := range vars {
		if v.Valid() {
			return v.Graph().Update(op, vars, reads...)
		}
	}
	return nil
}

// checkUpdate wants same operands of the type of the first, f32, and then
// scalars.
func checkUpdate(in []graph.Type, same, scalars int) error {
	if err := arity(in, same+scalars); err != nil {
		return err
	}
	for i, t := range in {
		switch {
		case t.DType != graph.F32:
			return fmt.Errorf("operand %d is %s, want f32%s", i, t, convertible(t, graph.F32))
		case i < same && !t.SameShape(in[0]):
			return fmt.Errorf("operand %d is %s, the variable is %s", i, t, in[0])
		case i >= same && t.Rank() != 0:
			return fmt.Errorf("operand %d is %s, want a scalar", i, t)
		}
	}
	return nil
}

// updateCost is that of reading same operands, writing vars of them, and
// spending flops on each element.
func updateCost(in []graph.Type, same, vars, flops int64) graph.Cost {
	return graph.Cost{FLOPs: flops * int64(in[0].Elems()), Bytes: (same + vars) * in[0].Bytes()}
}

type sgd struct{}

func (sgd) Name() string { return "sgd" }

func (sgd) Infer(in []graph.Type) ([]graph.Type, error) { return nil, checkUpdate(in, 2, 1) }

func (sgd) Cost(in, _ []graph.Type) graph.Cost { return updateCost(in, 2, 1, 2) }

func (sgd) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func sgdCPU(_ sgd, c *kernel.Call) error {
	w, g, lr := c.In[0].F32(), c.In[1].F32(), c.In[2].F32()[0]
	c.Pool.For(len(w), grain, func(lo, hi int) { vec.SGD(w[lo:hi], g[lo:hi], lr) })
	return nil
}

type momentum struct{ Mu float32 }

func (momentum) Name() string { return "momentum" }

func (o momentum) Infer(in []graph.Type) ([]graph.Type, error) {
	if !(o.Mu >= 0 && o.Mu < 1) {
		return nil, fmt.Errorf("momentum %v is outside [0, 1)", o.Mu)
	}
	return nil, checkUpdate(in, 3, 1)
}

func (momentum) Cost(in, _ []graph.Type) graph.Cost { return updateCost(in, 3, 2, 4) }

func (momentum) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func momentumCPU(o momentum, c *kernel.Call) error {
	w, m, g, lr := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.In[3].F32()[0]
	c.Pool.For(len(w), grain, func(lo, hi int) {
		vec.Momentum(w[lo:hi], m[lo:hi], g[lo:hi], lr, o.Mu)
	})
	return nil
}

type adam struct{ Beta1, Beta2, Eps float32 }

func (adam) Name() string { return "adam" }

func (o adam) Infer(in []graph.Type) ([]graph.Type, error) {
	for _, b := range []float32{o.Beta1, o.Beta2} {
		if !(b >= 0 && b < 1) {
			return nil, fmt.Errorf("decay %v is outside [0, 1)", b)
		}
	}
	if !(o.Eps >= 0) {
		return nil, fmt.Errorf("epsilon %v is negative", o.Eps)
	}
	return nil, checkUpdate(in, 4, 2)
}

func (adam) Cost(in, _ []graph.Type) graph.Cost { return updateCost(in, 4, 3, 12) }

func (adam) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func adamCPU(o adam, c *kernel.Call) error {
	w, m, v, g := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.In[3].F32()
	lr, step := c.In[4].F32()[0], float64(c.In[5].F32()[0])
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	corr1 := float32(1 - libm.Pow(float64(o.Beta1), step))
	corr2 := float32(1 - libm.Pow(float64(o.Beta2), step))
	c.Pool.For(len(w), grain, func(lo, hi int) {
		vec.Adam(w[lo:hi], m[lo:hi], v[lo:hi], g[lo:hi], lr, o.Beta1, o.Beta2, o.Eps, corr1, corr2)
	})
	return nil
}

type accumulate struct{}

func (accumulate) Name() string { return "accumulate" }

func (accumulate) Infer(in []graph.Type) ([]graph.Type, error) { return nil, checkUpdate(in, 2, 0) }

func (accumulate) Cost(in, _ []graph.Type) graph.Cost { return updateCost(in, 2, 1, 1) }

func (accumulate) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func accumulateCPU(_ accumulate, c *kernel.Call) error {
	v, x := c.In[0].F32(), c.In[1].F32()
	c.Pool.For(len(v), grain, func(lo, hi int) { vec.Add(v[lo:hi], v[lo:hi], x[lo:hi]) })
	return nil
}

// ones fills f32 elements with 1: the first step.
func ones(_ *rand.Rand, x any) {
	for i := range x.([]float32) {
		x.([]float32)[i] = 1
	}
}

func init() {
	kernel.Register(kernel.CPU, sgdCPU)
	kernel.Register(kernel.CPU, momentumCPU)
	kernel.Register(kernel.CPU, adamCPU)
	kernel.Register(kernel.CPU, accumulateCPU)
	w, scalar := tensor.Of(graph.F32, 5, 17), tensor.Of(graph.F32)
	register(
		Sample{Op: sgd{}, In: []graph.Type{w, w, scalar}, Update: 1},
		Sample{Op: momentum{Mu: 0.9}, In: []graph.Type{w, w, w, scalar}, Update: 2},
		Sample{Op: adam{Beta1: 0.9, Beta2: 0.98, Eps: 1e-9},
			In:     []graph.Type{w, w, w, w, scalar, scalar},
			Update: 3, Fill: fills{2: positive, 5: ones}},
		Sample{Op: accumulate{}, In: []graph.Type{w, w}, Update: 1},
	)
}
