package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/bench/internal/lab"
	"github.com/gomem/gomem/distrib/workload"
)

// The namespaces' table: links and computing are slow enough for two cores to keep up with
// them, and each as slow beside the other as in G6.
const (
	labNodes     = 4
	labBps       = 10e6
	labThrottled = 2e6
	labCompute   = 20 * time.Millisecond
)

// namespaces prints how long real processes take between namespaces.
func namespaces(t *testing.T, w io.Writer, quick bool) error {
	ctx := context.Background()
	nodes, err := lab.New(ctx, labNodes, labBps)
	if errors.Is(err, lab.ErrNone) {
		_, err = fmt.Fprintln(w, err)
		return err
	}
	if err != nil {
		return err
	}
	l := spread{nodes}
	k, model := regression(quick)
	fmt.Fprintf(w, "Regression, weights of %d kB, %d processes that compute %v a clock, to a loss "+
		"of %g; links of %.0f Mbit/s each way, throttled one of %.0f.\n\n", model/1000, labNodes,
		labCompute, k.target, labBps/1e6, labThrottled/1e6)
	heading(w, "scheme", "throttled", "seconds", "clocks", "MB",
		"and headers")
	schemes := []string{"push-pull", "ring", "pf:0.03", "pf:0.1", "pf:0.03:0.1"}
	if quick {
		schemes = schemes[2:3]
	}
	for _, last := range []float64{labBps, labThrottled} {
		err = errors.Join(err, l.Rate(ctx, labNodes-1, last))
		for _, name := range schemes {
			if err == nil {
				err = l.row(ctx, w, order{Scheme: name, Compute: labCompute, Quick: quick}, 10,
					fmt.Sprint(last < labBps))
			}
		}
		if quick {
			break
		}
	}
	return errors.Join(err, l.Close())
}

// labFactors is the factorisation's link: a model takes 64 ms, as in G3.
const labFactors = 5e6

// namespacedFactors prints how long a factorisation takes between namespaces, by step sizes
// that were best in G3.
func namespacedFactors(_ *testing.T, w io.Writer, quick bool) error {
	ctx := context.Background()
	nodes, err := lab.New(ctx, mfNodes, labFactors)
	if errors.Is(err, lab.ErrNone) {
		_, err = fmt.Fprintln(w, err)
		return err
	}
	if err != nil {
		return err
	}
	l := spread{nodes}
	fmt.Fprintf(w, "Factorisation of G3, %d processes, one clock an epoch of 1 s, to a squared "+
		"error of 0.1; links of %.0f Mbit/s each way. Budgets are models a second and node.\n\n",
		mfNodes, labFactors/1e6)
	heading(w, "scheme", "step size", "seconds", "epochs", "MB", "and headers")
	rows := []order{{Scheme: "eager", Rate: .03}, {Scheme: "eager", Rate: .04},
		{Scheme: "random:4", Rate: .03}, {Scheme: "absmag:4", Rate: .06},
		{Scheme: "random:8", Rate: .06}, {Scheme: "random:8", Rate: .08},
		{Scheme: "absmag:8", Rate: .08}, {Scheme: "absmag:15.6", Rate: .08},
		{Scheme: "absmag:15.6", Rate: .12}}
	if quick {
		rows = rows[:1]
	}
	for _, o := range rows {
		if err == nil {
			o.Compute, o.Quick = time.Second, quick
			err = l.row(ctx, w, o, 1, fmt.Sprint(o.Rate))
		}
	}
	return errors.Join(err, l.Close())
}

// spread is processes, one a namespace.
type spread struct{ *lab.Lab }

// row prints how a task ends, whose epochs have so many clocks.
func (l spread) row(ctx context.Context, w io.Writer, o order, clocks int, setting string) error {
	before, err := l.total(ctx)
	if err != nil {
		return err
	}
	out, err := l.run(ctx, o)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Scheme, err)
	}
	after, err := l.total(ctx)
	if err != nil {
		return err
	}
	k := o.task()
	for e := range k.epochs + 1 {
		p, took := out.at(e, l.Nodes)
		if !(p.Mean() <= k.target) && e < k.epochs {
			continue
		}
		done := fmt.Sprint(clocks * e)
		if !(p.Mean() <= k.target) {
			done = fmt.Sprintf("never (%.3f)", p.Mean())
		}
		row(w, o.Scheme, setting, fmt.Sprintf("%.2f", took.Seconds()), done,
			fmt.Sprintf("%.2f", float64(out.sent[e])/1e6),
			fmt.Sprintf("%+.1f%%", 100*(float64(after-before)/float64(out.bytes)-1)))
		break
	}
	return nil
}

// total is what has left all nodes, with all headers.
func (l spread) total(ctx context.Context) (sum int64, err error) {
	for i := range l.Nodes {
		n, bad := l.Sent(ctx, i)
		sum, err = sum+n, errors.Join(err, bad)
	}
	return sum, err
}

// run starts a process a node and collects what they tell.
func (l spread) run(ctx context.Context, o order) (*outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for i := range l.Nodes {
		o.Addrs = append(o.Addrs, l.Addr(i)+":7070")
	}
	out := &outcome{totals: &workload.Totals{}, sent: map[int]int64{}}
	var all, ended sync.WaitGroup
	var mu sync.Mutex
	ended.Add(l.Nodes)
	errs := make([]error, l.Nodes)
	for i := range l.Nodes {
		mine := o
		mine.Self = i
		all.Go(func() {
			errs[i] = l.process(ctx, mine, func(n line) {
				mu.Lock()
				defer mu.Unlock()
				out.hear(n)
			}, &ended)
			if errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	return out, errors.Join(errs...)
}

// process is a node's: it is let go when all nodes have ended.
func (l spread) process(ctx context.Context, o order, hear func(line),
	ended *sync.WaitGroup) error {
	told := sync.OnceFunc(ended.Done)
	defer told()
	spec, err := json.Marshal(o)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := l.Exec(ctx, o.Self, exe)
	cmd.Env = append(os.Environ(), memberEnv+"="+string(spec))
	var complaints strings.Builder
	cmd.Stderr = &complaints
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return err
	}
	err = listen(out, hear)
	told()
	ended.Wait()
	err = errors.Join(err, in.Close(), cmd.Wait())
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return fmt.Errorf("node %d: %w: %s", o.Self, err, complaints.String())
	}
	return err
}
