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

	"github.com/gomem/gomem/distrib/workload"
)

// The namespaces' table: links are slow enough for two cores to keep up with them.
const (
	labNodes     = 4
	labBps       = 20e6
	labThrottled = 4e6
	labCompute   = 10 * time.Millisecond
)

// namespaces prints how long real processes take between namespaces.
func namespaces(t *testing.T, w io.Writer, quick bool) error {
	ctx := context.Background()
	l, err := newLab(ctx, labNodes, labBps)
	if errors.Is(err, errNoLab) {
		_, err = fmt.Fprintln(w, err)
		return err
	}
	if err != nil {
		return err
	}
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
		err = errors.Join(err, l.rate(ctx, labNodes-1, last))
		for _, name := range schemes {
			if err == nil {
				err = l.row(ctx, w, name, last < labBps, k, quick)
			}
		}
		if quick {
			break
		}
	}
	return errors.Join(err, l.close())
}

func (l *lab) row(ctx context.Context, w io.Writer, name string, slow bool, k task,
	quick bool) error {
	before, err := l.total(ctx)
	if err != nil {
		return err
	}
	out, err := l.run(ctx, order{Scheme: name, Compute: labCompute, Quick: quick})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	after, err := l.total(ctx)
	if err != nil {
		return err
	}
	for e := range k.epochs + 1 {
		p, took := out.at(e, l.nodes)
		if p.Mean() > k.target && e < k.epochs {
			continue
		}
		clocks := fmt.Sprint(10 * e)
		if p.Mean() > k.target {
			clocks = fmt.Sprintf("never (%.3f)", p.Mean())
		}
		row(w, name, fmt.Sprint(slow), fmt.Sprintf("%.2f", took.Seconds()), clocks,
			fmt.Sprintf("%.2f", float64(out.sent[e])/1e6),
			fmt.Sprintf("%+.1f%%", 100*(float64(after-before)/float64(out.bytes)-1)))
		break
	}
	return nil
}

// total is what has left all nodes, with all headers.
func (l *lab) total(ctx context.Context) (sum int64, err error) {
	for i := range l.nodes {
		n, bad := l.bytes(ctx, i)
		sum, err = sum+n, errors.Join(err, bad)
	}
	return sum, err
}

// run starts a process a node and collects what they tell.
func (l *lab) run(ctx context.Context, o order) (*outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for i := range l.nodes {
		o.Addrs = append(o.Addrs, l.addr(i)+":7070")
	}
	out := &outcome{totals: &workload.Totals{}, sent: map[int]int64{}}
	var all, ended sync.WaitGroup
	var mu sync.Mutex
	ended.Add(l.nodes)
	errs := make([]error, l.nodes)
	for i := range l.nodes {
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

// hear notes what a node tells.
func (o *outcome) hear(n line) {
	if n.Ended {
		o.bytes += n.Sent
		return
	}
	o.totals.Add(n.Progress)
	o.sent[n.Epoch] += n.Sent
	if n.Epoch == 0 && n.At.After(o.start) {
		o.start = n.At
	}
}

// process is a node's: it is let go when all nodes have ended.
func (l *lab) process(ctx context.Context, o order, hear func(line),
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
	cmd := l.exec(ctx, o.Self, exe)
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

// listen reads a node's lines until its last one.
func listen(r io.Reader, hear func(line)) error {
	lines := json.NewDecoder(r)
	for {
		var n line
		if err := lines.Decode(&n); err != nil {
			return fmt.Errorf("a node ended early: %w", err)
		}
		hear(n)
		if n.Ended {
			return nil
		}
	}
}
