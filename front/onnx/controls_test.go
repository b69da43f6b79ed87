package onnx

import (
	"path/filepath"
	"testing"

	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// TestControl: loops and branches that data decide give what onnxruntime does, as operations: the
// graph of a loop does not grow with its iterations. Their weights have gradients.
func TestControl(t *testing.T) {
	for name, most := range map[string]int{"newton": 20, "branch": 12, "recurrent": 20,
		"counted": 20} {
		dir := filepath.Join("testdata", "control", name)
		if err := nodeCase(t, dir); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		net, err := Open(filepath.Join(dir, "model.onnx"), Options{Bound: 50})
		if err != nil {
			t.Fatal(err)
		}
		m := nn.NewModel()
		in := net.Inputs(m)
		y := net.Apply(m.Training(), in...)[0]
		if n := m.Graph.Len(); n > most {
			t.Errorf("%s: %d nodes", name, n)
		}
		wrt := append(m.Parameters(), in[0])
		for i, d := range autodiff.Grad(ops.Sum(ops.Square(y)), wrt...) {
			if !d.Valid() {
				t.Errorf("%s: %s has no gradient: %v", name, wrt[i], m.Err())
			}
		}
	}
}
