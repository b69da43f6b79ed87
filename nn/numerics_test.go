package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

var inf = float32(math.Inf(1))

// TestWhatDoesNotCountMayBeAnything: a loss of logits that are −Inf, at a position that is
// padding, ignored, or of weight 0, is that of the others.
func TestWhatDoesNotCountMayBeAnything(t *testing.T) {
	ignored := 2
	for name, o := range map[string]func(c *nn.Ctx) nn.CrossEntropyOptions{
		"padding": func(*nn.Ctx) nn.CrossEntropyOptions {
			return nn.CrossEntropyOptions{Padding: true}
		},
		"ignore": func(*nn.Ctx) nn.CrossEntropyOptions {
			return nn.CrossEntropyOptions{Ignore: &ignored}
		},
		"weights": func(c *nn.Ctx) nn.CrossEntropyOptions {
			return nn.CrossEntropyOptions{Weights: weights(c, 0, 1)}
		},
		"classes": func(c *nn.Ctx) nn.CrossEntropyOptions {
			return nn.CrossEntropyOptions{Classes: weights(c, 0, 1, 0)}
		},
		"smoothed classes": func(c *nn.Ctx) nn.CrossEntropyOptions {
			return nn.CrossEntropyOptions{Classes: weights(c, 0, 1, 0), Smoothing: 0.1}
		},
	} {
		m := nn.NewModel()
		logits, labels := m.Input("x", graph.F32, 2, 3), m.Input("y", graph.I32, 2)
		loss := nn.CrossEntropy(logits, labels, o(m.Evaluation()))
		grad := autodiff.Grad(loss, logits)[0]
		e := run(t, m, false, loss, grad, logits, labels)
		copy(e.f32(logits), []float32{-inf, 2, -inf, 1, 2, 1})
		label := int32(0)
		if name == "ignore" {
			label = 2
		}
		copy(e.Value(labels).I32(), []int32{label, 1})
		e.step()
		want := math.Log(1 + 2*math.Exp(-1))
		if name == "smoothed classes" { // of which that of weight 1 is not the label's in full
			want *= 1 - 0.1 + 0.1/3
		}
		if got := float64(e.f32(loss)[0]); !(math.Abs(got-want) < 1e-5) {
			t.Errorf("%s: the loss is %g, want %g", name, got, want)
		}
		for i, v := range e.f32(grad) {
			if v != v || i < 3 && v != 0 {
				t.Errorf("%s: element %d of the gradient is %g", name, i, v)
			}
		}
	}
}

func weights(c *nn.Ctx, list ...float32) graph.Value {
	parts := make([]graph.Value, len(list))
	for i, w := range list {
		parts[i] = ops.Full(c.Graph(), graph.Of(graph.F32, 1), w)
	}
	return ops.Concat(0, parts...)
}

// TestHugeGradientsAreClipped: gradients whose squares overflow are scaled down as all others,
// rather than to nothing.
func TestHugeGradientsAreClipped(t *testing.T) {
	for _, size := range []float32{1, 1e10, 1e19, 1e25, 1e37} {
		m := nn.NewModel()
		w := m.Training().Param("w", nil, 2)
		x := m.Input("x", graph.F32, 2)
		m.Minimize(ops.Sum(ops.Mul(w, x)), nn.SGD{}, nn.MinimizeOptions{Clip: 0.5,
			Rate: nn.Constant(1)})
		e := run(t, m, true)
		copy(e.f32(x), []float32{3 * size, 4 * size})
		e.step()
		for i, v := range e.f32(w) {
			if want := []float64{-0.3, -0.4}[i]; !(math.Abs(float64(v)-want) < 1e-6) {
				t.Errorf("a gradient of size %g moves element %d by %g, want %g", size, i, v, want)
			}
		}
	}
}

