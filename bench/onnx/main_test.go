package main

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph/tensor"
)

// held is a test that all networks of a directory are PyTorch's.
func held(t *testing.T, dir string) {
	list, err := files(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		t.Run(title(path), func(t *testing.T) {
			n, err := open(path)
			if err != nil {
				t.Fatal(err)
			}
			r, err := n.compare(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !r.agrees() || r.grads == 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestFixtures: a file of each of PyTorch's exporters gives what PyTorch computes.
func TestFixtures(t *testing.T) { held(t, "testdata") }

// TestModels is the same of all networks that export.py has written.
func TestModels(t *testing.T) {
	dir := os.Getenv("GOMEM_ONNX_MODELS")
	if dir == "" {
		t.Skip("GOMEM_ONNX_MODELS names no directory that export.py has written")
	}
	held(t, dir)
}

// TestDifference: what is not a number, or of other sizes, differs.
func TestDifference(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		got, want []float32
		floor     float64
		most      float64
	}{{[]float32{1, 2}, []float32{1, 4}, 0, 0.5}, {[]float32{1, 2}, []float32{1, 4}, 8, 0.25},
		{[]float32{0, 0}, []float32{0, 0}, 0, 0}} {
		got, err := difference(tensor.FromF32(c.got, 2), tensor.FromF32(c.want, 2), c.floor)
		if err != nil || got != c.most {
			t.Errorf("%v, want %v: %v, %v; want %v", c.got, c.want, got, err, c.most)
		}
	}
	for _, pair := range [][2][]float32{{{nan, 1}, {1, 1}}, {{1, 1}, {nan, 1}}} {
		r := result{}
		r.output, _ = difference(tensor.FromF32(pair[0], 2), tensor.FromF32(pair[1], 2), 0)
		if r.agrees() {
			t.Errorf("%v agrees with %v", pair[0], pair[1])
		}
	}
	if _, err := difference(tensor.FromF32([]float32{1, 1}, 2),
		tensor.FromF32([]float32{1, 1}, 1, 2), 0); err == nil {
		t.Error("other sizes agree")
	}
}

// TestRefusals: what is wrong with a directory or a flag is said in a line.
func TestRefusals(t *testing.T) {
	if _, err := parse([]string{"what"}, t.Output()); err == nil {
		t.Error("an argument was passed over")
	}
	var out strings.Builder
	err := run(t.Context(), options{models: t.TempDir()}, &out)
	if err == nil || !strings.Contains(err.Error(), "export.py") {
		t.Errorf("of no files: %v", err)
	}
	out.Reset()
	if err := run(t.Context(), options{models: "testdata", only: "cnn"}, &out); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "| cnn-torchscript | 10 |") {
		t.Errorf("printed\n%s", &out)
	}
}
