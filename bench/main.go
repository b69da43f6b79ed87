// Command bench measures what docs/measurements quotes, and prints it as a table
// with the machine it ran on.
//
//	go run ./bench fig6.4      device memory and step time by stage (thesis, figure 6.4)
//	go run ./bench overhead    the executor beside a plain loop of the same kernels
//	go run ./bench planning    planning time of the base model and of larger graphs
//	go run ./bench curves      simulated step time over less and less memory
//	go run ./bench simulated   step times as simulated and as measured
//
// Comparisons are made in one run, interleaved; figures are medians.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/models"
)

var tables = map[string]func(ctx context.Context, w io.Writer) error{
	"curves":    curves,
	"fig6.4":    figure64,
	"overhead":  overhead,
	"planning":  planning,
	"simulated": simulated,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, w io.Writer) error {
	if len(args) != 1 || tables[args[0]] == nil {
		var names []string
		for name := range tables {
			names = append(names, name)
		}
		slices.Sort(names)
		return fmt.Errorf("want the name of one table: %s", strings.Join(names, ", "))
	}
	fmt.Fprintf(w, "`go run ./bench %s`, %s %s/%s, %d threads, %s\n\n", args[0], runtime.Version(),
		runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), gauge.Processor())
	return tables[args[0]](ctx, w)
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
