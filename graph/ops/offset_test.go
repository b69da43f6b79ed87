package ops_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// offsets are what logits may have in common. It changes no probability.
var offsets = []float64{0, 1e4, -1e4, 1e9, -1e9, 1e30}

// offset is rows of logits of which the first are one apart, as far as float32 can
// tell at their offset.
func offset(rows, n int, by float64) tensor.View {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	x := tensor.New(tensor.Of(graph.F32, rows, n))
	for i := range x.F32() {
		x.F32()[i] = float32(by + float64(rng.IntN(3)))
	}
	return x
}

// logSoftmaxOf is that of rows of n, in float64.
func logSoftmaxOf(x tensor.View, n int) []float64 {
	var logs []float64
	for row := range slices.Chunk(x.F32(), n) {
		most, sum := float64(slices.Max(row)), 0.0
		for _, v := range row {
			sum += math.Exp(float64(v) - most)
		}
		for _, v := range row {
			logs = append(logs, float64(v)-most-math.Log(sum))
		}
	}
	return logs
}

// TestLogSoftmaxUnderAnOffset: the logarithm of the sum is not lost beside the
// logits, nor is the gradient.
func TestLogSoftmaxUnderAnOffset(t *testing.T) {
	for _, by := range offsets {
		for _, n := range []int{1, 3, 17, 3000} {
			x, d := offset(2, n, by), random(2, n)
			want := logSoftmaxOf(x, n)
			what := fmt.Sprintf("log-softmax of %d around %g", n, by)
			got := compute(t, func(in []graph.Value) graph.Value {
				return ops.LogSoftmax(in[0])
			}, x)
			expect(t, what, got, func(i int) float64 { return want[i] })
			grad := compute(t, func(in []graph.Value) graph.Value {
				return autodiff.Grad(ops.Sum(ops.Mul(ops.LogSoftmax(in[0]), in[1])), in[0])[0]
			}, x, d)
			expect(t, "gradient of "+what, grad, func(i int) float64 {
				sum := 0.0
				for _, v := range d.F32()[i/n*n:][:n] {
					sum += float64(v)
				}
				return float64(d.F32()[i]) - math.Exp(want[i])*sum
			})
		}
	}
}

// TestCrossEntropyUnderAnOffset: the same of losses, smoothed or not.
func TestCrossEntropyUnderAnOffset(t *testing.T) {
	for _, by := range offsets {
		for _, n := range []int{2, 3, 17, 3000} {
			for _, smoothing := range []float32{0, 0.1} {
				x, labels := offset(2, n, by), tensor.FromI32([]int32{0, int32(n - 1)}, 2)
				logs := logSoftmaxOf(x, n)
				got := compute(t, func(in []graph.Value) graph.Value {
					return ops.CrossEntropy(in[0], in[1], smoothing)
				}, x, labels)
				what := fmt.Sprintf("cross-entropy of %d around %g", n, by)
				expect(t, what, got, func(row int) float64 {
					loss := 0.0
					for k := range n {
						p := float64(smoothing) / float64(n-1)
						if int32(k) == labels.I32()[row] {
							p = 1 - float64(smoothing)
						}
						loss -= p * logs[row*n+k]
					}
					return loss
				})
			}
		}
	}
}

// TestCTCUnderAnOffset: the same of sequences: of as many frames as labels, so that
// there is one way to read them.
func TestCTCUnderAnOffset(t *testing.T) {
	for _, by := range offsets {
		const frames, v = 3, 5
		x := offset(frames, v, by)
		labels, logs := []int32{2, 0, 3}, logSoftmaxOf(x, v)
		got := compute(t, func(in []graph.Value) graph.Value {
			return ops.CTCLoss(in[0], in[1], in[2], in[3])
		}, tensor.FromF32(x.F32(), frames, 1, v), tensor.FromI32(labels, 1, frames),
			tensor.FromI32([]int32{frames}, 1), tensor.FromI32([]int32{frames}, 1))
		expect(t, fmt.Sprintf("CTC around %g", by), got, func(int) float64 {
			loss := 0.0
			for i, k := range labels {
				loss -= logs[i*v+int(k)]
			}
			return loss
		})
	}
}

// TestInfiniteLogits: a class that is masked with −Inf has no share, and a row of
// which nothing can be said is NaN.
func TestInfiniteLogits(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	x := tensor.FromF32([]float32{-inf, 1, 1, -inf, -inf, -inf, inf, 0, 0, nan, 0, 0}, 4, 3)
	got := compute(t, func(in []graph.Value) graph.Value {
		return ops.CrossEntropy(in[0], in[1], 0)
	}, x, tensor.FromI32([]int32{1, 1, 1, 1}, 4)).F32()
	if math.Abs(float64(got[0])-math.Ln2) > 1e-6 {
		t.Errorf("loss is %g, want log 2", got[0])
	}
	for i, loss := range got[1:] {
		if loss == loss {
			t.Errorf("loss of row %d is %g, want NaN", i+1, loss)
		}
	}
}
