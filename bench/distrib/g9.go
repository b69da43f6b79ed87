package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/workload"
)

// shape is a weight's, and what is said of it: pairs of a batch, of which some go to some nodes.
type shape struct{ rows, cols, batch, pairs, to, nodes int }

// formula is the bytes of a node's clock without headers: Q·4C(J+K), or of matrices, to all.
func (s shape) formula(dense bool) float64 {
	if dense {
		return float64(4 * s.rows * s.cols * (s.nodes - 1))
	}
	return float64(s.to * 4 * min(s.pairs, s.batch) * (s.rows + s.cols))
}

// run pushes factors of numbers that are drawn, for some clocks.
func (s shape) run(ctx context.Context, sync distrib.Synchronizer, w workload.Worker,
	clocks int) error {
	p := &distrib.Param{Name: "w", Rows: s.rows, Cols: s.cols,
		Data: make([]float32, s.rows*s.cols)}
	if err := sync.Attach(p); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(uint64(w.Rank), 1))
	for range clocks {
		u := distrib.Factored{R: s.batch, J: s.rows, K: s.cols}
		for range s.batch * s.rows {
			u.A = append(u.A, float32(r.NormFloat64()))
		}
		for range s.batch * s.cols {
			u.B = append(u.B, float32(r.NormFloat64()))
		}
		if err := sync.Push(ctx, distrib.Ref{}, u); err != nil {
			return err
		}
		if _, err := sync.Tick(ctx); err != nil {
			return err
		}
	}
	time.Sleep(time.Second) // all has arrived, and nobody has closed: then what is kept goes, too
	w.Report(workload.Progress{Worker: w.Rank})
	time.Sleep(time.Second)
	return nil
}

// measured is the bytes of a node's clock, with all headers.
func (s shape) measured(t *testing.T, way scheme, clocks int) (float64, error) {
	out, err := world{nodes: s.nodes}.run(t, way, func(ctx context.Context,
		sync distrib.Synchronizer, w workload.Worker) error {
		return s.run(ctx, sync, w, clocks)
	})
	if err != nil {
		return 0, err
	}
	return float64(out.sent[0]) / float64(s.nodes*clocks), nil
}

// never is when replicas are averaged: their bytes are others.
const never = 1 << 30

// factored is Orpheus' way: selected pairs, to nodes that are drawn each clock, for good.
func (s shape) factored() scheme {
	return engine("factors", func() distrib.Plan {
		p := distrib.Plan{Topology: &distrib.RandomMulticast{Q: s.to, Seed: 1, Lossy: true},
			Consistency: distrib.SSP{S: 4}, Every: []distrib.Periodic{distrib.Average(never, nil)}}
		if s.pairs < s.batch {
			p.Up = &distrib.SVSelect{C: s.pairs, Seed: 1}
		}
		return p
	})
}

// bytesOfFactors prints what factors take beside matrices.
func bytesOfFactors(t *testing.T, w io.Writer, quick bool) error {
	fmt.Fprint(w, "Bytes that a node sends in a clock, counted in the transport, of a weight of "+
		"J x K: C pairs of a batch of 100 to Q of the others, and all of it to all of them.\n\n")
	heading(w, "nodes", "J x K", "Q", "C", "kB", "by formula", "headers", "matrices, kB",
		"times fewer")
	base := shape{400, 200, 100, 25, 3, 4}
	all := []shape{base}
	for _, change := range []func(*shape){
		func(s *shape) { s.rows, s.cols = 2*s.rows, 2*s.cols },
		func(s *shape) { s.rows, s.cols = 4000, 2000 },
		func(s *shape) { s.pairs = 5 }, func(s *shape) { s.pairs = 50 },
		func(s *shape) { s.pairs = 100 },
		func(s *shape) { s.nodes, s.to = 12, 1 }, func(s *shape) { s.nodes, s.to = 12, 4 },
		func(s *shape) { s.nodes, s.to = 12, 11 },
	} {
		s := base
		change(&s)
		all = append(all, s)
	}
	clocks := 6
	if quick {
		all, clocks = all[:1], 2
	}
	for _, s := range all {
		have, err := s.measured(t, s.factored(), clocks)
		if err != nil {
			return err
		}
		want, dense := s.formula(false), s.formula(true)
		row(w, fmt.Sprint(s.nodes), fmt.Sprintf("%d x %d", s.rows, s.cols), fmt.Sprint(s.to),
			fmt.Sprint(s.pairs), fmt.Sprintf("%.1f", have/1e3), fmt.Sprintf("%.1f", want/1e3),
			fmt.Sprintf("%.2f %%", 100*(have/want-1)), fmt.Sprintf("%.1f", dense/1e3),
			fmt.Sprintf("%.1f", dense/have))
	}
	return nil
}
