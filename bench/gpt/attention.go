package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/internal/kernel/attention"
)

// The attention that is compared: causal, of GPT-2's heads.
const attentionHeads, attentionSize = 12, 64

// attended is what attention and its gradient take, the median in seconds, and the sum of the
// squares of a result and of the gradients, by which both sides know that they compute the same.
type attended struct{ Forward, Backward, Squares, GradSquares float64 }

// attentions compares attention by itself, on one thread.
func attentions(ctx context.Context, b *bench, w io.Writer, first bool) error {
	var rows [][]string
	for _, c := range []struct{ length, rounds int }{{128, 101}, {1024, 21}, {4096, 5}} {
		var there attended
		about, err := b.alone(ctx, "attention", map[string]any{"length": c.length,
			"heads": attentionHeads, "size": attentionSize, "rounds": c.rounds}, &there)
		if err != nil {
			return err
		}
		if len(rows) == 0 && first {
			heading(w, about)
		}
		here := attend(c.length, c.rounds)
		for _, pair := range [][2]float64{{here.Squares, there.Squares},
			{here.GradSquares, there.GradSquares}} {
			if !(math.Abs(pair[0]-pair[1]) <= 1e-4*pair[1]) {
				return fmt.Errorf("attention of %d tokens: %+v here, %+v there", c.length, here,
					there)
			}
		}
		millis := func(s float64) string { return fmt.Sprintf("%.2f", 1e3*s) }
		rows = append(rows, []string{fmt.Sprint(c.length), millis(here.Forward),
			millis(there.Forward), fmt.Sprintf("%.2f", here.Forward/there.Forward),
			millis(here.Backward), millis(there.Backward),
			fmt.Sprintf("%.2f", here.Backward/there.Backward)})
	}
	fmt.Fprintf(w, "\n## Attention by itself\n\nCausal, of %d heads of %d elements, one thread, "+
		"beside scaled_dot_product_attention, in ms: medians.\n\n", attentionHeads, attentionSize)
	columns(w, "tokens", "forward", "PyTorch", "of it", "backward", "PyTorch", "of it")
	for _, r := range rows {
		row(w, r...)
	}
	return nil
}

// numbers are those that both sides begin with, as PyTorch's side makes them.
func numbers(n, which int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((i*(7+2*which)+which)%97)/48 - 1
	}
	return x
}

// attend computes attention and its gradient a few times.
func attend(length, rounds int) attended {
	x := attention.Problem{Batch: 1, Queries: length, Keys: length, Heads: attentionHeads,
		Groups: attentionHeads, Size: attentionSize, ValueSize: attentionSize,
		Scale: float32(1 / math.Sqrt(attentionSize))}
	x.Causal = true
	const width = attentionHeads * attentionSize
	rows := func(data []float32, n int) attention.Rows {
		return attention.Rows{F32: data, Batch: length * attentionHeads * n, Head: n,
			Next: attentionHeads * n}
	}
	given := func(which int) attention.Rows {
		return rows(numbers(length*width, which), attentionSize)
	}
	made := func(n int) attention.Rows { return rows(make([]float32, length*attentionHeads*n), n) }
	q, k, v, y, sums := given(0), given(1), given(2), made(attentionSize), made(1)
	g := attention.Gradients{Sums: sums, DOut: given(3), Delta: made(1), DQ: made(attentionSize),
		DK: made(attentionSize), DV: made(attentionSize)}
	forward := make([]float32, attention.ScratchForward(x)/4)
	backward := make([]float32, attention.ScratchBackward(x)/4)
	var a, b []float64
	for range rounds {
		start := time.Now()
		attention.Forward(nil, x, q, k, v, y, sums, forward)
		a = append(a, time.Since(start).Seconds())
		start = time.Now()
		for i := range g.Delta.F32 { // what a graph computes by itself
			g.Delta.F32[i] = dot(y.F32[i*attentionSize:][:attentionSize],
				g.DOut.F32[i*attentionSize:])
		}
		attention.Backward(nil, x, q, k, v, g, backward)
		b = append(b, time.Since(start).Seconds())
	}
	out := attended{Forward: gauge.Median(a), Backward: gauge.Median(b), Squares: squares(y.F32)}
	for _, d := range []attention.Rows{g.DQ, g.DK, g.DV} {
		out.GradSquares += squares(d.F32)
	}
	return out
}

func dot(a, b []float32) (sum float32) {
	for i, v := range a {
		sum += float32(v * b[i])
	}
	return sum
}

func squares(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(float64(v) * float64(v))
	}
	return sum
}
