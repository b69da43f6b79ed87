// Command lasso sets gomem's regression with few coefficients beside scikit-learn's: its Lasso, and
// its LogisticRegression with the penalty l1, which is liblinear's. Both are given the same design
// and have one thread each, in turns. How good coefficients are is seen by the same code for both:
// by the duality gap. scikit-learn's tolerance is the largest of a ladder that reaches the gap.
//
//	go run ./bench/lasso -python /path/to/python
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/distrib/strads"
)

func main() { gauge.Main("lasso", run) }

// settings are what is the same for all designs.
type settings struct {
	python string
	rounds int
	gap    float64 // of the objective of coefficients that are 0
}

func run(ctx context.Context, args []string, w io.Writer) error {
	f := flag.NewFlagSet("lasso", flag.ContinueOnError)
	s := settings{}
	f.StringVar(&s.python, "python", "python3", "a Python that has scikit-learn")
	f.IntVar(&s.rounds, "rounds", 5, "in which both solve each problem")
	f.Float64Var(&s.gap, "gap", 1e-6, "to reach, of the objective of coefficients that are 0")
	quick := f.Bool("quick", false, "small designs")
	model := f.String("model", "", "lasso or l1-lr; none: both")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := gauge.Checked(f, 1, s.rounds); err != nil {
		return err
	}
	if !(s.gap > 0 && s.gap < 1) {
		return fmt.Errorf("-gap %g: want more than 0, and less than 1", s.gap)
	}
	if *model != "" && *model != "lasso" && *model != "l1-lr" {
		return fmt.Errorf("-model %s: want lasso or l1-lr", *model)
	}
	fmt.Fprintf(w, "%s, load %s: medians of %d rounds, to a gap of %g\n\n", gauge.Processor(),
		gauge.Load(), s.rounds, s.gap)
	fmt.Fprintln(w, "| model | design | lambda, of the largest | nonzero | gomem, CPU ms |"+
		" scikit-learn, CPU ms | ratio |")
	fmt.Fprintln(w, "|---|---|---:|---:|---:|---:|---:|")
	for _, d := range designs(*quick) {
		if *model != "" && *model != d.model() {
			continue
		}
		if err := s.compare(ctx, w, d); err != nil {
			return err
		}
	}
	return nil
}

// compare prints the rows of a design.
func (s settings) compare(ctx context.Context, w io.Writer, d drawing) error {
	p, columns, err := d.problem()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "lasso")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	other, err := newPeer(ctx, s.python, dir, d, columns, p.Y)
	absent := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
	if err != nil && !absent {
		return err
	}
	if !absent {
		defer other.close()
	}
	for _, part := range []float64{10, 50} {
		p.L1 = d.largest(columns, p.Y) / part
		ours, theirs, nonzero, err := s.turns(p, d.cols, other)
		if err != nil {
			return err
		}
		beside := "left out | "
		if !absent {
			beside = fmt.Sprintf("%.1f | %.2f", theirs, ours/theirs)
		}
		fmt.Fprintf(w, "| %s | %s | 1/%g | %d | %.1f | %s |\n", d.model(), d, part, nonzero, ours,
			beside)
	}
	if absent {
		fmt.Fprintf(w, "\nscikit-learn is left out: %v\n\n", err)
	}
	return nil
}

// turns are the medians of both, in milliseconds of a processor, who take turns; other may be nil.
func (s settings) turns(p *strads.Problem, cols int, other *peer) (ours, theirs float64,
	nonzero int, err error) {
	tolerance := 0.0
	if other != nil {
		if tolerance, err = other.tolerance(p, s.gap); err != nil {
			return 0, 0, 0, err
		}
	}
	var own, beside []float64
	for range s.rounds {
		at := &strads.Point{B: make([]float64, cols)}
		began := gauge.CPUTime()
		seen, err := solve(p, at, strads.Stop{Epochs: 10_000, Gap: s.gap})
		if err != nil {
			return 0, 0, 0, err
		}
		own, nonzero = append(own, milliseconds(gauge.CPUTime()-began)), seen.Nonzero
		if other != nil {
			took, err := other.fit(p.L1, tolerance)
			if err != nil {
				return 0, 0, 0, err
			}
			beside = append(beside, milliseconds(took))
		}
	}
	return gauge.Median(own), gauge.Median(beside), nonzero, nil
}

// solve has gomem go on from a point, and says what it has come to.
func solve(p *strads.Problem, at *strads.Point, stop strads.Stop) (last strads.Progress,
	err error) {
	err = p.Solve(at, stop, func(x strads.Progress) error {
		last = x
		return nil
	})
	return last, err
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
