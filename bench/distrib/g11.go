package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/svlog"
)

// G11's workers: weights of side x side, and batches of so many pairs of factors.
const (
	logNodes = 2
	logPairs = 25
)

// watched is a log, and how much it is told and how long that takes.
type watched struct {
	*svlog.Log
	spent                 atomic.Int64 // nanoseconds
	bases, updates, reads int64
}

func (w *watched) timed(do func()) {
	began := time.Now()
	do()
	w.spent.Add(int64(time.Since(began)))
}

// Base counts.
func (w *watched) Base(at distrib.Clock, ps []*distrib.Param) {
	w.bases++
	w.timed(func() { w.Log.Base(at, ps) })
}

// Applied counts.
func (w *watched) Applied(from distrib.NodeID, at distrib.Clock, r distrib.Ref, u distrib.Update) {
	w.updates++
	w.timed(func() { w.Log.Applied(from, at, r, u) })
}

// Read counts.
func (w *watched) Read(at distrib.Clock, r distrib.Ref) {
	w.reads++
	w.timed(func() { w.Log.Read(at, r) })
}

// Room counts.
func (w *watched) Room() { w.timed(w.Log.Room) }

// predicted is how many bytes the log takes, by its layout: heads of 36 bytes, frames of 40 more.
func (w *watched) predicted(side, marks int) int64 {
	const head, frame, piece = 36, 40, 16 << 20
	about := fmt.Sprintf(`{"version":1,"params":[{"name":"w","rows":%d,"cols":%d}]}`, side, side)
	rows := min(side, piece/(4*side))
	pieces := int64((side + rows - 1) / rows)
	base := head + int64(len(about)) + pieces*(head+4+frame) + 4*int64(side)*int64(side)
	update := int64(head + frame + 4*logPairs*2*side)
	return w.bases*base + w.updates*update + w.reads*(head+12) + int64(marks)*head + head
}

// incremental prints what a log of updates costs, beside checkpoints of the matrix.
func incremental(t *testing.T, w io.Writer, quick bool) error {
	side, clocks := 4000, 100
	if quick {
		side, clocks = 100, 6
	}
	logs, took, err := logging(t, side, clocks)
	if err != nil {
		return err
	}
	l, matrix := logs[0], 4*int64(side)*int64(side)
	update := int64(4 * logPairs * 2 * side)
	written := l.Stats().Written
	if want := l.predicted(side, clocks); written != want {
		return fmt.Errorf("%d bytes are written, %d predicted", written, want)
	}
	fmt.Fprintf(w, "%d workers, %d x %d, %d pairs a clock, %d clocks, each of which is on the "+
		"disk; MB of one worker.\n\n", logNodes, side, side, logPairs, clocks)
	mb := func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/1e6) }
	heading(w, "kept", "MB", "clocks that can be restored")
	row(w, fmt.Sprintf("log: %d updates and %d bases, predicted = written", l.updates, l.bases),
		mb(written), "every one since the newest base")
	row(w, "its updates alone", mb(l.updates*update), "")
	row(w, "a matrix every 100 clocks", mb(matrix*int64(clocks)/100), "one in 100")
	row(w, "a matrix every clock", mb(matrix*int64(clocks)), "every one")
	fmt.Fprintf(w, "\nWhat the log takes of a step is %.2f%% of its time, bases included; at most "+
		"%s MB wait for the disk.\n", 100*float64(l.spent.Load())/float64(took), mb(l.Stats().Peak))
	return nil
}

// logging has workers make clocks, each with a log, and says how long that took.
func logging(t *testing.T, side, clocks int) (logs []*watched, took time.Duration, err error) {
	ts, v := memnet.New(logNodes, memnet.Options{}), distrib.View{}
	for i := range logNodes {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i)})
	}
	var wg sync.WaitGroup
	failed := make([]error, logNodes)
	began := time.Now()
	for i := range logNodes {
		log, err := svlog.Open(filepath.Join(t.TempDir(), strconv.Itoa(i)), svlog.Options{})
		if err != nil {
			return nil, 0, err
		}
		logs = append(logs, &watched{Log: log})
		v.Self = distrib.NodeID(i)
		e, err := distrib.New(distrib.Config{View: v, Transport: ts[i], Journal: logs[i],
			Plan: distrib.Plan{Topology: &distrib.RandomMulticast{Q: 1},
				Consistency: distrib.SSP{S: 4}, Up: &distrib.SVSelect{C: logPairs}}})
		if err != nil {
			return nil, 0, err
		}
		wg.Go(func() { failed[i] = factorize(e, logs[i].Log, uint64(i), side, clocks) })
	}
	wg.Wait()
	took = time.Since(began)
	for i, err := range failed {
		if err != nil {
			return nil, 0, fmt.Errorf("worker %d: %w", i, err)
		}
		if err := logs[i].Close(); err != nil {
			return nil, 0, err
		}
	}
	return logs, took, nil
}

// factorize is a worker's part: a batch of factors in every clock.
func factorize(e *distrib.Engine, l *svlog.Log, seed uint64, side, clocks int) error {
	ctx, rng, s := context.Background(), rand.New(rand.NewPCG(seed, 11)), e.Worker(0)
	if err := s.Attach(&distrib.Param{Name: "w", Rows: side, Cols: side,
		Data: make([]float32, side*side)}); err != nil {
		return err
	}
	draw := func() []float32 {
		x := make([]float32, logPairs*side)
		for i := range x {
			x[i] = rng.Float32() - 0.5
		}
		return x
	}
	for c := range clocks {
		if err := s.Push(ctx, distrib.Ref{}, distrib.Factored{R: logPairs, J: side, K: side,
			A: draw(), B: draw()}); err != nil {
			return err
		}
		if _, err := s.Tick(ctx); err != nil {
			return err
		}
		if _, err := s.Pull(ctx, distrib.Ref{}); err != nil {
			return err
		}
		l.Mark(int64(c+1), nil)
	}
	if err := s.Close(); err != nil {
		return err
	}
	<-e.Done()
	return e.Close()
}
