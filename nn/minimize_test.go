package nn_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// regression is a loss of two layers, of which the second one has a norm.
func regression(m *nn.Model, batch int) (x, y, loss graph.Value) {
	x, y = m.Input("x", graph.F32, batch, 3), m.Input("y", graph.F32, batch, 2)
	c := m.Training()
	h := nn.Tanh(nn.Linear(c.In("a"), x, 4))
	return x, y, nn.MSE(nn.Linear(c.In("b"), nn.LayerNorm(c.In("norm"), h), 2), y)
}

// TestAccumulation: so many executions with a batch each and one update are one
// execution with a batch of so many times the size, whatever the optimizer, and
// between updates no parameter changes.
func TestAccumulation(t *testing.T) {
	for name, by := range map[string]nn.Optimizer{"sgd": nn.SGD{}, "momentum": nn.Momentum{},
		"nesterov": nn.Momentum{Nesterov: true}, "adam": nn.Adam{}, "adamw": nn.AdamW{},
		"lion": nn.Lion{}, "muon": nn.Muon{}, "adafactor": nn.Adafactor{MinDim: 2}} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				n := rapid.IntRange(1, 4).Draw(rt, "executions")
				clip := rapid.SampledFrom([]float32{0, 0.2, 100}).Draw(rt, "clip")
				testAccumulation(t, by, n, clip)
			})
		})
	}
}

func testAccumulation(t *testing.T, by nn.Optimizer, n int, clip float32) {
	t.Helper()
	const updates, batch = 3, 2
	rate := nn.Constant(0.1)
	small, large := nn.NewModel(), nn.NewModel()
	x, y, loss := regression(small, batch)
	small.Minimize(loss, by, nn.MinimizeOptions{Rate: rate, Accumulate: n, Clip: clip})
	bigX, bigY, loss := regression(large, batch*n)
	large.Minimize(loss, by, nn.MinimizeOptions{Rate: rate, Clip: clip})
	if times := small.Objectives[0].Times; times != n || small.Executions() != n {
		t.Fatalf("%d executions a step, want %d", times, n)
	}
	a, b := run(t, small, true), run(t, large, true)
	parameters := func(e *machine) (all []float32) {
		for _, v := range e.model.Parameters() {
			all = append(all, e.f32(v)...)
		}
		return all
	}
	for u := range updates {
		noise(uint64(u), b.f32(bigX))
		noise(uint64(u+100), b.f32(bigY))
		b.step()
		before := parameters(a)
		for i := range n {
			copy(a.f32(x), b.f32(bigX)[i*batch*3:])
			copy(a.f32(y), b.f32(bigY)[i*batch*2:])
			a.step()
			if same := slices.Equal(parameters(a), before); same != (i < n-1) {
				t.Fatalf("execution %d of %d: parameters are the same: %v", i+1, n, same)
			}
		}
	}
	want := parameters(b)
	for i, have := range parameters(a) {
		if math.Abs(float64(have-want[i])) > 2e-3*(1+math.Abs(float64(want[i]))) {
			t.Fatalf("%d executions an update: element %d is %v, at once %v", n, i, have, want[i])
		}
	}
}

// TestClipping: gradients whose norm is less are left alone, and larger ones have the
// limit as their norm, in their own direction.
func TestClipping(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clip := float32(rapid.Float64Range(0.01, 10).Draw(rt, "clip"))
		seed := rapid.Uint64().Draw(rt, "seed")
		changes := func(clip float32) (all []float64) {
			m := nn.NewModel()
			x, y, loss := regression(m, 4)
			m.Minimize(loss, nn.SGD{}, nn.MinimizeOptions{Rate: nn.Constant(1), Clip: clip})
			e := run(t, m, true)
			noise(seed, e.f32(x))
			noise(seed+1, e.f32(y))
			var before []float32
			for _, v := range m.Parameters() {
				before = append(before, e.f32(v)...)
			}
			e.step()
			for _, v := range m.Parameters() {
				for _, w := range e.f32(v) {
					all = append(all, float64(before[len(all)]-w))
				}
			}
			return all
		}
		free, clipped := changes(0), changes(clip)
		norm := 0.0
		for _, g := range free {
			norm += g * g
		}
		factor := min(1, float64(clip)/math.Sqrt(norm))
		for i, g := range clipped {
			if math.Abs(g-factor*free[i]) > 1e-4*(1+math.Abs(free[i])) {
				rt.Fatalf("gradient %d is %v, want %v·%v of norm %v", i, g, factor, free[i],
					math.Sqrt(norm))
			}
		}
	})
}

