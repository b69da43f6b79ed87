package ops_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

func TestNesterov(t *testing.T) {
	tr := newTraining(4, 5, 417)
	tr.state = []graph.Type{tensor.Of(graph.F32, 5, 417)}
	tr.step = func(_ *graph.Graph, w graph.Value, s []graph.Value,
		grad, lr, _ graph.Value) *graph.Node {
		return ops.Nesterov(w, s[0], grad, lr, 0.9)
	}
	w, m := widen(tr.w), make([]float64, len(tr.w))
	for _, g := range tr.grads {
		for i := range w {
			m[i] = 0.9*m[i] + float64(g[i])
			w[i] -= rate * (float64(g[i]) + 0.9*m[i])
		}
	}
	got := tr.run(t, nil)
	near(t, "w", got[0], w)
	near(t, "m", got[1], m)
}

// TestLion against Chen et al.'s algorithm 2. Where a gradient is too close to what the sign turns
// on, either sign is right: none of these is.
func TestLion(t *testing.T) {
	tr := newTraining(8, 5, 417)
	tr.state = []graph.Type{tensor.Of(graph.F32, 5, 417)}
	const b1, b2, decay = 0.9, 0.98, 0.1
	tr.step = func(_ *graph.Graph, w graph.Value, s []graph.Value,
		grad, lr, _ graph.Value) *graph.Node {
		return ops.Lion(w, s[0], grad, lr, b1, b2, decay)
	}
	w, m := widen(tr.w), make([]float64, len(tr.w))
	for _, g := range tr.grads {
		for i := range w {
			x := float64(g[i])
			c := float64(b1*m[i]) + float64((1-b1)*x)
			if math.Abs(c) < 1e-6 {
				t.Fatalf("element %d: the sign of %v is either", i, c)
			}
			w[i] -= rate * (math.Copysign(1, c) + float64(decay*w[i]))
			m[i] = float64(b2*m[i]) + float64((1-b2)*x)
		}
	}
	got := tr.run(t, nil)
	near(t, "w", got[0], w)
	near(t, "m", got[1], m)
}

func TestAdamW(t *testing.T) {
	tr := newTraining(5, 5, 417)
	tr.state = []graph.Type{tensor.Of(graph.F32, 5, 417), tensor.Of(graph.F32, 5, 417)}
	const b1, b2, eps, decay = 0.9, 0.98, 1e-9, 0.1
	tr.step = func(_ *graph.Graph, w graph.Value, s []graph.Value,
		grad, lr, step graph.Value) *graph.Node {
		return ops.AdamW(w, s[0], s[1], grad, lr, step, b1, b2, eps, decay)
	}
	w, m, v := widen(tr.w), make([]float64, len(tr.w)), make([]float64, len(tr.w))
	for k, g := range tr.grads {
		corr1, corr2 := 1-math.Pow(b1, float64(k+1)), 1-math.Pow(b2, float64(k+1))
		for i := range w {
			x := float64(g[i])
			m[i] = b1*m[i] + (1-b1)*x
			v[i] = b2*v[i] + (1-b2)*x*x
			w[i] -= rate*decay*w[i] + rate*(m[i]/corr1)/(math.Sqrt(v[i]/corr2)+eps)
		}
	}
	got := tr.run(t, nil)
	near(t, "w", got[0], w)
	near(t, "m", got[1], m)
	near(t, "v", got[2], v)
}

// TestGate: an update behind a gate happens in every n-th execution, with the
// gradients of that one, and else nothing changes; what is accumulated until then is
// the sum of the others, and starts anew.
func TestGate(t *testing.T) {
	for every := 1; every <= 5; every++ {
		tr := newTraining(6, 5, 17)
		tr.state = []graph.Type{tensor.Of(graph.F32, 5, 17)}
		tr.step = func(_ *graph.Graph, w graph.Value, s []graph.Value,
			grad, lr, step graph.Value) *graph.Node {
			gate := ops.Gate{Every: every, Step: step}
			ops.AccumulateUntil(s[0], grad, gate)
			return ops.SGD(w, grad, lr, gate)
		}
		w, sum := widen(tr.w), make([]float64, len(tr.w))
		for k, g := range tr.grads {
			for i := range w {
				sum[i] += float64(g[i])
				if (k+1)%every == 0 {
					w[i], sum[i] = w[i]-rate*float64(g[i]), 0
				}
			}
		}
		got := tr.run(t, nil)
		near(t, fmt.Sprint("w every ", every), got[0], w)
		near(t, fmt.Sprint("sum every ", every), got[1], sum)
	}
}

// TestBadGates: gates that cannot be are errors of the graph.
func TestBadGates(t *testing.T) {
	for want, apply := range map[string]func(w, g, lr, step graph.Value){
		"an update every -1 executions": func(w, g, lr, step graph.Value) {
			ops.SGD(w, g, lr, ops.Gate{Every: -1, Step: step})
		},
		"the count of executions is f32[5]": func(w, g, lr, _ graph.Value) {
			ops.SGD(w, g, lr, ops.Gate{Every: 2, Step: g})
		},
		"a sum of 0 executions": func(w, g, _, step graph.Value) {
			ops.AccumulateUntil(w, g, ops.Gate{Step: step})
		},
		"weight decay -1 is negative": func(w, g, lr, step graph.Value) {
			m, v := w.Graph().State("m", w.Type(), graph.Init{}),
				w.Graph().State("v", w.Type(), graph.Init{})
			ops.AdamW(w, m, v, g, lr, step, 0.9, 0.9, 0, -1)
		},
		"weight decay -2 is negative": func(w, g, lr, _ graph.Value) {
			ops.Lion(w, w.Graph().State("m", w.Type(), graph.Init{}), g, lr, 0.9, 0.9, -2)
		},
		"decay 1 is outside": func(w, g, lr, _ graph.Value) {
			ops.Lion(w, w.Graph().State("m", w.Type(), graph.Init{}), g, lr, 1, 0.9, 0)
		},
		"momentum 1 is outside": func(w, g, lr, _ graph.Value) {
			ops.Nesterov(w, w.Graph().State("m", w.Type(), graph.Init{}), g, lr, 1)
		},
	} {
		b := newBench(t)
		w, g := b.variable(ramp(5), 5), b.f32(ramp(5), 5)
		apply(w, g, b.f32([]float32{1}), b.f32([]float32{1}))
		if err := b.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

// TestSumSquares against a plain loop, for sizes around a span.
func TestSumSquares(t *testing.T) {
	for _, n := range []int{1, 2, 1023, 1024, 1025, 40000} {
		x := random(n)
		want := 0.0
		for _, v := range x.F32() {
			want += float64(v) * float64(v)
		}
		y := compute(t, func(in []graph.Value) graph.Value { return ops.SumSquares(in[0]) }, x)
		expect(t, fmt.Sprint(n), y, func(int) float64 { return want })
	}
}
