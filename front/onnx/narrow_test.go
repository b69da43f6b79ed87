package onnx

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
	"github.com/gomem/gomem/nn"
)

// narrow writes a file with weights of a type: a product, and a sum.
func narrow(t *testing.T, d graph.DType) (path string) {
	t.Helper()
	numbers := func(sizes ...int) tensor.View {
		v := tensor.New(tensor.Of(tensor.F32, sizes...))
		for i := range v.F32() {
			v.F32()[i] = float32(i*i%17)/7 - 1
		}
		return v.As(d)
	}
	value := func(name string, sizes ...int) *onnx.Value {
		return described(name, tensor.Of(d, sizes...))
	}
	m := onnx.Model{IRVersion: exportedIR, Opsets: []onnx.Opset{{Version: exportedVersion}},
		Graph: &onnx.Graph{Name: "narrow",
			Initializers: []*onnx.Tensor{onnx.Of("w", numbers(5, 7)), onnx.Of("b", numbers(7))},
			Inputs:       []*onnx.Value{value("x", 3, 5)}, Outputs: []*onnx.Value{value("y", 3, 7)},
			Nodes: []*onnx.Node{exportedNode("MatMul", nil, []string{"x", "w"}, []string{"xw"}),
				exportedNode("Add", nil, []string{"xw", "b"}, []string{"y"})}}}
	path = filepath.Join(t.TempDir(), "narrow.onnx")
	if err := os.WriteFile(path, m.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNarrow: weights of 16 bits that are not trained have 16 bits in memory, those that are have
// 32, and the network's results have the same bits.
func TestNarrow(t *testing.T) {
	for _, d := range []graph.DType{graph.F16, graph.BF16, graph.F32} {
		path := narrow(t, d)
		var outs []tensor.View
		for _, c := range []struct {
			o          Options
			w, b       graph.DType
			parameters int64
		}{
			{Options{}, graph.F32, graph.F32, 42},
			{Options{Untrained: true}, d, d, 42},
			{Options{Frozen: func(name string) bool { return name == "w" }}, d, graph.F32, 7},
		} {
			net, err := Open(path, c.o)
			if err != nil {
				t.Fatal(err)
			}
			m := nn.NewModel()
			out := net.Apply(m.Evaluation(), net.Inputs(m)...)[0]
			if err := m.Err(); err != nil {
				t.Fatal(err)
			}
			for _, v := range m.Graph.Variables() {
				want := map[string]graph.DType{"w": c.w, "b": c.b}[v.Name]
				if got := v.Out[0].DType; got != want {
					t.Errorf("%s of %s is %s, want %s", v.Name, d, got, want)
				}
			}
			if got := m.Graph.Parameters(); got != c.parameters {
				t.Errorf("%d parameters, want %d", got, c.parameters)
			}
			x := tensor.New(tensor.Of(tensor.F32, 3, 5))
			for i := range x.F32() {
				x.F32()[i] = float32(i)/4 - 1
			}
			outs = append(outs, computed(t, out, map[string]tensor.View{"x": x.As(d)},
				func(s *gomem.Session) error { return net.Load(s.Variables(), s.Set) }, nil))
		}
		for _, got := range outs[1:] {
			if string(got.Data) != string(outs[0].Data) {
				t.Errorf("%s: %v, want %v", d, got.As(tensor.F32).F32(),
					outs[0].As(tensor.F32).F32())
			}
		}
	}
}

// TestNarrowTraining: what is trained learns beside weights of 16 bits, and a network that is
// untrained has no training step.
func TestNarrowTraining(t *testing.T) {
	minimized := func(o Options) error {
		net, err := Open(narrow(t, graph.F16), o)
		if err != nil {
			t.Fatal(err)
		}
		m := nn.NewModel()
		y := net.Apply(m.Training(), net.Inputs(m)...)[0]
		m.Minimize(ops.Mean(ops.Square(ops.Cast(y, graph.F32))), nn.Adam{})
		return m.Err()
	}
	frozen := func(name string) bool { return name == "w" }
	if err := minimized(Options{Frozen: frozen}); err != nil {
		t.Error(err)
	}
	err := minimized(Options{Untrained: true})
	if err == nil || !strings.Contains(err.Error(), "is f16[7], want f32") {
		t.Errorf("it is trained: %v", err)
	}
}
