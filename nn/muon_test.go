package nn_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// pulled is a parameter f32[sizes] after steps by gradients that are given, from a start.
func pulled(t *testing.T, by nn.Optimizer, rate float32, table bool, start []float32,
	gradients [][]float32, sizes ...int) []float32 {
	t.Helper()
	m := nn.NewModel()
	x, c := m.Input("x", graph.F32, sizes...), m.Training()
	var w graph.Value
	if table {
		w = c.Table("w", nil, tensor.Of(graph.F32, sizes...))
	} else {
		w = c.Param("w", nil, sizes...)
	}
	m.Minimize(ops.Sum(ops.Mul(w, x)), by, nn.MinimizeOptions{Rate: nn.Constant(rate)})
	e := run(t, m, true)
	copy(e.f32(w), start)
	for _, g := range gradients {
		copy(e.f32(x), g)
		e.step()
	}
	return slices.Clone(e.f32(w))
}

// TestMuonAsPyTorch: matrices are those of torch.optim.Muon, computed in float64.
func TestMuonAsPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/muon.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Rows, Columns int
		Start, End    []float32
		Gradients     [][]float32
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		have := pulled(t, nn.Muon{Mu: 0.9, Decay: 0.2}, 0.05, false, c.Start, c.Gradients, c.Rows,
			c.Columns)
		compare(t, fmt.Sprint(c.Rows, "×", c.Columns), have, c.End)
	}
	if len(cases) == 0 {
		t.Error("nothing to compare with")
	}
}

// TestMuon against a plain loop, in float64: of a matrix that is taller than the others, so that
// products are of several tiles.
func TestMuon(t *testing.T) {
	const rows, columns, rate, mu, decay = 40, 9, 0.02, 0.95, 0.1
	start := noise(1, make([]float32, rows*columns))
	gradients := [][]float32{noise(2, make([]float32, rows*columns)),
		noise(3, make([]float32, rows*columns)), noise(4, make([]float32, rows*columns))}
	w, m := make([]float64, rows*columns), make([]float64, rows*columns)
	for i, x := range start {
		w[i] = float64(x)
	}
	for _, g := range gradients {
		x := make([]float64, rows*columns)
		for i := range x {
			fresh := float64((1 - mu) * float64(g[i]))
			m[i] = float64(mu*m[i]) + fresh
			x[i] = float64(mu*m[i]) + fresh
		}
		x = plainSchulz(x, rows, columns)
		scale := 0.2 * math.Sqrt(rows)
		for i := range w {
			w[i] -= rate * (float64(decay*w[i]) + float64(scale*x[i]))
		}
	}
	want := make([]float32, len(w))
	for i, x := range w {
		want[i] = float32(x)
	}
	compare(t, "muon", pulled(t, nn.Muon{}, rate, false, start, gradients, rows, columns), want)
}

// plainSchulz is five iterations on a matrix, a·x + b·(x·xᵀ)·x + c·(x·xᵀ)²·x.
func plainSchulz(x []float64, rows, columns int) []float64 {
	norm := 0.0
	for _, v := range x {
		norm += float64(v * v)
	}
	for i := range x {
		x[i] /= math.Sqrt(norm)
	}
	gramTimes := func(y []float64) []float64 { // x·xᵀ·y
		out := make([]float64, len(y))
		for i := range rows {
			for k := range rows {
				dot := 0.0
				for j := range columns {
					dot += float64(x[i*columns+j] * x[k*columns+j])
				}
				for j := range columns {
					out[i*columns+j] += float64(dot * y[k*columns+j])
				}
			}
		}
		return out
	}
	for range 5 {
		first := gramTimes(x)
		second := gramTimes(first)
		next := make([]float64, len(x))
		for i := range x {
			next[i] = float64(3.4445*x[i]) + float64(-4.7750*first[i]) + float64(2.0315*second[i])
		}
		x = next
	}
	return x
}

// TestMuonLeaves: tables, vectors, stacks of matrices and what is exempt are AdamW's.
func TestMuonLeaves(t *testing.T) {
	adam := nn.AdamW{Decay: 0.1}
	all := func(graph.Value) bool { return true }
	for name, c := range map[string]struct {
		by    nn.Muon
		table bool
		sizes []int
		same  bool
	}{
		"matrix":        {sizes: []int{3, 4}},
		"table":         {sizes: []int{3, 4}, table: true, same: true},
		"vector":        {sizes: []int{12}, same: true},
		"stack":         {sizes: []int{2, 2, 3}, same: true},
		"exempt":        {sizes: []int{3, 4}, by: nn.Muon{Exempt: all}, same: true},
		"of own decays": {sizes: []int{12}, by: nn.Muon{Rest: nn.AdamW{Decay: 0.4}}},
	} {
		start, g := noise(1, make([]float32, 12)), [][]float32{noise(2, make([]float32, 12))}
		have := pulled(t, c.by, 0.1, c.table, start, g, c.sizes...)
		want := pulled(t, adam, 0.1, c.table, start, g, c.sizes...)
		if slices.Equal(have, want) != c.same {
			t.Errorf("%s: %v, by AdamW %v", name, have, want)
		}
	}
	none := make([]float32, 12)
	if have := pulled(t, nn.Muon{}, 0.1, false, none, [][]float32{none}, 3, 4); !slices.Equal(have,
		none) {
		t.Errorf("no gradient: %v", have)
	}
}
