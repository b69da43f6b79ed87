package onnx

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
	"github.com/gomem/gomem/nn"
)

// TestPower: powers of 2 and 3 are products, and others are powers, of what is below zero, too.
func TestPower(t *testing.T) {
	for _, exponent := range []float32{2, 3, 0.5} {
		kind := tensor.Of(tensor.F32, 5)
		p := onnx.Of("p", tensor.FromF32([]float32{exponent}))
		m := onnx.Model{IRVersion: exportedIR, Opsets: []onnx.Opset{{Version: exportedVersion}},
			Graph: &onnx.Graph{Name: "power", Initializers: []*onnx.Tensor{p},
				Inputs:  []*onnx.Value{described("x", kind)},
				Outputs: []*onnx.Value{described("y", kind)},
				Nodes: []*onnx.Node{exportedNode("Pow", nil, []string{"x", "p"},
					[]string{"y"})}}}
		path := filepath.Join(t.TempDir(), "power.onnx")
		if err := os.WriteFile(path, m.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		net, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := nn.NewModel()
		y := net.Apply(c.Evaluation(), net.Inputs(c)...)[0]
		if err := c.Err(); err != nil {
			t.Fatal(err)
		}
		x := tensor.FromF32([]float32{-1.5, 0, 0.25, float32(math.Inf(1)), 3}, 5)
		got := computed(t, y, map[string]tensor.View{"x": x},
			func(*gomem.Session) error { return nil }, nil)
		for i, v := range x.F32() {
			want := math.Pow(float64(v), float64(exponent))
			if d := math.Abs(float64(got.F32()[i]) - want); d > 1e-6*math.Abs(want) {
				t.Errorf("%v^%v is %v, want %v", v, exponent, got.F32()[i], want)
			}
		}
		if op := y.Node.OpName(); (op == "pow") != (exponent == 0.5) {
			t.Errorf("the power %v is computed by %s", exponent, op)
		}
	}
}
