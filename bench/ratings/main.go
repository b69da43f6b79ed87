// Command ratings factorises a matrix by strata, with a worker or two, beside LIBMF with as many
// threads, and prints the table of docs/measurements/factors.md.
//
//	go run ./bench/ratings -python PYTHON
//
// The matrix has the shape of MovieLens 1M, is of low rank with noise, and is drawn; a tenth of the
// elements is held out. Either side minimises the squared error and the same penalty by stochastic
// gradient descent with single precision, LIBMF with steps that shrink by AdaGrad, gomem with a
// factor for every pass. Each tries some step sizes and numbers of passes; a run's time is all of
// it, from the elements in memory to the factors. Where Python or LIBMF is missing the program says
// so and succeeds.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/gomem/gomem/bench/internal/gauge"
)

// The matrix, and how it is factorised.
const (
	rows, cols = 6040, 3706
	elements   = 1_000_209
	trueRank   = 8
	mean       = 3.5
	noise      = 0.5
	seed       = 1
	lambda     = 0.02 // the penalty
)

var passes = []int{3, 5, 7, 10, 20, 40}

// run is what came of passes with a step size.
type run struct {
	Rate    float64
	Passes  int
	Seconds float64 // of the whole run
	RMSE    float64 // of what is held out
}

func main() { gauge.Main("ratings", compare) }

// compare prints the table.
func compare(ctx context.Context, args []string, w io.Writer) error {
	f := flag.NewFlagSet("ratings", flag.ContinueOnError)
	python := f.String("python", "python3", "Python `interpreter` that has LIBMF (package libmf)")
	if err := f.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ratings-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	train, held := draw()
	fmt.Fprintf(w, "%s, load %s: %d elements of %d by %d, %d held out\n\n",
		gauge.Processor(), gauge.Load(), len(train), rows, cols, len(held))
	fmt.Fprintln(w, "| rank | threads | by | best RMSE | its step size, passes, s | "+
		"s to the worse | elements/s |")
	fmt.Fprintln(w, "|---:|---:|---|---:|---|---:|---:|")
	for _, rank := range []int{10, 32, 100} {
		for _, threads := range []int{1, 2} {
			theirs, err := libmf(ctx, *python, dir, rank, threads, train, held)
			if err != nil {
				return err
			}
			ours, err := strata(ctx, rank, threads, train, held)
			if err != nil {
				return err
			}
			goal := 1.01 * max(best(ours).RMSE, best(theirs).RMSE)
			show(w, rank, threads, "gomem", ours, goal)
			show(w, rank, threads, "LIBMF", theirs, goal)
		}
	}
	return nil
}

// best is the run with the least error.
func best(all []run) run {
	return slices.MinFunc(all, func(a, b run) int { return cmp.Compare(a.RMSE, b.RMSE) })
}

// show prints a row: the best run, the first that reaches an error, and how fast passes are, by the
// difference of the longest and the shortest run.
func show(w io.Writer, rank, threads int, who string, all []run, goal float64) {
	b, first := best(all), math.Inf(1)
	for _, r := range all {
		if r.RMSE <= goal {
			first = min(first, r.Seconds)
		}
	}
	var rates []float64
	for k := 0; k+len(passes) <= len(all); k += len(passes) {
		short, long := all[k], all[k+len(passes)-1]
		rates = append(rates, float64(long.Passes-short.Passes)*float64(elements)*0.9/
			(long.Seconds-short.Seconds))
	}
	fmt.Fprintf(w, "| %d | %d | %s | %.3f | %g, %d, %.2f | %.2f | %.1f M |\n", rank, threads, who,
		b.RMSE, b.Rate, b.Passes, b.Seconds, first, gauge.Median(rates)/1e6)
}
