package onnx

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gomem/gomem/nn"
)

// FuzzApply: whatever a file has, it becomes a network, or an error.
func FuzzApply(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*/model.onnx")
	if err != nil || len(files) == 0 {
		f.Fatal("no models: ", err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		net, err := Open(path, Options{Bound: 4})
		if err != nil {
			return
		}
		m := nn.NewModel()
		out := net.Apply(m.Training(), net.Inputs(m)...)
		if m.Err() == nil && len(out) > 0 && !out[0].Valid() {
			t.Error("no output, and no error")
		}
	})
}
