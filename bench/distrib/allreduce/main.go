// Command allreduce sets the all-reduce of distrib/collective over the cluster's transport
// beside that of PyTorch's gloo, on loopback or on slow links, and prints the tables of
// docs/measurements/distrib.md.
//
//	go run ./bench/distrib/allreduce                               # the table of loopback
//	go run ./bench/distrib/allreduce -workers 2 -sizes 4 -rounds 1 # quickly, in MiB
//	go run ./bench/distrib/allreduce -mbit 100,1000 -sizes 0.0625,1,16        # as root
//	go run ./bench/distrib/allreduce -mbit 100,1000 -sizes 1,16 -steps
//
// Slow links are those of network namespaces, each way of each node. With -steps the tables
// are of steps of eight layers, whose gradients are exchanged while the next layer is
// computed, which is emulated by waiting for as long as the links need in all.
//
// Every worker is a process. The kinds take turns: each makes a few all-reduces of a size,
// after one to warm up, while the others wait. All workers of a kind begin an all-reduce
// together, after a barrier, and the first one's time counts. A figure is the median of all
// of a size. Where PyTorch is missing the program says so and goes on without it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/distrib/cluster/trust"
)

func main() { gauge.Main("allreduce", run) }

// settings are the command's.
type settings struct {
	workers []int
	sizes   []int // in bytes
	mbits   []int // of links; 0: loopback
	steps   bool
	rounds  int
	python  string
	profile string
	keys    string // a file of an authority
	secure  bool   // of a worker: with TLS
	listen  string // of a worker
}

func run(ctx context.Context, args []string, w io.Writer) error {
	f := flag.NewFlagSet("allreduce", flag.ContinueOnError)
	workers := f.String("workers", "2,4", "how many workers, a list")
	sizes := f.String("sizes", "0.0625,0.25,1,4,16,64,256", "MiB that are reduced, a list")
	mbits := f.String("mbit", "0", "Mbit/s of links between namespaces, a list; 0: loopback")
	s := settings{}
	f.BoolVar(&s.steps, "steps", false, "measure steps that compute and exchange")
	f.IntVar(&s.rounds, "rounds", 5, "of each measurement")
	f.StringVar(&s.python, "python", "/usr/bin/python3",
		"Python `interpreter` that has PyTorch; empty: gomem alone")
	f.StringVar(&s.profile, "profile", "", "`directory` for CPU profiles of the first workers")
	f.StringVar(&s.keys, "keys", "", "be a worker with this file of an authority (used by itself)")
	f.BoolVar(&s.secure, "secure", false, "with TLS (used by itself)")
	f.StringVar(&s.listen, "listen", "", "listen there (used by itself)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if s.keys != "" {
		return worker(ctx, os.Stdin, w, s)
	}
	if err := gauge.Checked(f, 0, s.rounds); err != nil {
		return err
	}
	var err error
	if s.workers, err = list("-workers", *workers, 2, 64, 1); err != nil {
		return err
	}
	if s.mbits, err = list("-mbit", *mbits, 0, 1e5, 1); err != nil {
		return err
	}
	if s.sizes, err = list("-sizes", *sizes, 32, 1<<30, 1<<20); err != nil {
		return err
	}
	for i := range s.sizes {
		s.sizes[i] = s.sizes[i] / 4 * 4
	}
	return measure(ctx, w, s)
}

// list is numbers of a flag, in units.
func list(name, text string, least, most, unit int) (out []int, err error) {
	for _, n := range strings.Split(text, ",") {
		x, err := strconv.ParseFloat(n, 64)
		if x *= float64(unit); err != nil || !(x >= float64(least)) || x > float64(most) {
			return nil, fmt.Errorf("%s %q: want numbers from %.4g to %.4g", name, text,
				float64(least)/float64(unit), float64(most)/float64(unit))
		}
		out = append(out, int(x))
	}
	return out, nil
}

// kinds are what is measured; the first is what the others are compared with.
func kinds() []string { return []string{"gloo", "gomem", "gomem, mTLS"} }

func measure(ctx context.Context, w io.Writer, s settings) error {
	dir, err := os.MkdirTemp("", "allreduce-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	authority, err := trust.New("bench")
	if err != nil {
		return err
	}
	s.keys = filepath.Join(dir, "authority")
	if err := authority.WriteFile(s.keys); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s, %d threads, load %s before; medians of %d rounds\n", gauge.Processor(),
		runtime.GOMAXPROCS(0), gauge.Load(), s.rounds)
	for _, mbit := range s.mbits {
		heading(w, mbit, s.steps)
		for _, n := range s.workers {
			if err := s.compare(ctx, w, n, mbit); err != nil {
				return err
			}
		}
	}
	return nil
}

// crew is the workers of a kind.
type crew interface {
	// do does what is asked for, and returns the seconds of each time.
	do(a ask) ([]float64, error)
	close() error
}

// compare measures all kinds with n workers.
func (s settings) compare(ctx context.Context, w io.Writer, n, mbit int) (err error) {
	at, err := s.place(ctx, n, mbit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	crews := make([]crew, len(kinds()))
	for i := range crews {
		if i == 0 {
			crews[0], err = startGloo(ctx, s, n, at)
		} else {
			crews[i], err = startOurs(ctx, s, n, i == 2, at)
		}
		if missing, ok := errors.AsType[*torch.ErrMissing](err); ok {
			fmt.Fprintln(os.Stderr, "not compared:", missing)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", kinds()[i], err)
		}
		defer func() { err = errors.Join(err, crews[i].close()) }()
	}
	for _, size := range s.sizes {
		if s.steps {
			err = s.overlap(w, n, size, at, crews)
		} else {
			err = s.alone(w, n, size, at, crews)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// turns asks crews for something each, in turn, and returns the median milliseconds of each.
func (s settings) turns(crews []crew, asks []ask) ([]float64, error) {
	times := make([][]float64, len(asks))
	for range s.rounds {
		for i, a := range asks {
			if crews[i] == nil {
				continue
			}
			some, err := crews[i].do(a)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", a, err)
			}
			times[i] = append(times[i], some...)
		}
	}
	out := make([]float64, len(asks))
	for i := range out {
		out[i] = 1e3 * gauge.Median(times[i])
	}
	return out, nil
}
