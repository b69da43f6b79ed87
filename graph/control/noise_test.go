package control_test

import (
	"bytes"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

// noisy is a layer of some steps with dropout and noise, that folds the step's number into its seed
// or does not; scanned or unrolled.
func noisy(scanned, folds bool) (all []value) {
	const steps = 5
	g := graph.New()
	x, w := g.Input("x", f32(3, 4)), g.Input("w", f32(4, 4))
	seed := g.Input("seed", graph.Of(graph.I32, 2))
	numbers := make([]int32, steps)
	for k := range numbers {
		numbers[k] = int32(k)
	}
	ks := g.Constant("numbers", tensor.FromI32(numbers, steps))
	step := func(w, seed, h, k value) (next, noise value) {
		if folds {
			seed = ops.FoldIn(seed, k)
		}
		noise = ops.RandomNormal(seed, h.Type(), "noise")
		h = ops.Tanh(ops.MatMul(ops.Dropout(h, seed, 0.3, "drop"), w))
		return ops.Add(h, ops.Scale(noise, 0.1)), noise
	}
	var noise value
	h := x
	if scanned {
		last, rows := control.Scan([]value{w, seed}, []value{h}, []value{ks},
			func(same, states, xs []value) (next, ys []value) {
				h, noise := step(same[0], same[1], states[0], xs[0])
				return []value{h}, []value{noise}
			})
		h, noise = last[0], rows[0]
	} else {
		var rows []value
		for _, k := range ops.Unstack(ks) {
			leave := g.Rerun() // draws by the same names
			var row value
			h, row = step(w, seed, h, k)
			rows = append(rows, row)
			leave()
		}
		noise = ops.Stack(rows...)
	}
	d := autodiff.Grad(ops.Sum(ops.Square(h)), x, w)
	return []value{h, noise, d[0], d[1]}
}

// TestNoise: a loop that folds its iteration into the seed draws, forward and back, what an
// unrolled one does, to the bit, by its step; without, all iterations draw the same.
func TestNoise(t *testing.T) {
	names := []string{"h", "noise", "dx", "dw"}
	drawn := map[string]bool{}
	for step := range int32(2) {
		for _, folds := range []bool{true, false} {
			a, b := noisy(true, folds), noisy(false, folds)
			set := func(m *reference.Machine, of []value) {
				for _, n := range of[0].Graph().Inputs() {
					if n.Name == "seed" {
						copy(m.Value(n.Value(0)).I32(), []int32{11, step})
					}
				}
			}
			got := compute(t, 2, func(m *reference.Machine) { set(m, a) }, a...)
			want := compute(t, 1, func(m *reference.Machine) { set(m, b) }, b...)
			for i := range want {
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("folds %t: %s differs", folds, names[i])
				}
			}
			rows := got[1]
			size := len(rows) / 5
			for k := 1; k < 5; k++ {
				if bytes.Equal(rows[:size], rows[k*size:][:size]) == folds {
					t.Errorf("folds %t: iteration %d draws as iteration 0: %t", folds, k, !folds)
				}
			}
			if drawn[string(rows)] {
				t.Error("steps draw the same")
			}
			drawn[string(rows)] = true
		}
	}
}
