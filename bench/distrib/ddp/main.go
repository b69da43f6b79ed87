// Command ddp trains an MLP by two workers, gomem's on a ring over gRPC and PyTorch's
// DistributedDataParallel over gloo, and prints the table of docs/measurements/ddp.md.
//
//	go run ./bench/distrib/ddp
//
// Both begin with the same parameters, take the same batches in the same order, and make
// 100 steps of descent with momentum. The error of a parameter is the largest difference
// of any of its elements, relative to its largest element; the program fails if one is
// 1e-5 or more. gomem's two workers are goroutines with sessions of their own, which
// exchange gradients over loopback; PyTorch's are processes, which do so too. Times are
// medians of the steps. Where PyTorch is missing the program says so and succeeds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/torch"
)

// The task.
const (
	replicas = 2
	steps    = 100
	batch    = 32
	width    = 64
	classes  = 10
	rate     = 0.05
	bound    = 1e-5 // of errors
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f := flag.NewFlagSet("ddp", flag.ContinueOnError)
	python := f.String("python", "/usr/bin/python3", "Python `interpreter` that has PyTorch")
	err := f.Parse(os.Args[1:])
	if err == nil {
		err = run(ctx, *python, os.Stdout)
	}
	if missing, ok := errors.AsType[*torch.ErrMissing](err); ok {
		fmt.Println("not compared:", missing)
		return
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "ddp:", err)
		os.Exit(1)
	}
}

// trained is what came of training.
type trained struct {
	about  string
	values []gomem.Tensor // of the parameters
	step   time.Duration  // the median
}

func run(ctx context.Context, python string, w io.Writer) error {
	theirs, initial, err := runTorch(ctx, python)
	if err != nil {
		return err
	}
	ours, err := runWorkers(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d workers, %d steps; %s a step (%s), %s (gomem)\n\n", replicas, steps,
		theirs.step.Round(10*time.Microsecond), theirs.about, ours.step.Round(10*time.Microsecond))
	fmt.Fprintln(w, "| parameter | shape | changed by | error |\n|---|---|---:|---:|")
	worst := 0.0
	for i, x := range ours.values {
		e := difference(x, theirs.values[i])
		worst = max(worst, e)
		fmt.Fprintf(w, "| %d | %s | %.2g | %.2g |\n", i, x.Type, difference(x, initial[i]), e)
	}
	if worst >= bound || math.IsNaN(worst) {
		return fmt.Errorf("parameters differ by %.3g, want less than %g", worst, bound)
	}
	return nil
}

// difference is the largest of any element, relative to the largest element of b.
func difference(a, b gomem.Tensor) float64 {
	var most, largest float64
	for i, x := range a.F32() {
		most = max(most, math.Abs(float64(x)-float64(b.F32()[i])))
		largest = max(largest, math.Abs(float64(b.F32()[i])))
	}
	if largest == 0 {
		return most
	}
	return most / largest
}

// median is the middle of some times.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
