// Command trees sets gomem's gradient-boosted trees beside scikit-learn's HistGradientBoosting: on
// the same drawn samples, at equal settings, by one thread each.
//
//	go run ./bench/trees -python /path/to/python
package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/gbt"
	"github.com/gomem/gomem/distrib/memnet"
)

//go:embed peer.py
var peer string

func main() { gauge.Main("trees", run) }

// trial is samples by feature, of which the first are learnt from, and their labels.
type trial struct {
	gbt.Options
	columns     [][]float32
	label       []float64
	train       int
	dir, python string
}

// result is what one has come to.
type result struct {
	busy        time.Duration // of a processor
	train, test float64       // losses, of a sample
}

func run(ctx context.Context, args []string, w io.Writer) error {
	f := flag.NewFlagSet("trees", flag.ContinueOnError)
	python := f.String("python", "python3", "a Python that has scikit-learn")
	rows := f.Int("samples", 200_000, "to learn from; a quarter as many are held out")
	cols := f.Int("features", 28, "of a sample")
	o := gbt.Options{Rate: 0.1, L2: 1, MinLeaf: 20}
	f.IntVar(&o.Trees, "trees", 50, "of a forest")
	f.IntVar(&o.Depth, "depth", 6, "of a tree")
	if err := f.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "trees")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(w, "%s, load %s: %d samples of %d features, %d trees of depth %d\n\n",
		gauge.Processor(), gauge.Load(), *rows, *cols, o.Trees, o.Depth)
	fmt.Fprintln(w, "| loss | by | CPU s | training loss | test loss |")
	fmt.Fprintln(w, "|---|---|---:|---:|---:|")
	for _, o.Loss = range []gbt.Loss{gbt.Squares, gbt.Logistic} {
		t := draw(o, *rows, *cols)
		t.dir, t.python = dir, *python
		if err := t.compare(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// draw draws normal features, and labels that depend on some of them, and on pairs of them.
func draw(o gbt.Options, rows, cols int) *trial {
	rng := rand.New(rand.NewPCG(1, 1))
	all := rows + rows/4
	t := &trial{Options: o, label: make([]float64, all), train: rows}
	for range cols {
		x := make([]float32, all)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		t.columns = append(t.columns, x)
	}
	for i := range t.label {
		y := rng.NormFloat64()
		for j, x := range t.columns[:cols/2] {
			y += float64(x[i]) * float64(t.columns[cols-1-j][i])
			if j%2 == 0 {
				y += float64(x[i])
			}
		}
		if t.label[i] = y; o.Loss == gbt.Logistic {
			t.label[i] = 0
			if y > 0 {
				t.label[i] = 1
			}
		}
	}
	return t
}

// compare prints a line for each.
func (t *trial) compare(ctx context.Context, w io.Writer) error {
	for _, by := range []struct {
		name  string
		learn func(context.Context) (result, error)
	}{{"gomem", t.own}, {"scikit-learn", t.peer}} {
		r, err := by.learn(ctx)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(w, "\n%s is left out: %v\n", by.name, err)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %v | %s | %.1f | %.5f | %.5f |\n", t.Loss, by.name, r.busy.Seconds(),
			r.train, r.test)
	}
	return nil
}

// own learns here.
func (t *trial) own(ctx context.Context) (r result, err error) {
	forest, began := &gbt.Forest{}, gauge.CPUTime()
	errs := collective.Together(memnet.New(1, memnet.Options{}), collective.Options{},
		func(g *collective.Group) error {
			l := &gbt.Worker{Options: t.Options, Group: g,
				Data: &gbt.Data{Rows: t.train, Cols: len(t.columns), Label: t.label[:t.train],
					Column: func(j int, to []float32) { copy(to, t.columns[j]) }}}
			return l.Run(ctx, forest)
		})
	if errs[0] != nil {
		return r, errs[0]
	}
	r.busy = gauge.CPUTime() - began
	r.train, r.test = t.mean(forest, 0, t.train), t.mean(forest, t.train, len(t.label))
	return r, nil
}

// mean is the loss of samples.
func (t *trial) mean(f *gbt.Forest, from, to int) (loss float64) {
	for i := from; i < to; i++ {
		says := float64(f.Base)
		for _, tree := range f.Trees {
			says += float64(tree.At(func(j int32) float32 { return t.columns[j][i] }))
		}
		loss += t.Loss.Of(t.label[i], says)
	}
	return loss / float64(to-from)
}

// peer has scikit-learn learn.
func (t *trial) peer(ctx context.Context) (r result, err error) {
	var x []byte
	for _, c := range t.columns {
		x, _ = binary.Append(x, binary.LittleEndian, c)
	}
	y, _ := binary.Append(nil, binary.LittleEndian, t.label)
	columns, labels := filepath.Join(t.dir, "columns"), filepath.Join(t.dir, "labels")
	err = errors.Join(os.WriteFile(columns, x, 0o666), os.WriteFile(labels, y, 0o666))
	if err != nil {
		return r, err
	}
	args := []string{"-c", peer, columns, labels, t.Loss.String()}
	for _, n := range []any{t.train, t.Trees, t.Depth, t.MinLeaf, t.Rate, t.L2} {
		args = append(args, fmt.Sprint(n))
	}
	c := exec.CommandContext(ctx, t.python, args...)
	c.Env, c.Stderr = append(os.Environ(), "OMP_NUM_THREADS=1"), os.Stderr
	said, err := c.Output()
	if err != nil {
		return r, fmt.Errorf("%s, which must have scikit-learn: %w", t.python, err)
	}
	var seconds float64
	_, err = fmt.Fscan(strings.NewReader(string(said)), &seconds, &r.train, &r.test)
	r.busy = time.Duration(seconds * float64(time.Second))
	return r, err
}
