package onnx

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// TestNothingToAttendTo: where a mask hides a whole row, a Softmax gives what onnxruntime's does.
// By numbers that are large all elements are alike; by infinity, or two large numbers that add up
// to it, there is no distribution; zeros in place of that are zeros.
func TestNothingToAttendTo(t *testing.T) {
	hidden, lowest := float32(math.Inf(-1)), float32(-math.MaxFloat32)
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		form func(e *exporter) string
		want float32
	}{
		"infinity": {func(e *exporter) string { return e.hiding(hidden) }, nan},
		"lowest":   {func(e *exporter) string { return e.hiding(lowest) }, 0.25},
		"added": {func(e *exporter) string {
			return e.made("Add", nil, "x", e.hidingOf(e.number(0), lowest))
		}, 0.25},
		"added twice": {func(e *exporter) string {
			mask := e.hidingOf(e.number(0), lowest)
			return e.made("Add", nil, e.made("Add", nil, "x", mask), mask)
		}, nan},
	} {
		for _, zeroed := range []bool{false, true} {
			want := c.want
			if zeroed && want != want {
				want = 0
			}
			if got := hiddenRow(t, c.form, zeroed); math.Float32bits(got) !=
				math.Float32bits(want) && (got == got || want == want) {
				t.Errorf("%s, NaN to zeros %v: %v, want %v", name, zeroed, got, want)
			}
		}
	}
}

// hidingOf is v where the mask is true.
func (e *exporter) hidingOf(v string, other float32) string {
	return e.made("Where", nil, "mask", v, e.number(other))
}

func (e *exporter) hiding(other float32) string { return e.hidingOf("x", other) }

// hiddenRow is an element of the Softmax of a row that is hidden.
func hiddenRow(t *testing.T, form func(e *exporter) string, zeroed bool) float32 {
	t.Helper()
	e := &exporter{names: map[graph.Value]string{}, taken: graph.Names{}}
	row := tensor.FromF32([]float32{1, 2, 3, 4}, 1, 4)
	mask := tensor.New(tensor.Of(tensor.Bool, 1, 4))
	e.file.Inputs = append(e.file.Inputs, described("x", row.Type), described("mask", mask.Type))
	y := e.made("Softmax", attributes{"axis": -1}, form(e))
	if zeroed {
		y = e.made("Where", nil, e.made("IsNaN", nil, y), e.number(0), y)
	}
	e.file.Outputs = append(e.file.Outputs, described(y, row.Type))
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := e.write(path, nil); err != nil {
		t.Fatal(err)
	}
	net, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := nn.NewModel()
	out := net.Apply(m.Evaluation(), net.Inputs(m)...)[0]
	feeds := map[string]tensor.View{"x": row, "mask": mask}
	return computed(t, out, feeds, nil, nil).F32()[0]
}
