//go:build linux && amd64 && !nocuda

package ops

import (
	"math"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// TestCUDAInBF16: on a GPU every operation in bfloat16 comes to the host's numbers, but for one
// unit in the last place where sums or elementary functions differ before they are rounded.
func TestCUDAInBF16(t *testing.T) {
	h := needHost(t)
	eachInBF16(t, func(t *testing.T, plain, half Sample) {
		if !cuda.Supports(plain.Op) {
			t.Skip("no commands")
		}
		narrow, _ := halved(plain, half, 1)
		want := half.compute(t, narrow, nil)
		got := half.onCUDA(t, h, narrow, memory{poison: 0xff}, -1)
		for k, w := range want {
			if w.Type.DType != graph.BF16 || cuda.IsExact(plain.Op) {
				if string(w.Data) != string(got[k].Data) {
					t.Fatalf("result %d: %v, want %v", k, got[k], w)
				}
				continue
			}
			x, y := w.To(graph.F32).F32(), got[k].To(graph.F32).F32()
			most := 0.0
			for _, v := range x {
				most = max(most, math.Abs(float64(v)))
			}
			for i := range x {
				room := 2e-6*most + math.Abs(float64(x[i]))/128
				if x[i] != y[i] && !(math.Abs(float64(x[i]-y[i])) <= room) &&
					(x[i] == x[i] || y[i] == y[i]) {
					t.Fatalf("result %d: element %d is %g, want %g", k, i, y[i], x[i])
				}
			}
		}
	})
}