// TestWhatIsTrained: which parameters an objective trains, and in which order.
func TestWhatIsTrained(t *testing.T) {
	for _, test := range []struct {
		options nn.MinimizeOptions
		want    string
	}{
		{nn.MinimizeOptions{}, "b/bias b/weight norm/bias norm/scale a/bias a/weight"},
		{nn.MinimizeOptions{Of: []string{"a"}}, "a/bias a/weight"},
		{nn.MinimizeOptions{Of: []string{"a/", "b/bias"}}, "b/bias a/bias a/weight"},
		{nn.MinimizeOptions{Frozen: []string{"a", "norm"}}, "b/bias b/weight"},
		{nn.MinimizeOptions{Of: []string{"a"}, Frozen: []string{"a/bias"}}, "a/weight"},
	} {
		m := nn.NewModel()
		_, _, loss := regression(m, 2)
		m.Training().Param("unused", nil, 3)
		m.Minimize(loss, nn.SGD{}, test.options)
		if err := m.Err(); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, n := range m.Objectives[0].Updates {
			names = append(names, n.In[0].Node.Name)
		}
		if have := strings.Join(names, " "); have != test.want {
			t.Errorf("%+v trains %s, want %s", test.options, have, test.want)
		}
	}
}

// TestAveragesOfObjectives: an objective updates the running averages that it
// computes, and no others.
func TestAveragesOfObjectives(t *testing.T) {
	m := nn.NewModel()
	x := m.Input("x", graph.F32, 4, 3)
	loss := func(name string) graph.Value {
		c := m.Training().In(name)
		return ops.Mean(nn.BatchNorm(c.In("norm"), nn.Linear(c.In("linear"), x, 2)))
	}
	a, b := loss("a"), loss("b")
	m.Minimize(b, nn.SGD{}, nn.MinimizeOptions{Name: "b"})
	m.Minimize(a, nn.SGD{}, nn.MinimizeOptions{Name: "a"})
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	for _, o := range m.Objectives {
		averages := 0
		for _, n := range o.Updates {
			if !strings.HasPrefix(n.In[0].Node.Name, o.Name+"/") {
				t.Errorf("objective %s updates %s", o.Name, n.In[0])
			}
			if n.In[0].Node.State {
				averages++
			}
		}
		if averages != 2 {
			t.Errorf("objective %s updates %d averages, want 2", o.Name, averages)
		}
	}
}

// TestRates: where the model's learning rate comes from.
func TestRates(t *testing.T) {
	for by, want := range map[nn.Optimizer]nn.Schedule{nn.SGD{}: nn.Constant(0.01),
		nn.Momentum{}: nn.Constant(0.01), nn.Adafactor{}: nn.InverseSqrt{Scale: 1, Warmup: 10000}} {
		m := nn.NewModel()
		_, _, loss := regression(m, 2)
		m.Minimize(loss, by)
		if m.Schedule != want {
			t.Errorf("%T has rate %v, want %v", by, m.Schedule, want)
		}
	}
	m := nn.NewModel()
	_, _, loss := regression(m, 2)
	m.Minimize(loss, nn.AdamW{}, nn.MinimizeOptions{Rate: nn.Constant(7)})
	if m.Schedule != nn.Constant(7) {
		t.Errorf("the rate is %v", m.Schedule)
	}
}

