//go:build linux && amd64 && !nocuda

package ops

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/quant"
)

// TestCUDARounds: of rows that have what is not finite, or hardly anything, products have the
// host's bits.
func TestCUDARounds(t *testing.T) {
	h := needHost(t)
	extremes := []float32{0, 1e-45, -1e-38, 0x1p-112, 3e38, float32(math.Inf(1)),
		float32(math.Inf(-1)), float32(math.NaN())}
	for _, f := range []quant.Format{quant.Q8_0, quant.Q4_0, quant.Q4_K, quant.Q6_K} {
		w, err := packedType(6, 768, f)
		if err != nil {
			t.Fatal(err)
		}
		s := Sample{Op: packedMatMul{Format: f, Width: 768},
			In: []graph.Type{tensor.Of(graph.F32, 9, 768), w},
			Fill: fills{1: packedRows(f, 768), 0: func(rng *rand.Rand, x any) {
				for i := range x.([]float32) {
					x.([]float32)[i] = float32(rng.NormFloat64())
					if i%768 < 64 || rng.IntN(100) == 0 {
						x.([]float32)[i] = extremes[rng.IntN(len(extremes))]
					}
				}
			}}}
		in := s.operands(1)
		s.near(t, s.compute(t, in, nil), s.onCUDA(t, h, in, memory{poison: 0xff}, -1))
	}
}
