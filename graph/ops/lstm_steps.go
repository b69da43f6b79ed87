package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// An LSTM over some steps of a longer sequence is lstmInputs and then lstmSteps, its gradient
// lstmBackSteps and then products of matrices: each needs one half of the weights, or of their
// gradient. They have the bits of lstm and lstmGrad, of which [Unfold] makes them.

// lstmInputs is what the input gives to gates: x f32[t b i], w f32[i 4n] and bias f32[4n] →
// x·w + bias, f32[t b 4n], of a sequence of so many steps.
type lstmInputs struct{ Steps int }

func (lstmInputs) Name() string { return "lstm-inputs" }

func (o lstmInputs) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.F32, graph.F32); err != nil {
		return nil, err
	}
	x, w, bias := in[0], in[1], in[2]
	if x.Rank() != 3 || w.Rank() != 2 || bias.Rank() != 1 || x.Size(2) != w.Size(0) ||
		w.Size(1) != bias.Size(0) || w.Size(1)%4 != 0 || x.Size(0) > o.Steps {
		return nil, fmt.Errorf("input %s of %d steps, weights %s and bias %s", x, o.Steps, w, bias)
	}
	return []graph.Type{tensor.Named(graph.F32, x.Shape[0], x.Shape[1],
		graph.Dim{Size: w.Size(1)})}, nil
}

func (o lstmInputs) sequence(x, w graph.Type) sequence {
	return sequence{cells: cells{x.Size(1), w.Size(1) / 4, 0}, t: x.Size(0), i: x.Size(2)}
}

func (o lstmInputs) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: 2 * int64(out[0].Elems()) * int64(in[0].Size(2)),
		Bytes: bytes(in, out)}
}

// VJP: there is none; it is made of what has its gradient already.
func (lstmInputs) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return noSecond(n) }

func (lstmInputs) form16() string { return "hff>f" }

func (lstmInputs) scratch16(_, _ []graph.Type) int64 { return 0 }

func lstmInputsCPU(o lstmInputs, c *kernel.Call) error {
	s := o.sequence(c.In[0].Type, c.In[1].Type)
	s.fromInput(c, c.In[0], c.In[1].F32(), c.In[2].F32(), c.Out[0].F32(), o.Steps)
	return nil
}

// lstmSteps is an LSTM whose gates have what the input gives them: gates f32[t b 4n], w
// f32[n 4n], and the state before, h and c f32[b n] → the gates, y and states f32[t b n], and
// the state after, h and c.
type lstmSteps struct{ ForgetBias float32 }

func (lstmSteps) Name() string { return "lstm-steps" }

// checkSteps checks gates f32[t b 4n] and other operands by them: those of a step, like w, and
// sequences.
func checkSteps(in []graph.Type, bias float32, others func(w, step, y graph.Type) []graph.Type) (
	step, y graph.Type, err error) {
	if in[0].DType != graph.F32 || in[0].Rank() != 3 || in[0].Size(2)%4 != 0 ||
		in[0].Size(2) > 1<<40 {
		return step, y, fmt.Errorf("gates %s, want f32 of three axes, the last of four parts%s",
			in[0], convertible(in[0], graph.F32))
	}
	n := graph.Dim{Size: in[0].Size(2) / 4}
	step = tensor.Of(graph.F32, in[0].Size(1), n.Size)
	y = tensor.Named(graph.F32, in[0].Shape[0], in[0].Shape[1], n)
	for i, want := range others(tensor.Of(graph.F32, n.Size, 4*n.Size), step, y) {
		if t := in[1+i]; t.DType != want.DType || !t.SameShape(want) {
			return step, y, fmt.Errorf("operand %d is %s, want %s%s", 1+i, t, want,
				convertible(t, want.DType))
		}
	}
	return step, y, checkBias(bias)
}

func (o lstmSteps) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 4); err != nil {
		return nil, err
	}
	step, y, err := checkSteps(in, o.ForgetBias, func(w, step, _ graph.Type) []graph.Type {
		return []graph.Type{w, step, step}
	})
	if err != nil {
		return nil, err
	}
	return []graph.Type{in[0], y, y, step, step}, nil
}

func stepsSequence(gates graph.Type, bias float32) sequence {
	return sequence{cells: cells{gates.Size(1), gates.Size(2) / 4, bias}, t: gates.Size(0)}
}

// Cost: the scratch is that of a step.
func (o lstmSteps) Cost(in, out []graph.Type) graph.Cost {
	s := stepsSequence(in[0], 0)
	c := cellCost(s.b, s.n, 1, 60, bytes(in, out))
	c.FLOPs = int64(s.t) * (c.FLOPs + s.product())
	return c
}

