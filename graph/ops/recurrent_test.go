package ops_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// TestLSTMCell compares with the definition.
func TestLSTMCell(t *testing.T) {
	const b, n, bias = 3, 5, 0.75
	gates, c := random(b, 4*n), random(b, n)
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	next := func(i int) float64 {
		g := gates.F32()[i/n*4*n+i%n:]
		return sigmoid(float64(g[2*n])+bias)*float64(c.F32()[i]) +
			sigmoid(float64(g[0]))*math.Tanh(float64(g[n]))
	}
	got := compute(t, func(in []graph.Value) graph.Value {
		_, c := ops.LSTMCell(in[0], in[1],
			bias)
		return c
	}, gates, c)
	expect(t, "state", got, next)
	got = compute(t, func(in []graph.Value) graph.Value {
		h, _ := ops.LSTMCell(in[0], in[1],
			bias)
		return h
	}, gates, c)
	expect(t, "h", got, func(i int) float64 {
		return sigmoid(float64(gates.F32()[i/n*4*n+i%n+3*n])) * math.Tanh(next(i))
	})
}

// unrolled is LSTM by cells.
func unrolled(x, w, bias, h, c graph.Value) (y, states graph.Value) {
	var ys, cs []graph.Value
	for _, step := range ops.Unstack(x) {
		gates := ops.Add(ops.MatMul(ops.Concat(1, step, h), w), bias)
		h, c = ops.LSTMCell(gates, c, 1)
		ys, cs = append(ys, h), append(cs, c)
	}
	return ops.Stack(ys...), ops.Stack(cs...)
}

// TestLSTM: the fused operation and its gradients are those of the cells.
func TestLSTM(t *testing.T) {
	type network func(x, w, bias, h, c graph.Value) (y, states graph.Value)
	fused := func(x, w, bias, h, c graph.Value) (y, states graph.Value) {
		return ops.LSTM(x, w, bias, h, c, 1)
	}
	for _, s := range []struct{ t, b, i, n int }{{1, 2, 3, 4}, {7, 3, 5, 4}, {5, 200, 3, 2},
		{4, 17, 1, 33}} {
		in := []tensor.View{random(s.t, s.b, s.i), random(s.i+s.n, 4*s.n), random(4 * s.n),
			random(s.b, s.n), shifted(random(s.b, s.n), 1)}
		weights := random(s.t * s.b * s.n)
		loss := func(net network, v []graph.Value) graph.Value {
			y, _ := net(v[0], v[1], v[2], v[3], v[4])
			w := ops.ReshapeSizes(v[0].Graph().Constant("w", weights), s.t, s.b, s.n)
			return ops.Sum(ops.Mul(y, w))
		}
		same := func(build func(net network) func(v []graph.Value) graph.Value) {
			t.Helper()
			want := compute(t, build(unrolled), in...)
			within(t, compute(t, build(fused), in...), 2e-4, func(i int) float64 {
				return float64(want.F32()[i])
			})
		}
		same(func(net network) func(v []graph.Value) graph.Value {
			return func(v []graph.Value) graph.Value {
				y, _ := net(v[0], v[1], v[2], v[3], v[4])
				return y
			}
		})
		same(func(net network) func(v []graph.Value) graph.Value {
			return func(v []graph.Value) graph.Value {
				_, c := net(v[0], v[1], v[2], v[3], v[4])
				return c
			}
		})
		for k := range in {
			same(func(net network) func(v []graph.Value) graph.Value {
				return func(v []graph.Value) graph.Value {
					return autodiff.Grad(loss(net, v), v[k])[0]
				}
			})
		}
	}
}

// TestLSTMStateHasNoGradient: a loss of the states is refused, not ignored.
func TestLSTMStateHasNoGradient(t *testing.T) {
	g := graph.New()
	f := func(name string, sizes ...int) graph.Value {
		return g.Input(name, tensor.Of(graph.F32, sizes...))
	}
	x := f("x", 3, 2, 4)
	_, states := ops.LSTM(x, f("w", 9, 20), f("bias", 20), f("h", 2, 5), f("c", 2, 5), 1)
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	autodiff.Grad(ops.Sum(states), x)
	if g.Err() == nil || !strings.Contains(g.Err().Error(), "has no gradient") {
		t.Errorf("error is %v", g.Err())
	}
}
