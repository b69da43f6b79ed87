package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/models"
)

// randomText is windows of random tokens, one position of each without a target.
func randomText(rows, length, ids int) windows {
	rng := rand.New(rand.NewPCG(7, 7))
	var w windows
	for range rows {
		all := make([]int32, length+1)
		for i := range all {
			all[i] = rng.Int32N(int32(ids))
		}
		targets := slices.Clone(all[1:])
		targets[rng.IntN(length)] = models.NoTarget
		w.tokens, w.targets = append(w.tokens, all[:length]), append(w.targets, targets)
	}
	return w
}

// heading says what was compared where.
func heading(w io.Writer, about string) {
	fmt.Fprintf(w, "%s on %s beside %s, %d threads, load %s\n", runtime.Version(),
		gauge.Processor(), about, runtime.NumCPU(), gauge.Load())
}

// columns begins a table.
func columns(w io.Writer, names ...string) {
	fmt.Fprintf(w, "| %s |\n|---|%s\n", strings.Join(names, " | "),
		strings.Repeat("---:|", len(names)-1))
}

func row(w io.Writer, cells ...string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }

func mib(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<20)) }

func seconds(s float64) string { return fmt.Sprintf("%.2f", s) }