// TestBadObjectives: what cannot be minimised is one line with the caller's.
func TestBadObjectives(t *testing.T) {
	first := func(m *nn.Model, loss graph.Value) { m.Minimize(loss, nn.SGD{}) }
	with := func(o ...nn.MinimizeOptions) func(*nn.Model, graph.Value) {
		return func(m *nn.Model, loss graph.Value) { m.Minimize(loss, nn.SGD{}, o...) }
	}
	by := func(by nn.Optimizer) func(*nn.Model, graph.Value) {
		return func(m *nn.Model, loss graph.Value) { m.Minimize(loss, by) }
	}
	for want, minimize := range map[string]func(*nn.Model, graph.Value){
		`objective "train" has no optimizer`: by(nil),
		`there is an objective "train" already`: func(m *nn.Model, loss graph.Value) {
			first(m, loss)
			first(m, loss)
		},
		"has another learning rate": func(m *nn.Model, loss graph.Value) {
			first(m, loss)
			with(nn.MinimizeOptions{Name: "b", Rate: nn.Constant(3)})(m, loss)
		},
		"accumulates -1 executions, 1 times": with(nn.MinimizeOptions{Accumulate: -1, Times: 1}),
		"1 executions, -2 times":             with(nn.MinimizeOptions{Times: -2}),
		"clipped to -1":                      with(nn.MinimizeOptions{Clip: -1}),
		"clipped to NaN":                     with(nn.MinimizeOptions{Clip: nan()}),
		"weight decay is -1":                 with(nn.MinimizeOptions{Decay: -1}),
		"learning rate is 0":                 with(nn.MinimizeOptions{Rate: nn.Constant(0)}),
		"learning rate is -3":                with(nn.MinimizeOptions{Rate: nn.Stepwise{Rate: -3}}),
		"until step 3: want more than the 5": with(nn.MinimizeOptions{
			Rate: nn.CosineDecay{Rate: 1, Warmup: 5, Total: 3}}),
		"2 sets of options, want one": with(nn.MinimizeOptions{}, nn.MinimizeOptions{}),
		`"none" is no parameter`:      with(nn.MinimizeOptions{Of: []string{"none"}}),
		"depends on no parameter": func(m *nn.Model, _ graph.Value) {
			first(m, ops.Mean(m.Data[0]))
		},
		"want one number":               func(m *nn.Model, _ graph.Value) { first(m, m.Data[0]) },
		"3 decays of Adam's moments":    by(nn.Adam{Betas: make([]float32, 3)}),
		"decay 1 is outside [0, 1)":     by(nn.AdamW{Betas: []float32{1, 0.9}}),
		"momentum 1 is outside [0, 1)":  by(nn.Momentum{Mu: 1, Nesterov: true}),
		"weight decay -0.5 is negative": by(nn.AdamW{Decay: -0.5}),
		"muon with momentum 1 and":      by(nn.Muon{Mu: 1}),
		"2 is outside [0, 1)":           by(nn.Lion{Betas: []float32{0.9, 2}}),
		"which the fine form cannot": func(m *nn.Model, loss graph.Value) {
			m.Fine = true
			with(nn.MinimizeOptions{Accumulate: 2})(m, loss)
		},
		"has an evaluation already": func(m *nn.Model, loss graph.Value) {
			m.Evaluate(loss)
			m.Evaluate(loss)
		},
	} {
		m := nn.NewModel()
		_, _, loss := regression(m, 2)
		minimize(m, loss)
		refused(t, m, want, "minimize_test.go:")
	}
	m := nn.NewModel()
	m.Minimize(graph.Value{}, nn.SGD{})
	if len(m.Objectives) > 0 {
		t.Error("no value is minimised")
	}
}

// refused demands an error that says something on one line with the caller's file.
func refused(t *testing.T, m *nn.Model, want, file string) {
	t.Helper()
	text := fmt.Sprint(m.Err())
	if !strings.Contains(text, want) || !strings.Contains(text, file) ||
		strings.Contains(text, "\n") {
		t.Errorf("error is %q, want %q and %q", text, want, file)
	}
}

func nan() float32 { return float32(math.NaN()) }
