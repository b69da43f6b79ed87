package svlog

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
)

// node is one of the nodes of a job in memory, whose replica is logged.
type node struct {
	id     int
	engine *distrib.Engine
	log    *Log
	seen   [][]float32 // what its worker has after each clock, of all parameters
}

// job makes nodes under a plan's name.
func job(t *testing.T, dir, scheme string, nodes int, o Options) []*node {
	ts := memnet.New(nodes, memnet.Options{})
	v := distrib.View{}
	for i := range nodes {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i)})
	}
	var all []*node
	for i := range nodes {
		n := &node{id: i, log: opened(t, filepath.Join(dir, strconv.Itoa(i)), o)}
		v.Self = distrib.NodeID(i)
		mux, err := collective.NewMux(ts[i], collective.Options{})
		if err != nil {
			t.Fatal(err)
		}
		group, err := mux.Group(0, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := distrib.ParseScheme(scheme, distrib.SchemeOptions{Seed: 3, Reduce: sum})
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Every) > 0 {
			plan.Every[0].Every = 20
		}
		n.engine, err = distrib.New(distrib.Config{Transport: mux.Transport(), View: v, Plan: *plan,
			Group: group, Journal: n.log})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = mux.Close() })
		all = append(all, n)
	}
	return all
}

func sum(ctx context.Context, g distrib.Group, x []float32) error {
	return collective.AllReduce(ctx, g, x, collective.Sum)
}

// work is a worker's part: factors of a weight and changes of a bias, each clock.
func (n *node) work(t *testing.T, clocks int) {
	ctx, rng := context.Background(), rand.New(rand.NewPCG(uint64(n.id), 5))
	ps := []*distrib.Param{{Name: "w", Rows: 40, Cols: 30, Data: make([]float32, 40*30)},
		{Name: "b", Rows: 1, Cols: 40, Data: make([]float32, 40)}}
	s := n.engine.Worker(0)
	check := func(err error) {
		if err != nil {
			t.Error(n.id, err)
		}
	}
	check(s.Attach(ps...))
	for c := 1; c <= clocks; c++ {
		check(s.Push(ctx, distrib.Ref{}, distrib.Factored{R: 3, J: 40, K: 30,
			A: floats(rng, 3*40), B: floats(rng, 3*30)}))
		check(s.Push(ctx, distrib.Ref{Param: 1}, distrib.Dense(floats(rng, 40))))
		_, err := s.Tick(ctx)
		check(err)
		for i := range ps {
			_, err := s.Pull(ctx, distrib.Ref{Param: distrib.ParamID(i)})
			check(err)
		}
		n.log.Mark(int64(c), nil)
		n.seen = append(n.seen, append(slices.Clone(ps[0].Data), ps[1].Data...))
	}
	check(s.Close())
	<-n.engine.Done()
	check(n.engine.Close())
	check(n.log.Close())
}

// TestSchemes: of every scheme under which nodes fold updates in themselves, what is restored of
// any clock of any node is what its worker had then, to the bit.
func TestSchemes(t *testing.T) {
	const clocks = 50
	for _, scheme := range []string{"orpheus", "lossy", "svb", "exponential", "halton"} {
		t.Run(scheme, func(t *testing.T) {
			dir := t.TempDir()
			all := job(t, dir, scheme, 3, Options{Keep: clocks})
			var wg sync.WaitGroup
			for _, n := range all {
				wg.Go(func() { n.work(t, clocks) })
			}
			wg.Wait()
			for _, n := range all {
				for c, want := range n.seen {
					s := restored(t, filepath.Join(dir, strconv.Itoa(n.id)), int64(c+1), adds)
					got := append(s.Params[0].Data, s.Params[1].Data...)
					if !slices.Equal(got, want) {
						t.Fatalf("node %d is restored to other bits of clock %d", n.id, c+1)
					}
				}
			}
		})
	}
}

// TestNoReplicas: plans with owners, and those that send nothing, have nothing to log.
func TestNoReplicas(t *testing.T) {
	for _, scheme := range []string{"bsp", "pf", "average"} {
		n := job(t, t.TempDir(), scheme, 3, Options{})[0]
		err := n.engine.Worker(0).Attach(&distrib.Param{Name: "w", Rows: 1, Cols: 1,
			Data: []float32{1}})
		if err == nil || !strings.Contains(err.Error(), "fold updates into themselves") {
			t.Errorf("%s: %v", scheme, err)
		}
		closed(t, n.log)
	}
}
