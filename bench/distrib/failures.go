package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/svlog"
	"github.com/gomem/gomem/distrib/workload"
)

// Orpheus' table 4, smaller in all but machines, failures and how often matrices are saved.
const (
	failRows, failCols = 100, 150
	failEvery          = 100 // clocks
	failShare          = .01 // of clocks in which a machine fails
	failTarget         = .5
	failRate           = .5
	failDisk           = 10e6 // bytes a second
)

// safety is what machines save, and whether they fail.
type safety struct {
	name     string
	matrices bool // else vectors, where there is a place for the log
	logs     bool
	fails    bool
	hours    [2]float64 // Orpheus', of a regression and of an LSTM
}

// safeties are the table's rows.
func safeties() []safety {
	return []safety{
		{"no checkpoints", false, false, false, [2]float64{1.9, 4.1}},
		{"matrices", true, false, false, [2]float64{2.4, 5.2}},
		{"a log of vectors", false, true, false, [2]float64{1.9, 4.2}},
		{"matrices, and failures", true, false, true, [2]float64{2.9, 6.7}},
		{"a log of vectors, and failures", false, true, true, [2]float64{2.3, 4.8}},
	}
}

// harm is what becomes of all machines together.
type harm struct{ failures, lost, written, read, waited atomic.Int64 }

// failures prints Orpheus' table 4.
func failures(t *testing.T, w io.Writer, quick bool) error {
	nodes, epochs := orpheusNodes, 14
	if quick {
		nodes, epochs = 4, 2
	}
	train, _ := workload.Linear(1, nodes*orpheusBatch*orpheusClocks, 0, failCols, failRows, 40, .1)
	k := func(epochs int) task {
		return task{epochs: epochs, target: failTarget, compute: 5 * time.Millisecond,
			at: func(rate float64) runner {
				return &workload.MLR{Train: train, Epochs: epochs, Clocks: orpheusClocks,
					Factors: true, Rate: rate}
			}}
	}
	fmt.Fprintf(w, "%d workers, weights of %d x %d, one pair of vectors a clock, 5 ms of "+
		"computing, disks of %.0f MB/s; %g %% of a worker's clocks end in a failure; matrices "+
		"every %d clocks. Seconds to an entropy of %g; the rest is of one worker and %d clocks, "+
		"with failures %d.\n\n", nodes, failRows, failCols, failDisk/1e6, 100*failShare, failEvery,
		failTarget, epochs*orpheusClocks, 2*epochs*orpheusClocks)
	heading(w, "saved", "seconds", "of none", "MLR, hours", "of none", "LSTM, hours", "of none",
		"failures", "clocks lost", "MB written", "MB read", "seconds of disks")
	var base float64
	all := safeties()
	for i, c := range all {
		var h harm
		last := epochs
		if c.fails {
			last *= 2
		}
		r, err := world{nodes: nodes, net: memnet.Options{Bps: orpheusBps,
			Latency: 100 * time.Microsecond}}.measure(t, c.scheme(t.TempDir(), &h), k(last),
			failRate)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if i == 0 {
			base = r.took.Seconds()
		}
		each := func(n *atomic.Int64, unit float64) string {
			return fmt.Sprintf("%.2f", float64(n.Load())/unit/float64(nodes))
		}
		cells := []string{c.name, fmt.Sprintf("%.2f", r.took.Seconds()),
			fmt.Sprintf("%.2f", r.took.Seconds()/base)}
		if r.epochs == 0 {
			cells = []string{c.name, epochsOf(r), ""}
		}
		for k, hours := range c.hours {
			cells = append(cells, fmt.Sprint(hours), fmt.Sprintf("%.2f", hours/all[0].hours[k]))
		}
		row(w, append(cells, each(&h.failures, 1), each(&h.lost, 1), each(&h.written, 1e6),
			each(&h.read, 1e6), each(&h.waited, 1e9))...)
	}
	return nil
}

// scheme has workers exchange selected vectors with four others at random, and save.
func (c safety) scheme(dir string, h *harm) scheme {
	return scheme{c.name, func(n distrib.Transport, v distrib.View) (distrib.Synchronizer,
		func() error, error) {
		f := &frail{safety: c, harm: h, dir: filepath.Join(dir, strconv.Itoa(int(v.Self))),
			rng: rand.New(rand.NewPCG(7, uint64(v.Self)))}
		o := distrib.Config{View: v, Transport: n, Plan: distrib.Plan{Up: orpheusSelected(),
			Topology: &distrib.RandomMulticast{}, Consistency: distrib.SSP{S: 4}}}
		if c.logs {
			var err error
			if f.log, err = svlog.Open(f.dir, svlog.Options{}); err != nil {
				return nil, nil, err
			}
			o.Journal = f.log
		}
		e, err := distrib.New(o)
		if err != nil {
			return nil, nil, err
		}
		f.Synchronizer = e.Worker(0)
		return f, func() error {
			<-e.Done()
			err := errors.Join(e.Close(), n.Close())
			if f.log != nil {
				err = errors.Join(err, f.log.Close())
			}
			return err
		}, nil
	}}
}

