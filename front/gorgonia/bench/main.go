// Bench prints the table of docs/measurements/gorgonia.md: a step of Gorgonia's own examples on
// Gorgonia's machine, on gomem without a budget, and within a third of the memory that takes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"runtime"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/front/gorgonia"
	"github.com/gomem/gomem/front/gorgonia/internal/nets"
	"github.com/gomem/gomem/planner"
)

// run is what was measured of a net: its losses, the time of a step, and memory in bytes: of gomem
// the device's, of Gorgonia what the heap holds more after the steps than before.
type run struct {
	losses []float64
	step   time.Duration
	bytes  int64
}

// theirs trains on Gorgonia's machine.
func theirs(n *nets.Net, steps int) (r run, err error) {
	before := heap()
	r.losses, r.step, err = n.Train(steps, func() { r.bytes = heap() - before })
	r.step /= time.Duration(steps - 1)
	return r, err
}

// heap is what is reachable, in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// ours trains by plans.
func ours(n *nets.Net, steps int, o gomem.Options) (r run, err error) {
	ctx := context.Background()
	p, err := gorgonia.New(ctx, n.Loss, n.Learnables, gorgonia.Options{Solver: n.Solver, Gomem: o})
	if err != nil {
		return r, err
	}
	for step := range steps {
		if err := n.Feed(step); err != nil {
			return r, err
		}
		began := time.Now()
		if err := p.Step(ctx); err != nil {
			return r, err
		}
		if step > 0 {
			r.step += time.Since(began) / time.Duration(steps-1)
		}
		r.losses = append(r.losses, nets.Number(n.Loss.Value()))
	}
	r.bytes = p.Usage()[0].Actual
	return r, p.Close()
}

// off is the most that losses differ by.
func off(a, b run) (most float64) {
	for i := range a.losses {
		most = max(most, math.Abs(a.losses[i]-b.losses[i]))
	}
	return most
}

// row measures a net.
func row(k nets.Kind, s nets.Sizes, steps int) error {
	machine, err := theirs(k.New(s), steps)
	free, err2 := ours(k.New(s), steps, gomem.Options{Policy: planner.Vanilla})
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	line := func(who string, r run) {
		fmt.Printf("| %s | %s | %.2f | %.2f | %.2g |\n", k.Name, who,
			float64(r.step)/float64(time.Millisecond), float64(r.bytes)/(1<<20), off(r, machine))
	}
	line("Gorgonia", machine)
	line("gomem, vanilla", free)
	third, err := ours(k.New(s), steps, gomem.Options{Policy: planner.Auto, Partition: 1,
		Effort: 100, DeviceBytes: free.bytes / 3})
	var short *gomem.ErrOutOfMemory
	if errors.As(err, &short) {
		fmt.Printf("| %s | gomem, a third | | | does not fit |\n", k.Name)
		return nil
	}
	if err != nil {
		return err
	}
	if off(third, free) != 0 {
		return fmt.Errorf("%s: other losses within a third of the memory", k.Name)
	}
	line("gomem, a third", third)
	return nil
}

func main() {
	steps := flag.Int("steps", 20, "steps of each, of which the first is not timed")
	small := flag.Bool("small", false, "the sizes of tests")
	flag.Parse()
	fmt.Println("| network | on | ms a step | MiB | losses differ by |\n|---|---|---|---|---|")
	for _, k := range nets.Kinds() {
		s := k.Large
		if *small {
			s = k.Small
		}
		if err := row(k, s, max(2, *steps)); err != nil {
			log.Fatalf("%s: %v", k.Name, err)
		}
	}
}
