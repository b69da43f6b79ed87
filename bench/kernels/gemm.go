package main

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/internal/kernel/gemm"
)

// product is a matrix product m×k×n, or a batch of them.
type product struct {
	batch, m, k, n int
	transA, transB bool
}

// shapes are squares; the skinny ones of training and of a convolution; products
// with a vector, which memory bounds; the transposes of a backward pass; few rows by
// large weights, as in decoding; and many small ones.
var shapes = []product{
	{m: 256, k: 256, n: 256},
	{m: 512, k: 512, n: 512},
	{m: 1024, k: 1024, n: 1024},
	{m: 2048, k: 2048, n: 2048},
	{m: 64, k: 1024, n: 4096},
	{m: 2048, k: 512, n: 2048},
	{m: 512, k: 2048, n: 512},
	{m: 64, k: 3136, n: 576},
	{m: 1, k: 4096, n: 4096},
	{m: 1, k: 4096, n: 4096, transB: true},
	{m: 512, k: 512, n: 512, transB: true},
	{m: 512, k: 512, n: 512, transA: true},
	{m: 256, k: 512, n: 2048, transB: true},
	{m: 512, k: 256, n: 2048, transA: true},
	{m: 2, k: 768, n: 3072},
	{m: 4, k: 768, n: 3072},
	{m: 8, k: 768, n: 3072},
	{m: 8, k: 768, n: 3072, transB: true},
	{m: 14, k: 768, n: 3072},
	{m: 20, k: 512, n: 2048},
	{m: 20, k: 512, n: 2048, transB: true},
	{m: 20, k: 64, n: 256},
	{m: 20, k: 64, n: 256, transB: true},
	{batch: 128, m: 32, k: 16, n: 32},
	{batch: 128, m: 32, k: 16, n: 32, transB: true},
}

func (p product) String() string {
	s := fmt.Sprintf("%d×%d×%d", p.m, p.k, p.n)
	if p.batch > 0 {
		s = fmt.Sprintf("%d of %s", p.batch, s)
	}
	if p.transA {
		s += ", Aᵀ"
	}
	if p.transB {
		s += ", Bᵀ"
	}
	return s
}

// target is the part of OpenBLAS's speed that gomem should have: less where
// hand-over between threads and edges weigh more.
func (p product) target(threads int) float64 {
	if threads == 1 && p.m == p.n && p.m == p.k {
		return 0.9
	}
	return 0.85
}

func (b *bench) product(p product, blas, peak *peer) comparison {
	batch := max(1, p.batch)
	x := operands(batch*p.m*p.n, batch*p.m*p.k, batch*p.k*p.n)
	lda, ldb := p.k, p.n
	if p.transA {
		lda = p.m
	}
	if p.transB {
		ldb = p.k
	}
	flag := map[bool]int{true: 1}
	return comparison{
		name:   p.String(),
		work:   2 * float64(batch) * float64(p.m) * float64(p.n) * float64(p.k),
		result: x[0],
		launch: func() {
			gemm.BatchF32(b.pool, p.transA, p.transB, batch, p.m, p.n, p.k, 1, x[1], lda, p.m*p.k,
				x[2], ldb, p.k*p.n, 0, x[0], p.n, p.m*p.n)
		},
		rivals: []rival{
			{peer: blas, question: fmt.Sprintf("gemm %d %d %d %d %d %d", flag[p.transA],
				flag[p.transB], batch, p.m, p.k, p.n), same: true},
			b.peak(peak),
		},
	}
}

// peak is the processor's limit: chains of fused multiply-adds (fma_peak in
// peer/vector.c).
func (b *bench) peak(p *peer) rival {
	const flops = 2 * 16 * 24 * 32768
	return rival{peer: p, question: "fma 4096 1024", work: flops * float64(b.threads)}
}

// products is the table of matrix products.
func products(ctx context.Context, b *bench) error {
	blas, peak := b.start(ctx, openBLAS), b.start(ctx, plainC)
	fmt.Fprintln(b.w, "\nGFLOP/s of C = A·B, m×k×n, float32. Peak is the speed of fused "+
		"multiply-adds in registers, in the same rounds. A single row is sgemv to OpenBLAS. In "+
		"brackets, the target.")
	header(b.w, "m×k×n", "gomem", "OpenBLAS", "gomem / OpenBLAS", "best / best", "peak",
		"gomem / peak")
	for _, p := range shapes {
		err := b.measure(ctx, b.product(p, blas, peak), func(o outcome) []string {
			return []string{
				number(o.rates[0] / 1e9), number(o.rates[1] / 1e9), against(o.ratios[0],
					p.target(b.threads)), number(o.best[0]),
				number(o.rates[2] / 1e9), number(o.ratios[1]),
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
