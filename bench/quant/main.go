// Command quant prints what rows of few bits lose, and how fast they are packed and unpacked.
//
//	go run ./bench/quant [-format name] [-elements n] [-rows n] [-rounds n]
//
// The numbers are drawn from a normal distribution; an error is the root of the mean square, as a
// part of their deviation. Then a row, and many, are multiplied by a matrix of so many rows, which
// is to be larger than caches, beside one of float32; GB/s are those of the matrix that are read.
// Rates are millions of elements, or of products of two, in a second of the processor's time, on
// one thread, medians of the rounds. Errors of products are roots of mean squares, as parts of
// those of the products in float64.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/internal/quant"
)

func main() { gauge.Main("quant", run) }

func run(_ context.Context, args []string, w io.Writer) error {
	f := flag.NewFlagSet("quant", flag.ContinueOnError)
	name := f.String("format", "", "the only format; none: all")
	elements := f.Int("elements", 1<<18, "of the row")
	rows := f.Int("rows", 1<<14, "of the matrix")
	rounds := f.Int("rounds", 5, "of which medians are taken")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := gauge.Checked(f, 1, *rounds); err != nil {
		return err
	}
	if *rows < 1 {
		return fmt.Errorf("-rows %d: want 1 or more", *rows)
	}
	formats := quant.All()
	if *name != "" {
		only, err := quant.Parse(*name)
		if err != nil {
			return fmt.Errorf("-format: %w", err)
		}
		formats = []quant.Format{only}
	}
	fmt.Fprintf(w, "%s, medians of %d rounds\n\n", gauge.Processor(), *rounds)
	fmt.Fprintln(w, "| format | block | bits an element | error | packed, M/s |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|")
	x := drawn(*elements)
	for _, format := range formats {
		if err := row(w, format, x, *rounds); err != nil {
			return fmt.Errorf("-elements: %w", err)
		}
	}
	products(w, formats, newMatrix(*rows), *rounds)
	roundings(w, formats)
	return nil
}

// drawn are n numbers of a normal distribution.
func drawn(n int) []float32 {
	draw := rand.New(rand.NewPCG(1, 0))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(draw.NormFloat64())
	}
	return x
}

// row prints a format's.
func row(w io.Writer, f quant.Format, x []float32, rounds int) error {
	size, err := f.RowBytes(len(x))
	if err != nil {
		return err
	}
	packed, y := make([]byte, size), make([]float32, len(x))
	pack := rate(rounds, len(x), func() { f.Pack(packed, x) })
	f.Unpack(y, packed)
	bits := 8 * float64(size) / float64(len(x))
	fmt.Fprintf(w, "| %s | %d | %.3f | %.5f | %.0f |\n", f, f.Block(), bits, lost(x, y), pack)
	return nil
}

// rate is how many millions of elements a call does in a second, if each does n.
func rate(rounds, n int, call func()) float64 {
	call()
	rates := make([]float64, rounds)
	for i := range rates {
		calls, start := 0, gauge.CPUTime()
		var took time.Duration
		for took < 20*time.Millisecond {
			call()
			calls++
			took = gauge.CPUTime() - start
		}
		rates[i] = float64(n) * float64(calls) / 1e6 / took.Seconds()
	}
	return gauge.Median(rates)
}

// lost is the root of the mean square of y-x, as a part of that of x.
func lost(x, y []float32) float64 {
	var errors, all float64
	for i := range x {
		e := float64(y[i]) - float64(x[i])
		errors += float64(e * e)
		all += float64(float64(x[i]) * float64(x[i]))
	}
	return math.Sqrt(errors / all)
}
