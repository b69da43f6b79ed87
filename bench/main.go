// Command bench measures what docs/measurements quotes, and prints it as a table
// with the machine it ran on.
//
//	go run ./bench fig6.4      device memory and step time by stage (thesis, figure 6.4)
//	go run ./bench overhead    the executor beside a plain loop of the same kernels
//	go run ./bench memory      what a process that trains has beside its plan
//	go run ./bench mesh        the smallest device budget by the shape of a mesh
//	go run ./bench constants   constants as stated, folded, and computed again
//	go run ./bench planning    planning time of the base model and of larger graphs
//	go run ./bench searches    planning time of the policy auto
//	go run ./bench curves      simulated step time over less and less memory
//	go run ./bench saved       what fewer bits would say of what is saved for later
//	go run ./bench throttled   the same on this machine, measured with slow copies
//	go run ./bench budgets     step times within parts of the memory, measured, beside predictions
//	go run ./bench sheets      step times on GPUs by their data sheets
//	go run ./bench simulated   step times as simulated and as measured
//
// Comparisons are made in one run, interleaved; figures are medians. With --plot FILE
// curves and throttled draw what they print, as PNG or SVG, and with --from FILE, too,
// what was printed before; with --quick they are only tried out.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/internal/chart"
	"github.com/gomem/gomem/models"
)

// options are what a table may be told.
type options struct {
	plot  string // a file to draw the table into; none if empty
	from  string // a file with tables that were printed before, to be drawn; none if empty
	quick bool   // few budgets and rounds
}

// table is what the command prints.
type table struct {
	print func(ctx context.Context, w io.Writer, o options) error
	plots bool // it can be drawn
}

// plain is a table that has no options.
func plain(print func(ctx context.Context, w io.Writer) error) table {
	return table{print: func(ctx context.Context, w io.Writer, _ options) error {
		return print(ctx, w)
	}}
}

func tables() map[string]table {
	return map[string]table{
		"budgets":   plain(budgets),
		"constants": plain(constants),
		"curves":    {curves, true},
		"fig6.4":    plain(figure64),
		"memory":    plain(memory),
		"mesh":      plain(meshes),
		"overhead":  plain(overhead),
		"planning":  plain(planning),
		"saved":     plain(saved),
		"searches":  plain(searches),
		"sheets":    plain(sheets),
		"simulated": plain(simulated),
		"throttled": {throttled, true},
	}
}

func main() {
	gauge.Main("bench", run)
}

func run(ctx context.Context, args []string, w io.Writer) error {
	all := tables()
	if len(args) == 0 || all[args[0]].print == nil {
		return fmt.Errorf("want the name of a table: %s",
			strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	t := all[args[0]]
	var o options
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if t.plots {
		flags.StringVar(&o.plot, "plot", "", "draw the table into a PNG or SVG file")
		flags.StringVar(&o.from, "from", "", "draw the tables of a file that was printed before")
		flags.BoolVar(&o.quick, "quick", false, "few budgets and rounds")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch ext := filepath.Ext(o.plot); {
	case flags.NArg() > 0:
		return fmt.Errorf("%s: nothing is known of it", flags.Arg(0))
	case o.plot != "" && !chart.Known(ext):
		return fmt.Errorf("--plot %s: want a name that ends in .png or .svg", o.plot)
	case o.from != "" && o.plot == "":
		return errors.New("--from needs --plot")
	case o.from != "":
		return redraw(o)
	}
	fmt.Fprintf(w, "`go run ./bench %s`, %s %s/%s, %d threads, %s\n\n", args[0], runtime.Version(),
		runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), gauge.Processor())
	return t.print(ctx, w, o)
}

// build makes a model of a size with a number of sentence pairs.
func build(size string, pairs int, change func(*models.MoEConfig)) (*models.Model, error) {
	c, err := models.NewMoEConfig(size)
	if err != nil {
		return nil, err
	}
	if pairs > 0 {
		c.Pairs = pairs
	}
	if change != nil {
		change(&c)
	}
	return models.MoE(c)
}

// feeds are the inputs of any step: sentences of all the same word are as fast
// as others.
func feeds(m *models.Model) gomem.Feeds {
	source, target := gomem.NewTensor(m.Data[0].Type()), gomem.NewTensor(m.Data[1].Type())
	for i := range source.I32() {
		source.I32()[i], target.I32()[i] = int32(2+i%97), int32(2+i%89)
	}
	return gomem.Feeds{
		m.Data[0]: source, m.Data[1]: target,
		m.Seed: gomem.Pair(1, 1), m.LearningRate: gomem.Scalar(1e-4), m.Step: gomem.Scalar(1),
	}
}

// interleaved times functions in turn, after a warm-up, and returns each one's
// median.
func interleaved(ctx context.Context, rounds int, fs ...func() error) ([]time.Duration, error) {
	times, err := timed(ctx, rounds, fs...)
	var medians []time.Duration
	for _, t := range times {
		medians = append(medians, median(t))
	}
	return medians, err
}

func median[T cmp.Ordered](x []T) T {
	x = slices.Clone(x)
	slices.Sort(x)
	return x[len(x)/2]
}

// timed returns the times of every round after a warm-up, by function.
func timed(ctx context.Context, rounds int, fs ...func() error) ([][]time.Duration, error) {
	times := make([][]time.Duration, len(fs))
	for round := range rounds + 1 {
		for i, f := range fs {
			if err := ctx.Err(); err != nil {
				return nil, errors.New("interrupted")
			}
			start := time.Now()
			if err := f(); err != nil {
				return nil, err
			}
			if round > 0 {
				times[i] = append(times[i], time.Since(start))
			}
		}
	}
	return times, nil
}

func mib(bytes int64) string { return fmt.Sprintf("%.2f", float64(bytes)/(1<<20)) }

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1e3) }
