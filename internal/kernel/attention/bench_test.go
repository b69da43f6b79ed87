package attention

import (
	"fmt"
	"testing"
)

// BenchmarkAttention is causal attention of 12 heads of 64 elements, on one thread. GFLOP/s count
// what a mask leaves.
func BenchmarkAttention(b *testing.B) {
	for _, length := range []int{128, 1024, 4096} {
		x := Problem{Batch: 1, Queries: length, Keys: length, Heads: 12, Groups: 12, Size: 64,
			ValueSize: 64, Scale: 0.125, mask: mask{Causal: true}}
		d := draw(x, 1, false)
		d.run(nil, x)
		flops := 2 * 12 * 64 * float64(length) * float64(length)
		b.Run(fmt.Sprintf("forward/%d", length), func(b *testing.B) {
			scratch := make([]float32, ScratchForward(x)/4)
			for b.Loop() {
				Forward(nil, x, d.q, d.k, d.v, d.out, d.sums, scratch)
			}
			b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
		b.Run(fmt.Sprintf("backward/%d", length), func(b *testing.B) {
			scratch := make([]float32, ScratchBackward(x)/4)
			for b.Loop() {
				Backward(nil, x, d.q, d.k, d.v, Gradients{Sums: d.sums, DOut: d.d, Delta: d.delta,
					DQ: d.dq, DK: d.dk, DV: d.dv}, scratch)
			}
			b.ReportMetric(2.5*flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