// TestHiddenQueries: a query of which a mask hides all keys attends to nothing, and takes no part
// in any gradient; the others are as they are without it.
func TestHiddenQueries(t *testing.T) {
	m := nn.NewModel()
	x, mask := m.Input("x", graph.F32, 1, 3, 4), m.Graph.Input("mask", graph.Of(graph.F32, 3, 3))
	y := nn.Attention(m.Training(), x, nn.AttentionOptions{Heads: 2, Mask: mask})
	loss := ops.Sum(ops.Square(ops.Slice(y, 1, 0, 2))) // nobody reads the last query
	m.Minimize(loss, nn.SGD{})
	grads := autodiff.Grad(loss, append(m.Parameters(), x)...)
	e := run(t, m, true, append(grads, y, x, mask)...)
	noise(3, e.f32(x))
	copy(e.f32(mask), []float32{0, -inf, 0, -inf, 0, 0, -inf, -inf, -inf})
	e.step()
	for i, v := range e.f32(y) {
		if v != v || i >= 8 && v != 0 {
			t.Errorf("element %d of the result is %g", i, v)
		}
	}
	for k, d := range grads {
		some := false
		for _, v := range e.f32(d) {
			some = some || v != 0
			if v != v {
				t.Fatalf("gradient %d has NaN", k)
			}
		}
		if !some {
			t.Errorf("gradient %d is zero", k)
		}
	}
}

// TestNormsOfNothing: a batch of no images is normalised to nothing, and leaves running averages
// as they are.
func TestNormsOfNothing(t *testing.T) {
	m := nn.NewModel()
	c := m.Training()
	x := m.Input("x", graph.F32, 0, 4, 2, 3)
	y := nn.BatchNorm(c.In("batch"), nn.GroupNorm(c.In("group"), x, 2))
	m.Minimize(ops.Sum(y), nn.SGD{})
	e := run(t, m, true, y)
	e.step()
	for _, v := range m.Graph.Variables() {
		for _, x := range e.f32(v.Value(0)) {
			if want := float32(v.Init.Scale); x != want {
				t.Errorf("%s becomes %g, want %g", v.Name, x, want)
			}
		}
	}
}

// TestAttentionIsComposed: attention by tiles is that by products, under masks that say the same,
// and so are its gradients.
func TestAttentionIsComposed(t *testing.T) {
	const length = 6
	docs := []int32{1, 1, 1, 2, 2, 2}
	for name, o := range map[string]nn.AttentionOptions{"causal": {}, "window": {Window: 2},
		"sinks": {Window: 1, Sinks: 1}, "unscaled": {Unscaled: true},
		"groups": {Rotary: &ops.Rotation{}, KeyValueHeads: 1}} {
		t.Run(name, func(t *testing.T) {
			m, mask := nn.NewModel(), tensor.New(graph.Of(graph.F32, length, length))
			for i := range mask.F32() {
				q, k := i/length, i%length
				if k > q || docs[q] != docs[k] || o.Window > 0 && k <= q-o.Window && k >= o.Sinks {
					mask.F32()[i] = -inf
				}
			}
			x := m.Input("x", graph.F32, 1, length, 8)
			o.Heads = 2
			plain := o
			plain.Window, plain.Sinks, plain.Mask = 0, 0, m.Graph.Constant("mask", mask)
			o.Causal, o.Documents = true, m.Graph.Constant("docs", tensor.FromI32(docs, 1, length))
			var all [2][]graph.Value
			for i, y := range []graph.Value{nn.Attention(m.Training(), x, o),
				nn.Attention(m.Pass(nn.Pass{Name: "plain", Training: true}), x, plain)} {
				all[i] = append(autodiff.Grad(ops.Sum(ops.Square(y)),
					append(m.Parameters(), x)...), y)
			}
			e := run(t, m, false, slices.Concat(all[0], all[1])...)
			noise(3, e.f32(x))
			e.step()
			for i, v := range all[0] {
				want := e.f32(all[1][i])
				for k, got := range e.f32(v) {
					if !(math.Abs(float64(got-want[k])) <= 1e-5*(1+math.Abs(float64(want[k])))) {
						t.Fatalf("value %d: element %d is %g, want %g", i, k, got, want[k])
					}
				}
			}
		})
	}
}
