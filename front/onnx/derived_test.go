package onnx

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
	"github.com/gomem/gomem/nn"
)

// normed is a file of convolutions and products with norms, of which some weights are read twice.
func normed(t *testing.T) string {
	t.Helper()
	list := func(names ...string) []string { return names }
	g := &onnx.Graph{Name: "normed", Outputs: []*onnx.Value{
		described("y", tensor.Of(tensor.F32, 2, 3)),
		described("twice", tensor.Of(tensor.F32, 7, 7))}}
	weight := func(name string, least float32, sizes ...int) {
		v := tensor.New(tensor.Of(tensor.F32, sizes...))
		for i := range v.F32() {
			v.F32()[i] = least + float32((i*7+len(g.Initializers)*3)%11)/11
		}
		g.Initializers = append(g.Initializers, onnx.Of(name, v))
	}
	node := func(op string, a attributes, in, out []string) {
		g.Nodes = append(g.Nodes, exportedNode(op, a, in, out))
	}
	norm := func(name, in, out string, channels int) {
		for _, part := range list("scale", "shift", "mean") {
			weight(name+"."+part, -0.5, channels)
		}
		weight(name+".variance", 0.25, channels)
		node("BatchNormalization", attributes{"epsilon": float32(1e-3)}, list(in, name+".scale",
			name+".shift", name+".mean", name+".variance"), list(out))
	}
	g.Inputs = []*onnx.Value{described("x", tensor.Of(tensor.F32, 2, 3, 5, 5))}
	weight("plain.w", -0.5, 4, 3, 3, 3)
	node("Conv", nil, list("x", "plain.w"), list("plain"))
	norm("norm1", "plain", "a", 4)
	weight("biased.w", -0.5, 6, 2, 2, 2)
	weight("biased.b", -0.5, 6)
	node("Conv", attributes{"group": 2}, list("a", "biased.w", "biased.b"), list("biased"))
	norm("norm2", "biased", "b", 6)
	node("Flatten", nil, list("b"), list("flat"))
	weight("rows.w", -0.5, 5, 24)
	weight("rows.b", -0.5, 5)
	node("Gemm", attributes{"transB": 1}, list("flat", "rows.w", "rows.b"), list("rows"))
	norm("norm3", "rows", "c", 5)
	weight("columns.w", -0.5, 5, 7)
	node("Gemm", nil, list("c", "columns.w"), list("columns"))
	norm("norm4", "columns", "d", 7)
	weight("turned.w", -0.5, 3, 7)
	node("Transpose", attributes{"perm": []int{1, 0}}, list("turned.w"), list("turned"))
	node("MatMul", nil, list("d", "turned"), list("y"))
	weight("twice.w", -0.5, 7, 7)
	node("Transpose", nil, list("twice.w"), list("again"))
	node("MatMul", nil, list("twice.w", "again"), list("e"))
	norm("norm5", "e", "twice", 7)
	m := onnx.Model{IRVersion: exportedIR, Graph: g,
		Opsets: []onnx.Opset{{Version: exportedVersion}}}
	path := filepath.Join(t.TempDir(), "normed.onnx")
	if err := os.WriteFile(path, m.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDerived: norms whose averages are fixed are computed by the filters before them, and weights
// are turned round when they are loaded, where a network is not trained; its results are those of
// one that is, but for rounding. What is read twice is as it is.
func TestDerived(t *testing.T) {
	path := normed(t)
	names := map[bool][]string{}
	var outs [2][]tensor.View
	for i, untrained := range []bool{false, true} {
		net, err := Open(path, Options{Untrained: untrained})
		if err != nil {
			t.Fatal(err)
		}
		m := nn.NewModel()
		ys := net.Apply(m.Evaluation(), net.Inputs(m)...)
		if err := m.Err(); err != nil {
			t.Fatal(err)
		}
		for _, v := range m.Graph.Variables() {
			names[untrained] = append(names[untrained], v.Name)
		}
		x := tensor.New(tensor.Of(graph.F32, 2, 3, 5, 5))
		for i := range x.F32() {
			x.F32()[i] = float32(i%13)/13 - 0.25
		}
		for _, y := range ys {
			outs[i] = append(outs[i], computed(t, y, map[string]tensor.View{"x": x},
				func(s *gomem.Session) error { return net.Load(s.Variables(), s.Set) }, nil))
		}
	}
	slices.Sort(names[true])
	want := []string{"biased.w", "columns.w", "norm1.shift", "norm2.shift", "norm3.shift",
		"norm4.shift", "norm5.mean", "norm5.scale", "norm5.shift", "norm5.variance", "plain.w",
		"rows.w", "turned.w", "twice.w"}
	if !slices.Equal(names[true], want) || len(names[false]) != 28 {
		t.Errorf("variables are %q, and %d trained ones", names[true], len(names[false]))
	}
	for k, y := range outs[0] {
		for i, v := range y.F32() {
			got, most := outs[1][k].F32()[i], 1e-5*math.Abs(float64(v))+1e-6
			if math.Abs(float64(got-v)) > most {
				t.Errorf("element %d of result %d is %v, want %v", i, k, got, v)
			}
		}
	}
}

// TestNormsThatStay: a norm whose operands are not one number of each channel is refused by its own
// name, whether or not filters are before it, and one of which more is read is not in them.
func TestNormsThatStay(t *testing.T) {
	for name, c := range map[string]struct {
		scale []int
		more  string // another result of the norm
		want  string
	}{
		"one number":      {[]int{1}, "", `node BatchNormalization "z": operand 1 is f32[1]`},
		"too few":         {[]int{3}, "", `node BatchNormalization "z": operand 1 is f32[3]`},
		"a matrix":        {[]int{2, 2}, "", `node BatchNormalization "z": operand 1 is f32[2 2]`},
		"a result beside": {[]int{4}, "mean'", ""},
	} {
		g := &onnx.Graph{Name: "stays",
			Inputs:  []*onnx.Value{described("x", tensor.Of(tensor.F32, 1, 3, 5, 5))},
			Outputs: []*onnx.Value{described("z", tensor.Of(tensor.F32, 1, 4, 3, 3))}}
		weight := func(name string, sizes ...int) {
			v := tensor.New(tensor.Of(tensor.F32, sizes...))
			for i := range v.F32() {
				v.F32()[i] = float32(i%5) + 0.5
			}
			g.Initializers = append(g.Initializers, onnx.Of(name, v))
		}
		weight("w", 4, 3, 3, 3)
		weight("s", c.scale...)
		outs := []string{"z"}
		if c.more != "" {
			outs = append(outs, c.more)
			g.Outputs = append(g.Outputs, described(c.more, tensor.Of(tensor.F32, 4)))
		}
		for _, of := range []string{"b", "m", "v"} {
			weight(of, 4)
		}
		g.Nodes = []*onnx.Node{exportedNode("Conv", nil, []string{"x", "w"}, []string{"y"}),
			exportedNode("BatchNormalization", nil, []string{"y", "s", "b", "m", "v"}, outs)}
		m := onnx.Model{IRVersion: exportedIR, Graph: g,
			Opsets: []onnx.Opset{{Version: exportedVersion}}}
		path := filepath.Join(t.TempDir(), "stays.onnx")
		if err := os.WriteFile(path, m.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		net, err := Open(path, Options{Untrained: true})
		if err != nil {
			t.Fatal(err)
		}
		model := nn.NewModel()
		ys := net.Apply(model.Evaluation(), net.Inputs(model)...)
		err = model.Err()
		switch {
		case c.want == "" && (err != nil || len(ys) != len(outs) ||
			len(model.Graph.Variables()) != 5):
			t.Errorf("%s: %d results, %d variables, %v", name, len(ys),
				len(model.Graph.Variables()), err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
