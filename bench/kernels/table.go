package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
)

// header writes the head of a markdown table: the first column is text, the
// others are numbers.
func header(w io.Writer, columns ...string) {
	fmt.Fprintf(w, "\n| %s |\n|---|%s\n", strings.Join(columns, " | "),
		strings.Repeat("---:|", len(columns)-1))
}

// row writes one row.
func row(w io.Writer, cells ...string) {
	fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
}

// number is x with three digits or so, or says that there is none.
func number(x float64) string {
	switch {
	case math.IsNaN(x):
		return "missing"
	case math.Abs(x) >= 100:
		return fmt.Sprintf("%.0f", x)
	case math.Abs(x) >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

// against is a ratio beside its target, bold where it falls short.
func against(ratio, target float64) string {
	switch {
	case math.IsNaN(ratio):
		return "missing"
	case ratio < target:
		return fmt.Sprintf("**%.2f** (%.2f)", ratio, target)
	default:
		return fmt.Sprintf("%.2f (%.2f)", ratio, target)
	}
}

// measure compares, and writes the row that line makes of the outcome.
func (b *bench) measure(ctx context.Context, c comparison, line func(outcome) []string) error {
	c.clock = clock(b.threads)
	o, err := c.compare(ctx, b.watch, b.rounds)
	if err != nil {
		return err
	}
	row(b.w, append([]string{c.name}, line(o)...)...)
	runtime.GC()
	return nil
}
