package main

import (
	"context"
	"io"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/profile"
)

// profileInput is what is known of a plan before it runs.
func profileInput(ctx context.Context, w io.Writer, b *built, p planned,
	o gomem.Options) (profile.Input, error) {
	in := profile.Input{Plan: p.training(), Graph: p.Graph, Model: b.model.Name,
		Size: b.model.Size}
	if o.Device != gomem.Null {
		in.Machine.PeakGFLOPS = peakGFLOPS(o.Threads)
	}
	return in, nil
}

// peakGFLOPS is the speed of a large matrix product on this machine, the best of a
// few.
func peakGFLOPS(threads int) float64 {
	const n, rounds = 768, 5
	p := pool.New(threads)
	defer p.Close()
	a, b, c := make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
	best := time.Duration(1<<63 - 1)
	for range 1 + rounds {
		start := time.Now()
		gemm.F32(p, false, false, n, n, n, 1, a, n, b, n, 0, c, n)
		best = min(best, time.Since(start))
	}
	return 2 * n * n * n / float64(max(1, best.Nanoseconds()))
}
