package orion

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
)

// groups are those of n workers on a network in memory, by rank.
func groups(t *testing.T, n int) (all []*collective.Group, net *memnet.Network) {
	t.Helper()
	net = memnet.NewNetwork(n, memnet.Options{})
	var nodes []distrib.NodeID
	for i := range n {
		nodes = append(nodes, distrib.NodeID(i))
	}
	for _, id := range nodes {
		m, err := collective.NewMux(net.Node(id), collective.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := m.Group(nodes...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		all = append(all, g)
	}
	return all, net
}

// remote is a trial in a process of its own.
type remote struct{ *Trial }

func (m remote) Load(b []byte, array int, from, n int64) []byte {
	for _, x := range m.data[array][from:][:n] {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

func (m remote) Store(array int, from, n int64, b []byte) {
	for i := range m.data[array][from:][:n] {
		m.data[array][from+int64(i)] = binary.LittleEndian.Uint64(b[8*i:])
	}
}

// worker is the run's part of the worker of a group's rank.
func (r *Run) worker(g distrib.Group, m Memory) (*Worker, error) {
	all, err := r.divide()
	if err != nil {
		return nil, err
	}
	rank := g.Rank()
	return &Worker{Schedule: r.Schedule, Group: g, Memory: m,
		Block: func(ctx context.Context, _, index int) error {
			return r.block(ctx, rank, all[rank][index])
		}}, nil
}

// apart runs passes of a loop by workers that share nothing, and is what each of them has at the
// end.
func apart(t *testing.T, s *Schedule, points [][]int64, passes int) ([]*Trial, error) {
	t.Helper()
	trials, errs := make([]*Trial, s.Workers), make([]error, s.Workers)
	for i := range s.Loop.Arrays {
		s.Loop.Arrays[i].Bytes = 8 // those of a trial
	}
	all, _ := groups(t, s.Workers)
	var wg sync.WaitGroup
	for rank, g := range all {
		trial, err := NewTrial(s.Loop, s.Workers, len(points))
		if err != nil {
			t.Fatal(err)
		}
		trials[rank] = trial
		wg.Go(func() {
			r := &Run{Schedule: s, Points: points, Body: trial.Body}
			w, err := r.worker(g, remote{trial})
			if err == nil {
				w.After = func(ctx context.Context, pass int) error {
					if pass < passes-1 {
						return nil
					}
					return w.Gather(ctx)
				}
				err = w.Run(t.Context(), passes)
			}
			if errs[rank] = err; err != nil {
				g.Abort(err)
			}
		})
	}
	wg.Wait()
	return trials, errors.Join(errs...)
}

// TestWorkersAreSerial: workers in processes of their own leave the bits of the serial order, of
// each kind of loop, after any number of passes.
func TestWorkersAreSerial(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	kinds := map[Kind]int{}
	for n := range longtest.Count(300, 4000) {
		s, points, _ := scheduled(t, rng, n)
		if s.Loop.buffers() {
			continue
		}
		passes := 1 + n%3
		trial, err := NewTrial(s.Loop, s.Workers, len(points))
		if err != nil {
			t.Fatal(err)
		}
		for range passes {
			if err := (&Run{s, points, trial.Body, false}).Serial(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		trials, err := apart(t, s, points, passes)
		if err != nil {
			t.Log(err)
			continue
		}
		kinds[s.Kind]++
		for rank, x := range trials {
			for i := range x.data {
				if !slices.Equal(x.data[i], trial.data[i]) {
					t.Fatalf("case %d: %s by %d workers: worker %d has other bits of %s, of\n%s",
						n, s.Kind, s.Workers, rank, s.Loop.Arrays[i].Name, s.Loop)
				}
			}
		}
	}
	t.Log(kinds)
}
