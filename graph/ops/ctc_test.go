package ops_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// reading is what a sequence of symbols reads: without repetitions, then without
// blanks.
func reading(path []int32, blank int32) []int32 {
	path = slices.Compact(slices.Clone(path))
	return slices.DeleteFunc(path, func(s int32) bool { return s == blank })
}

// enumerate is the loss by trying every sequence of symbols, and its gradient:
// rows of logits, one for a frame.
func enumerate(logits [][]float64, labels []int32) (loss float64, grad [][]float64) {
	v := len(logits[0])
	probability := make([][]float64, len(logits))
	grad = make([][]float64, len(logits))
	for t, row := range logits {
		sum := 0.0
		for _, x := range row {
			sum += math.Exp(x)
		}
		grad[t] = make([]float64, v)
		for _, x := range row {
			probability[t] = append(probability[t], math.Exp(x)/sum)
		}
	}
	total := 0.0
	path := make([]int32, len(logits))
	for more := true; more; more = count(path, int32(v)) {
		if !slices.Equal(reading(path, int32(v-1)), labels) {
			continue
		}
		p := 1.0
		for t, s := range path {
			p *= probability[t][s]
		}
		total += p
		for t, s := range path {
			grad[t][s] += p
		}
	}
	for t := range grad {
		for k := range grad[t] {
			grad[t][k] = probability[t][k] - grad[t][k]/total
		}
	}
	return -math.Log(total), grad
}

// count goes to the next sequence of digits below base; it reports false after
// the last.
func count(digits []int32, base int32) bool {
	for i := range digits {
		if digits[i]++; digits[i] < base {
			return true
		}
		digits[i] = 0
	}
	return false
}

// TestCTCByEnumeration: loss and gradient are those of all alignments together.
func TestCTCByEnumeration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames, items := rapid.IntRange(1, 5).Draw(t, "frames"),
			rapid.IntRange(1, 3).Draw(t, "items")
		v, l := rapid.IntRange(2, 4).Draw(t, "symbols"), rapid.IntRange(1, 3).Draw(t, "labels")
		draw := func(what string, n, lo, hi int) []int32 {
			return rapid.SliceOfN(rapid.Int32Range(int32(lo), int32(hi)), n, n).Draw(t, what)
		}
		labels, lengths := draw("labels", items*l, 0, v-2), draw("lengths", items, 0, l)
		inputs := draw("inputs", items, 1, frames)
		logits := tensor.New(tensor.Of(graph.F32, frames, items, v))
		for i := range logits.F32() {
			logits.F32()[i] = rapid.Float32Range(-3, 3).Draw(t, "logit")
		}
		weights := random(items)
		in := []tensor.View{logits, tensor.FromI32(labels, items, l),
			tensor.FromI32(lengths, items), tensor.FromI32(inputs, items)}
		losses := compute(t, func(in []graph.Value) graph.Value {
			return ops.CTCLoss(in[0], in[1],
				in[2], in[3])
		}, in...)
		grads := compute(t, func(in []graph.Value) graph.Value {
			loss := ops.CTCLoss(in[0], in[1], in[2], in[3])
			return autodiff.Grad(ops.Sum(ops.Mul(loss, in[0].Graph().Constant("w", weights))),
				in[0])[0]
		}, in...)
		for k := range items {
			rows := make([][]float64, inputs[k])
			for f := range rows {
				for _, x := range logits.F32()[(f*items+k)*v:][:v] {
					rows[f] = append(rows[f], float64(x))
				}
			}
			loss, grad := enumerate(rows, labels[k*l:][:lengths[k]])
			impossible := math.IsInf(loss, 1)
			if impossible {
				loss = 0
			}
			if got := float64(losses.F32()[k]); math.Abs(got-loss) > 1e-5*(1+loss) {
				t.Fatalf("item %d: loss is %g, want %g", k, got, loss)
			}
			for f := range frames {
				for s, got := range grads.F32()[(f*items+k)*v:][:v] {
					want := 0.0
					if f < len(rows) && !impossible {
						want = grad[f][s] * float64(weights.F32()[k])
					}
					if math.Abs(float64(got)-want) > 1e-5 {
						t.Fatalf("item %d, frame %d, symbol %d: gradient is %g, want %g", k, f, s,
							got, want)
					}
				}
			}
		}
	})
}

