// Command allreduce sets the all-reduce of distrib/collective over the cluster's transport
// beside that of PyTorch's gloo, on loopback, and prints the table of
// docs/measurements/distrib.md.
//
//	go run ./bench/distrib/allreduce                              # the table
//	go run ./bench/distrib/allreduce -workers 2 -sizes 4 -rounds 1 # quickly, in MiB
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
	rounds  int
	python  string
	profile string
}

func run(ctx context.Context, args []string, w io.Writer) error {
	f := flag.NewFlagSet("allreduce", flag.ContinueOnError)
	workers := f.String("workers", "2,4", "how many workers, a list")
	sizes := f.String("sizes", "0.0625,0.25,1,4,16,64,256", "MiB that are reduced, a list")
	s := settings{}
	f.IntVar(&s.rounds, "rounds", 5, "of each measurement")
	f.StringVar(&s.python, "python", "/usr/bin/python3",
		"Python `interpreter` that has PyTorch; empty: gomem alone")
	f.StringVar(&s.profile, "profile", "", "`directory` for CPU profiles of the first workers")
	keys := f.String("keys", "", "be a worker with this file of an authority (used by itself)")
	secure := f.Bool("secure", false, "with TLS (used by itself)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *keys != "" {
		return worker(ctx, os.Stdin, w, *keys, *secure, s.profile)
	}
	if err := gauge.Checked(f, 0, s.rounds); err != nil {
		return err
	}
	for _, n := range strings.Split(*workers, ",") {
		k, err := strconv.Atoi(n)
		if err != nil || k < 2 || k > 64 {
			return fmt.Errorf("-workers %q: want numbers from 2 to 64", *workers)
		}
		s.workers = append(s.workers, k)
	}
	for _, n := range strings.Split(*sizes, ",") {
		x, err := strconv.ParseFloat(n, 64)
		if err != nil || !(x*(1<<20) >= 4) || x > 1<<10 {
			return fmt.Errorf("-sizes %q: want MiB, up to 1024", *sizes)
		}
		s.sizes = append(s.sizes, int(x*(1<<20))/4*4)
	}
	return measure(ctx, w, s)
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
	keys := filepath.Join(dir, "authority")
	if err := authority.WriteFile(keys); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s, %d threads, load %s before; medians of %d rounds\n\n", gauge.Processor(),
		runtime.GOMAXPROCS(0), gauge.Load(), s.rounds)
	fmt.Fprintf(w, "| workers | MiB | gloo, ms | gomem, ms | to gloo | mTLS, ms | to gloo |\n"+
		"|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, n := range s.workers {
		if err := compare(ctx, w, n, s, keys); err != nil {
			return err
		}
	}
	return nil
}

// crew is the workers of a kind.
type crew interface {
	// reduce makes so many all-reduces of a size, and returns the seconds of each.
	reduce(size, count int) ([]float64, error)
	close() error
}

// compare measures all kinds with n workers.
func compare(ctx context.Context, w io.Writer, n int, s settings, keys string) (err error) {
	crews := make([]crew, len(kinds()))
	for i := range crews {
		if i == 0 {
			crews[0], err = startGloo(ctx, s.python, n)
		} else {
			crews[i], err = startOurs(ctx, n, keys, i == 2, s.profile)
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
		times := make([][]float64, len(crews))
		for range s.rounds {
			for i, c := range crews {
				if c == nil {
					continue
				}
				some, err := c.reduce(size, count(size))
				if err != nil {
					return fmt.Errorf("%s: %w", kinds()[i], err)
				}
				times[i] = append(times[i], some...)
			}
		}
		m := func(i int) float64 { return 1e3 * gauge.Median(times[i]) }
		fmt.Fprintf(w, "| %d | %.4g | %.3g | %.3g | %.2f | %.3g | %.2f |\n", n,
			float64(size)/(1<<20), m(0), m(1), m(1)/m(0), m(2), m(2)/m(0))
	}
	return nil
}

// count is how many all-reduces of a size a round has.
func count(size int) int { return min(max(32<<20/size, 2), 50) }
