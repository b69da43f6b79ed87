package nn_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
)

// broad is a classifier whose first layer is large enough for small moments.
func broad(t *testing.T, by nn.Optimizer, o nn.MinimizeOptions,
	set ...func(*nn.Model)) (m *nn.Model, x, y graph.Value) {
	t.Helper()
	m = nn.NewModel()
	for _, f := range set {
		f(m)
	}
	x, y = m.Input("x", graph.F32, 8, 64), m.Input("y", graph.I32, 8)
	c := m.Training()
	h := nn.Relu(nn.Linear(c.In("wide"), x, 70))
	m.Minimize(nn.CrossEntropy(nn.Linear(c.In("out"), h, 10), y), by, o)
	return m, x, y
}

// TestSmallMomentsUnderPlans: no plan changes a bit of moments of few bits, with gradients that
// are clipped and accumulated.
func TestSmallMomentsUnderPlans(t *testing.T) {
	for _, moments := range []graph.DType{graph.BF16, graph.U8} {
		m, x, y := broad(t, nn.AdamW{Moments: moments},
			nn.MinimizeOptions{Clip: 0.5, Accumulate: 2})
		samePlans(t, m, x, y)
		m, x, y = broad(t, nn.AdamW{Moments: moments}, nn.MinimizeOptions{Clip: 0.5}, halved)
		samePlans(t, m, x, y)
	}
}

// TestSmallMomentsAreVariables: moments have the types that they are kept in; those of parameters
// of few elements stay f32.
func TestSmallMomentsAreVariables(t *testing.T) {
	for moments, want := range map[graph.DType]string{
		0:          "f32[64 70] f32[64 70]",
		graph.F32:  "f32[64 70] f32[64 70]",
		graph.BF16: "bf16[64 70] bf16[64 70]",
		graph.U8:   "u8[64 70] f32[18] u8[64 70] f32[18]",
	} {
		for _, by := range []nn.Optimizer{nn.Adam{Moments: moments}, nn.AdamW{Moments: moments}} {
			m, _, _ := broad(t, by, nn.MinimizeOptions{})
			var wide []string
			for _, n := range m.Graph.Variables() {
				switch {
				case strings.HasPrefix(n.Name, "wide/weight/"):
					wide = append(wide, n.Out[0].String())
				case n.Out[0].DType != graph.F32:
					t.Errorf("%s is %s", n.Name, n.Out[0])
				}
			}
			if strings.Join(wide, " ") != want {
				t.Errorf("%T of %s: %v, want %s", by, moments, wide, want)
			}
		}
	}
}

// TestHalvesAreVariables: all that is kept of a matrix is 2 bytes an element, and its moments.
func TestHalvesAreVariables(t *testing.T) {
	m, _, _ := broad(t, nn.AdamW{Moments: graph.U8}, nn.MinimizeOptions{Clip: 1}, halved)
	var all []string
	for _, n := range m.Graph.Variables() {
		all = append(all, n.Name+" "+n.Out[0].String())
	}
	want := []string{"wide/weight bf16[64 70]", "wide/bias f32[70]", "out/weight bf16[70 10]",
		"out/bias f32[10]", "out/bias/first f32[10]", "out/bias/second f32[10]",
		"out/weight/first u8[70 10]", "out/weight/first-scales f32[3]",
		"out/weight/second u8[70 10]", "out/weight/second-scales f32[3]",
		"wide/bias/first f32[70]", "wide/bias/second f32[70]", "wide/weight/first u8[64 70]",
		"wide/weight/first-scales f32[18]", "wide/weight/second u8[64 70]",
		"wide/weight/second-scales f32[18]"}
	if !slices.Equal(all, want) {
		t.Errorf("variables are\n%v, want\n%v", all, want)
	}
}

// TestSmallMomentsLearn: after the same steps, the loss is that of f32 within some percent.
func TestSmallMomentsLearn(t *testing.T) {
	loss := func(by nn.Optimizer, set ...func(*nn.Model)) float64 {
		m, x, y := broad(t, by, nn.MinimizeOptions{Rate: nn.Constant(0.003)}, set...)
		e := run(t, m, true)
		recent := 0.0
		for step := range 400 {
			noise(uint64(step), e.f32(x))
			labels := e.Value(y).I32()
			for i := range labels {
				row := e.f32(x)[i*64 : i*64+10] // the largest of ten is the class
				labels[i] = int32(slices.Index(row, slices.Max(row)))
			}
			e.step()
			if step >= 300 {
				recent += float64(e.f32(m.Objectives[0].Loss)[0]) / 100
			}
		}
		return recent
	}
	plain := loss(nn.AdamW{})
	if plain > 1.3 {
		t.Fatalf("the loss by f32 is %v: nothing is learnt", plain)
	}
	for _, moments := range []graph.DType{graph.BF16, graph.U8} {
		half := loss(nn.AdamW{Moments: moments}, halved)
		if math.Abs(half/plain-1) > 0.05 {
			t.Errorf("the loss by matrices of bf16 and %s is %v, by f32 %v", moments, half, plain)
		}
		if small := loss(nn.AdamW{Moments: moments}); math.Abs(small/plain-1) > 0.03 {
			t.Errorf("the loss by %s is %v, by f32 %v", moments, small, plain)
		}
	}
}

// TestBadSmallMoments: what there is not is an error of the graph.
func TestBadSmallMoments(t *testing.T) {
	for want, f := range map[string]func(m *nn.Model) nn.Optimizer{
		"moments of Adam in f16: want f32, bf16 or u8": func(*nn.Model) nn.Optimizer {
			return nn.AdamW{Moments: graph.F16}
		},
		"the fine form has no moments of Adam in bf16": func(m *nn.Model) nn.Optimizer {
			m.Fine = true
			return nn.Adam{Moments: graph.BF16}
		},
		"a/weight is bf16, which Adam and AdamW train": func(m *nn.Model) nn.Optimizer {
			halved(m)
			return nn.AdamW{}
		},
		"is bf16, which workers do not exchange": func(m *nn.Model) nn.Optimizer {
			halved(m)
			m.Workers = 2
			return nn.AdamW{Moments: graph.U8}
		},
	} {
		m := nn.NewModel()
		by := f(m)
		_, _, loss := regression(m, 2)
		m.Minimize(loss, by)
		if err := m.Err(); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

// halved makes matrices variables of bfloat16.
func halved(m *nn.Model) {
	m.Halves = func(_ string, t graph.Type) bool { return t.Rank() == 2 }
}