// TestCTCEdges: no frames, no labels, labels that need more frames, and logits so
// far apart that probabilities are zero in float32.
func TestCTCEdges(t *testing.T) {
	logits := tensor.FromF32([]float32{900, -900, 0, 900, -900, 0}, 2, 1, 3)
	for _, c := range []struct {
		labels         []int32
		length, frames int32
		want           float64
		skipped        bool
	}{
		{[]int32{0, 0}, 0, 0, 0, false},
		{[]int32{0, 0}, 1, 0, 0, true},
		{[]int32{0, 0}, 2, 2, 0, true}, // needs a blank between
		{[]int32{0, 0}, 1, 2, 0, false},
		{[]int32{1, 1}, 1, 1, 1800, false},
		{[]int32{0, 1}, 2, 2, 1800, false},
		{[]int32{0, 0}, 0, 2, 1800, false},
	} {
		in := []tensor.View{logits, tensor.FromI32(c.labels, 1, 2),
			tensor.FromI32([]int32{c.length}, 1), tensor.FromI32([]int32{c.frames}, 1)}
		loss := compute(t, func(in []graph.Value) graph.Value {
			return ops.CTCLoss(in[0], in[1],
				in[2], in[3])
		}, in...)
		expect(t, "loss", loss, func(int) float64 { return c.want })
		grad := compute(t, func(in []graph.Value) graph.Value {
			return autodiff.Grad(ops.Sum(ops.CTCLoss(in[0], in[1], in[2], in[3])), in[0])[0]
		}, in...)
		for i, d := range grad.F32() {
			if !(math.Abs(float64(d)) <= 1) || c.skipped && d != 0 {
				t.Errorf("%+v: gradient %d is %g", c, i, d)
			}
		}
		readable := compute(t, func(in []graph.Value) graph.Value {
			return ops.CTCReadable(in[0], in[1], in[2])
		}, in[1:]...)
		if got := readable.F32()[0] == 1; got != (c.frames > 0 && !c.skipped) {
			t.Errorf("%+v: readable is %t", c, got)
		}
	}
}

// TestCTCBadData: lengths and labels out of range are errors that show them.
func TestCTCBadData(t *testing.T) {
	for _, c := range []struct {
		label, length, frames int32
		want                  string
	}{
		{2, 1, 4, "label 2 at position 0 of item 0 is not one of 2"},
		{-1, 1, 4, "label -1 at position 0"},
		{0, 3, 4, "label length 3 at position 0 is not between 0 and 2"},
		{0, -1, 4, "label length -1"},
		{0, 1, 5, "input length 5 at position 0 is not between 0 and 4"},
		{0, 1, -1, "input length -1"},
	} {
		_, err := try(func(in []graph.Value) graph.Value {
			return ops.CTCLoss(in[0], in[1], in[2], in[3])
		},
			random(4, 1, 3), tensor.FromI32([]int32{c.label, 9}, 1,
				2), tensor.FromI32([]int32{c.length}, 1), tensor.FromI32([]int32{c.frames}, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error is %v", c, err)
		}
	}
	// What follows an item's labels does not matter.
	if _, err := try(func(in []graph.Value) graph.Value {
		return ops.CTCLoss(in[0], in[1], in[2], in[3])
	},
		random(4, 1, 3), tensor.FromI32([]int32{1, -9}, 1, 2), tensor.FromI32([]int32{1},
			1), tensor.FromI32([]int32{4}, 1)); err != nil {
		t.Error(err)
	}
}