// InPlace: gates are added to where they are.
func (lstmSteps) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP: there is none; it is made of what has its gradient already.
func (lstmSteps) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return noSecond(n) }

func (lstmSteps) form16() string { return "ff**>f*fff" }

func (o lstmSteps) scratch16(in, out []graph.Type) int64 {
	return o.Cost(in, out).Scratch + stepsSequence(in[0], 0).room(in[2], in[3], out[1])
}

// copyTo copies elements to where a result is, unless they are there.
func copyTo(c *kernel.Call, out, in []float32) {
	if len(in) > 0 && &in[0] != &out[0] {
		c.Pool.For(len(in), 4*grain, func(lo, hi int) { copy(out[lo:hi], in[lo:hi]) })
	}
}

func lstmStepsCPU(o lstmSteps, c *kernel.Call) error {
	s := stepsSequence(c.In[0].Type, o.ForgetBias)
	gates := c.Out[0].F32()
	copyTo(c, gates, c.In[0].F32())
	h, state := s.forward(c, c.In[1].F32(), gates, c.In[2], c.In[3], c.Out[1], c.Out[2].F32())
	copyTo(c, c.Out[3].F32(), h)
	copyTo(c, c.Out[4].F32(), state)
	return nil
}

// lstmBackSteps is the gradient of gates: for gates f32[t b 4n], w f32[n 4n], the c before the
// first step f32[b n], states and the gradient of y, f32[t b n], and the gradients of the h and c
// after the last step, f32[b n] → those of the gates, and of the h and c before the first.
type lstmBackSteps struct{ ForgetBias float32 }

func (lstmBackSteps) Name() string { return "lstm-back-steps" }

func (o lstmBackSteps) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 7); err != nil {
		return nil, err
	}
	step, _, err := checkSteps(in, o.ForgetBias, func(w, step, y graph.Type) []graph.Type {
		return []graph.Type{w, step, y, y, step, step}
	})
	if err != nil {
		return nil, err
	}
	return []graph.Type{in[0], step, step}, nil
}

func (o lstmBackSteps) Cost(in, out []graph.Type) graph.Cost {
	s := stepsSequence(in[0], 0)
	c := cellCost(s.b, s.n, 2, 84, bytes(in, out))
	c.FLOPs = int64(s.t) * (c.FLOPs + s.product())
	return c
}

// InPlace: a step's gates are read before their gradients are written.
func (lstmBackSteps) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP: there is none; a second gradient takes the composition.
func (lstmBackSteps) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return noSecond(n) }

func (lstmBackSteps) form16() string { return "ff*f*ff>fff" }

func (o lstmBackSteps) scratch16(in, out []graph.Type) int64 {
	return o.Cost(in, out).Scratch + stepsSequence(in[0], 0).room(in[2], in[4])
}

func lstmBackStepsCPU(o lstmBackSteps, c *kernel.Call) error {
	s, r := stepsSequence(c.In[0].Type, o.ForgetBias), room{c, floats(c.Scratch)}
	b := lstmBack{sequence: s, call: c, w: c.In[1].F32(), c0: r.wide(c.In[2]),
		step: r.take(s.wideStep(c.In[4])), states: c.In[3].F32(), gates: c.In[0].F32(),
		dy: c.In[4], dgates: c.Out[0].F32(), dh: c.Out[1].F32(), dc: c.Out[2].F32()}
	b.scratch = r.left
	b.begin()
	copyTo(c, b.dh, c.In[5].F32())
	copyTo(c, b.dc, c.In[6].F32())
	b.steps(0, s.t)
	return nil
}

func init() {
	kernel.Register(kernel.CPU, lstmInputsCPU)
	kernel.Register(kernel.CPU, lstmStepsCPU)
	kernel.Register(kernel.CPU, lstmBackStepsCPU)
	for _, s := range []sequence{{cells{2, 3, 1}, 4, 5}, {cells{3, 17, 1}, 5, 4},
		{cells{300, 1, 0}, 2, 1}} {
		x, _, bias, h, y, gates := s.types()
		w := func(rows int) graph.Type { return tensor.Of(graph.F32, rows, 4*s.n) }
		small := fills{1: tenth}
		register(
			Sample{Op: lstmInputs{s.t + 3}, In: []graph.Type{x, w(s.i), bias},
				NoGrad: []int{0, 1, 2}},
			Sample{Op: lstmSteps{s.bias}, In: []graph.Type{gates, w(s.n), h, h}, Fill: small,
				NoGrad: []int{0, 1, 2, 3}},
			Sample{Op: lstmBackSteps{s.bias}, In: []graph.Type{gates, w(s.n), h, y, y, h, h},
				Fill: small, NoGrad: []int{0, 1, 2, 3, 4, 5, 6}},
		)
	}
}
