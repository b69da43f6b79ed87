package strads

import (
	"encoding/json"
	"os"
	"testing"
)

// TestScikitLearn: the Lasso's coefficients are scikit-learn's, by one worker and by several. What
// it found is in testdata/lasso.json, which testdata/lasso.py has made.
func TestScikitLearn(t *testing.T) {
	text, err := os.ReadFile("testdata/lasso.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			X      [][]float64 // a column a feature
			Y, B   []float64
			Lambda float64
		}
	}
	if err := json.Unmarshal(text, &file); err != nil || len(file.Cases) == 0 {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		var all []float64
		for _, x := range c.X {
			all = append(all, x...)
		}
		d, err := Dense(len(c.Y), len(c.X), all)
		if err != nil {
			t.Fatal(err)
		}
		p := &Problem{X: d, Y: c.Y, L1: c.Lambda / 2}
		stop := Stop{Epochs: 20000, Gap: 1e-14}
		at := &Point{B: make([]float64, len(c.X))}
		if err := p.Solve(at, stop, func(Progress) error { return nil }); err != nil {
			t.Fatal(err)
		}
		near(t, "alone", at.B, c.B, 1e-6)
		b, _ := together(t, 2, p, Options{Seed: 4}, stop)
		near(t, "together", b, c.B, 1e-6)
	}
}
