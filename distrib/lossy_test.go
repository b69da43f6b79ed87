package distrib_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// TestLossy compares with the lines that define it: a replica gets its own updates and those of
// the clocks in which it is drawn, all are averaged every four, and what nobody gets is counted.
func TestLossy(t *testing.T) {
	for name, top := range map[string]func() distrib.Topology{
		"random": func() distrib.Topology {
			return &distrib.RandomMulticast{Q: 1, Seed: 3, Lossy: true}
		},
		"turns": func() distrib.Topology { return &distrib.TurnMulticast{Q: 1, Lossy: true} },
		"fixed": func() distrib.Topology { return &distrib.FixedMulticast{Q: 1} },
	} {
		t.Run(name, func(t *testing.T) { lossy(t, top) })
	}
}

func lossy(t *testing.T, top func() distrib.Topology) {
	const nodes, clocks, every = 4, 12, 4
	delta := func(w, c int) float32 { return float32(1 + w + c%3) }
	var seen [nodes][clocks]float32
	synctest.Test(t, func(t *testing.T) {
		h := &hall{n: nodes}
		engines, net := cluster(t, nodes, memnet.Options{Jitter: 20 * time.Millisecond},
			func() distrib.Plan {
				return distrib.Plan{Topology: top(), Consistency: distrib.BSP{},
					Every: []distrib.Periodic{distrib.Average(every, allReduce)}}
			}, func(c *distrib.Config) { c.Group = seat{h, int(c.View.Self)} })
		each(engines, func(w int, s distrib.Synchronizer) {
			ctx, check := context.Background(), must(t)
			p := zeros("w", 1, 2)
			check(nil, s.Attach(p))
			for c := range clocks {
				d := delta(w, c)
				check(nil, s.Push(ctx, distrib.Ref{}, distrib.Dense{d, d}))
				check(s.Tick(ctx))
				time.Sleep(time.Second) // so that nobody reads what is of a later clock
				check(s.Pull(ctx, distrib.Ref{}))
				seen[w][c] = p.Data[1]
				time.Sleep(time.Second)
			}
			check(nil, s.Close())
		})
		finish(engines, net)
		for _, e := range engines {
			a := e.Audit()
			must(t)(nil, a.Check())
			if want := int64(clocks * (nodes - 2) * 8); a.Lost != want {
				t.Errorf("%d bytes are lost, want %d", a.Lost, want)
			}
		}
	})
	drawn := bound(t, top(), viewOf(nodes))
	var x [nodes]float64
	for c := range clocks {
		for w := range x {
			for _, to := range append(drawn.Dests(nil, distrib.NodeID(w), distrib.Ref{},
				distrib.Clock(c)), distrib.NodeID(w)) {
				x[to] += float64(delta(w, c))
			}
		}
		if c%every == every-1 {
			var sum float64
			for _, v := range x {
				sum += v
			}
			x = [nodes]float64(slices.Repeat([]float64{sum / nodes}, nodes))
		}
		for w := range x {
			if got := float64(seen[w][c]); got < x[w]-1e-3 || got > x[w]+1e-3 {
				t.Errorf("worker %d after clock %d: %v, want %v", w, c, got, x[w])
			}
		}
	}
}

// TestLossyToAllLosesNothing: who draws everybody has the bits of who sends to everybody.
func TestLossyToAllLosesNothing(t *testing.T) {
	run := func(top func() distrib.Topology) [][][]float32 {
		return meetings(t, func() distrib.Plan {
			return distrib.Plan{Topology: top(), Consistency: distrib.BSP{},
				Every: []distrib.Periodic{distrib.Average(4, allReduce)}}
		}, 1, 9, func(w, c int) float32 { return float32(w*c%5) - 1 })
	}
	lossy := run(func() distrib.Topology { return &distrib.RandomMulticast{Q: 2, Lossy: true} })
	all := run(func() distrib.Topology { return &distrib.RandomMulticast{Q: 2} })
	for w := range all {
		for c := range all[w] {
			if !slices.Equal(lossy[w][c], all[w][c]) {
				t.Fatalf("worker %d after clock %d: %v, want %v", w, c, lossy[w][c], all[w][c])
			}
		}
	}
}

// TestLossyNeedsAverages: without them replicas drift apart, which is refused.
func TestLossyNeedsAverages(t *testing.T) {
	net := memnet.NewNetwork(1, memnet.Options{})
	e, err := distrib.New(distrib.Config{Transport: net.Node(0),
		Plan: distrib.Plan{Topology: &distrib.RandomMulticast{Lossy: true}},
		View: distrib.View{Nodes: []distrib.Node{{ID: 0}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := e.Worker(0)
	if err = s.Attach(zeros("w", 1, 1)); err == nil {
		err = s.Push(t.Context(), distrib.Ref{}, distrib.Dense{1})
	}
	if err == nil || !strings.Contains(err.Error(), "needs an Average") {
		t.Error(err)
	}
}
