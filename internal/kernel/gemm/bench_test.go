package gemm

import (
	"fmt"
	"testing"

	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// benchShapes are squares, the skinny shapes of training, and its many small
// ones.
var benchShapes = []problem{
	{m: 256, k: 256, n: 256},
	{m: 512, k: 512, n: 512},
	{m: 1000, k: 1000, n: 1000},
	{m: 1024, k: 1024, n: 1024},
	{m: 2048, k: 2048, n: 2048},
	{m: 512, k: 512, n: 512, transB: true},
	{m: 512, k: 512, n: 512, transA: true},
	{m: 64, k: 1024, n: 4096},
	{m: 2048, k: 512, n: 2048},
	{m: 512, k: 2048, n: 512},
	{m: 64, k: 3136, n: 576},
	{m: 64, k: 576, n: 3136},
	{m: 256, k: 512, n: 2048, transB: true},
	{m: 512, k: 256, n: 2048, transA: true},
	{m: 1, k: 4096, n: 4096},
	{m: 1, k: 4096, n: 4096, transB: true},
	{m: 4, k: 4096, n: 4096},
	{m: 4, k: 4096, n: 4096, transB: true},
	{m: 4096, k: 4096, n: 1},
	{m: 20, k: 64, n: 256},
	{m: 20, k: 64, n: 256, transB: true},
	{m: 16, k: 16, n: 16},
	{batch: 128, m: 32, k: 16, n: 32},
	{batch: 128, m: 32, k: 16, n: 32, transB: true},
	{batch: 32, m: 64, k: 64, n: 64},
	{batch: 32, m: 64, k: 64, n: 64, transB: true},
}

// shape names the problem.
func (x *problem) shape() string {
	form := map[bool]string{false: "N", true: "T"}
	return fmt.Sprintf("%dx%dx%dx%d%s%s", x.batch, x.m, x.k, x.n, form[x.transA], form[x.transB])
}

func BenchmarkF32(b *testing.B) {
	for _, x := range benchShapes {
		x.alpha = 1
		x.pack()
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", x.shape(), threads), func(b *testing.B) {
				p := pool.New(threads)
				defer p.Close()
				for b.Loop() {
					x.run(best, p)
				}
				flops := 2 * float64(x.batch) * float64(x.m) * float64(x.n) * float64(x.k)
				b.ReportMetric(flops*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
	}
}

// BenchmarkEpilogue compares a bias and an activation in the product with those after
// it.
func BenchmarkEpilogue(b *testing.B) {
	e := Epilogue{Bias: make([]float32, 1024), Act: vec.Relu}
	for _, x := range []problem{{m: 256, k: 256, n: 1024}, {m: 2048, k: 64, n: 1024}} {
		x.alpha = 1
		x.pack()
		b.Run(x.shape()+"/after", func(b *testing.B) {
			for b.Loop() {
				x.run(best, nil)
				x.afterwards(x.c, e)
			}
		})
		x.epilogue = e
		b.Run(x.shape()+"/within", func(b *testing.B) {
			for b.Loop() {
				x.run(best, nil)
			}
		})
	}
}

// BenchmarkBF16 compares products of bfloat16 with those of float32.
func BenchmarkBF16(b *testing.B) {
	for _, x := range []problem{{m: 64, k: 1024, n: 1024}, {m: 512, k: 512, n: 512},
		{m: 512, k: 512, n: 512, transB: true}, {m: 1, k: 4096, n: 4096}} {
		x.alpha = 1
		x.pack()
		for which, name := range []string{"float32", "A", "B", "both"} {
			y := x.inBF16(which)
			b.Run(x.shape()+"/"+name, func(b *testing.B) {
				for b.Loop() {
					y.compute(best, nil)
				}
				flops := 2 * float64(x.m) * float64(x.n) * float64(x.k)
				b.ReportMetric(flops*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
	}
}

// BenchmarkTile is the speed of the largest micro-kernel on operands in the L1
// cache: what F32 is measured against.
func BenchmarkTile(b *testing.B) {
	for _, s := range available() {
		b.Run(s.name, func(b *testing.B) {
			x := problem{m: s.rows, n: s.cols(), k: 256, alpha: 1}
			x.pack()
			var w worker
			var c call
			described := x.product()
			c.set(&described)
			c.isa, c.height, c.kb = s, x.m, x.k
			for b.Loop() {
				w.block(&c, 0, 0, x.m, 0, x.n, 0, x.k)
			}
			b.ReportMetric(2*float64(x.m*x.n*x.k)*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
		})
	}
}
