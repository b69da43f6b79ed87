//go:build linux && amd64 && !nocuda

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/gomem/gomem/bench/internal/gauge"
)

// title begins a page: what was run, and on what.
func (b *bench) title(text, about string) {
	fmt.Fprintf(b.w, "# %s\n\n", text)
	if b.emulate {
		fmt.Fprint(b.w, "**On an emulator of a GPU, which runs on the processor: these are no "+
			"measurements.**\n\n")
	}
	fmt.Fprintf(b.w, "`bench/gpu.sh`, %s, %.1f GiB, %s, %s, %s, %s, %d threads. %s\n\n", b.gpu.Name,
		float64(b.gpu.Memory)/(1<<30), b.gpu.Driver, b.gpu.Compiler, runtime.Version(),
		gauge.Processor(), runtime.GOMAXPROCS(0), about)
}

// head begins a table of which the first columns are text and the others numbers.
func (b *bench) head(texts int, columns ...string) {
	b.columns = len(columns)
	fmt.Fprintf(b.w, "| %s |\n|%s%s\n", strings.Join(columns, " | "), strings.Repeat("---|", texts),
		strings.Repeat("---:|", len(columns)-texts))
}

// row prints cells, and dashes for those that are wanting.
func (b *bench) row(cells ...string) {
	for len(cells) < b.columns {
		cells = append(cells, "–")
	}
	fmt.Fprintf(b.w, "| %s |\n", strings.Join(cells, " | "))
}

// rowsOf prints the rows of an outcome, each after the first cells.
func (b *bench) rowsOf(first []string, cells [][]string) {
	for _, rest := range cells {
		b.row(slices.Concat(first, rest)...)
	}
}

// each prints a row for every size, called by name, as long as there is time.
func (b *bench) each(ctx context.Context, sizes []int, name func(int) string,
	rates func(n int) ([]string, error)) error {
	var cut []string
	for _, n := range sizes {
		cells, err := b.once(ctx, name(n), func(context.Context) (outcome, error) {
			cells, err := rates(n)
			return outcome{cells: [][]string{cells}}, err
		})
		if errors.Is(err, errTime) {
			cut = append(cut, name(n))
			continue
		}
		if err != nil {
			return err
		}
		b.rowsOf([]string{name(n)}, cells)
	}
	b.missed(cut)
	return nil
}

// missed says what was not measured.
func (b *bench) missed(list []string) {
	if len(list) > 0 {
		fmt.Fprintf(b.w, "\nNot measured, %v: %s.\n", errTime, strings.Join(list, "; "))
	}
}

// complete ends a page with what failed, which is the error: gomem's runs, though all was
// measured, or what ended the phase.
func (b *bench) complete(err error) error {
	if err == nil && len(b.failed) > 0 {
		err = errors.Join(b.failed...)
		fmt.Fprintf(b.w, "\nFailed: %s.\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return err
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<20)) }

// size is bytes in the largest unit that divides them.
func size(bytes int) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := 1 << (30 - 10*i); bytes%one == 0 {
			return fmt.Sprintf("%d %s", bytes/one, unit)
		}
	}
	return fmt.Sprintf("%d B", bytes)
}

func ms(seconds float64) string { return fmt.Sprintf("%.2f", seconds*1e3) }