// frail is a worker whose machine fails now and then, and goes on from what it has saved. Others
// go on meanwhile, as far as they need not wait. It has one parameter.
type frail struct {
	distrib.Synchronizer
	safety
	harm *harm
	log  *svlog.Log
	dir  string
	rng  *rand.Rand

	param *distrib.Param // as the worker has it
	whole *distrib.Param // as if nothing had been lost
	lost  []float32      // by which they differ

	clock, seen, saved distrib.Clock // the last that ended, was read, and whose matrix is saved
	matrix             []float32
	written            int64     // of the log, so far
	free               time.Time // when what is written is on the disk
}

// Attach attaches the parameter.
func (f *frail) Attach(ps ...*distrib.Param) error {
	f.param, f.seen = ps[0], -1
	whole := *ps[0]
	whole.Data = slices.Clone(whole.Data)
	f.whole, f.lost = &whole, make([]float32, len(whole.Data))
	return f.Synchronizer.Attach(f.whole)
}

// Tick counts.
func (f *frail) Tick(ctx context.Context) (distrib.Clock, error) {
	f.clock++
	return f.Synchronizer.Tick(ctx)
}

// Pull is where a clock is saved, and where machines fail.
func (f *frail) Pull(ctx context.Context, ref distrib.Ref) (distrib.Version, error) {
	v, err := f.Synchronizer.Pull(ctx, ref)
	if err != nil {
		return v, err
	}
	f.show()
	if f.clock == f.seen {
		return v, nil
	}
	f.seen = f.clock
	f.save()
	if f.rng.Float64() < failShare && f.fails {
		f.harm.failures.Add(1)
		err = f.recover()
	}
	return v, err
}

// show gives the worker what it has.
func (f *frail) show() {
	for i, x := range f.whole.Data {
		f.param.Data[i] = x - f.lost[i]
	}
}

// save keeps a clock: vectors beside the work, matrices instead of it.
func (f *frail) save() {
	switch {
	case f.matrices && f.clock%failEvery == 0:
		f.matrix, f.saved = slices.Clone(f.param.Data), f.clock
		f.harm.written.Add(4 * int64(len(f.matrix)))
		f.wait(transfer(4 * int64(len(f.matrix))))
	case f.logs:
		f.log.Mark(int64(f.clock), nil)
		time.Sleep(time.Nanosecond) // no time passes before all of it is written
		n := f.log.Stats().Written - f.written
		f.written += n
		f.harm.written.Add(n)
		if now := time.Now(); f.free.Before(now) {
			f.free = now
		}
		f.free = f.free.Add(transfer(n))
		base := transfer(4 * int64(len(f.param.Data)))
		f.wait(time.Until(f.free) - base) // as a log of small groups would
	}
}

// recover has the worker go on from what is saved.
func (f *frail) recover() error {
	back, read := f.matrix, 4*int64(len(f.matrix))
	if f.logs {
		f.wait(time.Until(f.free))
		h, err := svlog.Read(f.dir)
		if err != nil {
			return err
		}
		latest, err := h.Latest()
		if err != nil {
			return err
		}
		s, err := h.Restore(latest, nil)
		if err != nil {
			return err
		}
		if read, err = onDisk(f.dir); err != nil {
			return err
		}
		back, f.saved = s.Params[0].Data, distrib.Clock(latest)
	}
	f.harm.read.Add(read)
	f.harm.lost.Add(int64(f.clock - f.saved))
	f.wait(transfer(read))
	for i, x := range f.whole.Data {
		f.lost[i] = x - back[i]
	}
	f.show()
	return nil
}

// wait is for the disk.
func (f *frail) wait(d time.Duration) {
	if d > 0 {
		f.harm.waited.Add(int64(d))
		time.Sleep(d)
	}
}

// transfer is how long a disk takes for so many bytes.
func transfer(n int64) time.Duration { return time.Duration(float64(n) / failDisk * 1e9) }

// onDisk is how many bytes a directory's files have.
func onDisk(dir string) (bytes int64, err error) {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		info, stat := f.Info()
		if stat != nil {
			return 0, stat
		}
		bytes += info.Size()
	}
	return bytes, err
}
