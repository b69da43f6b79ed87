package distrib_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
)

// TestEqualVersionsAreEqual is G8: whatever the delays, two workers that have the same
// versions of all owners' rows have the same bits, a thousand clocks long, with filters,
// trees and momentum.
func TestEqualVersionsAreEqual(t *testing.T) {
	for name, plan := range map[string]func() distrib.Plan{
		"plain": func() distrib.Plan {
			return distrib.Plan{Down: distrib.Deltas, Consistency: distrib.SSP{S: 2},
				Topology: &distrib.Shards{Block: 1}}
		},
		"filtered, streamed": func() distrib.Plan {
			return distrib.Plan{Down: distrib.Deltas, Consistency: distrib.SSP{S: 3},
				Up: distrib.DVF{Low: 2}, DownF: distrib.DVF{Low: 2},
				Topology: &distrib.Shards{Block: 1, Tree: &distrib.Trees{Degree: 1}},
				Rule:     &distrib.Momentum{Mu: 0.9}}
		},
		"rounded": func() distrib.Plan {
			return distrib.Plan{Down: distrib.Deltas, Consistency: distrib.BSP{},
				Topology: &distrib.Shards{Block: 1},
				Up:       distrib.Rounding{As: distrib.BF16},
				DownF:    distrib.Rounding{As: distrib.F16},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				equalVersions(t, plan, longtest.Count(100, 1000))
			})
		})
	}
}

func equalVersions(t *testing.T, plan func() distrib.Plan, clocks int) {
	const nodes, rows, cols = 3, 6, 4
	var mu sync.Mutex
	states := map[string]uint64{}
	same := 0
	o := memnet.Options{Seed: 5, Latency: time.Millisecond, Jitter: 40 * time.Millisecond}
	engines, net := cluster(t, nodes, o, plan, nil)
	each(engines, func(w int, s distrib.Synchronizer) {
		ctx, check := context.Background(), must(t)
		rng := rand.New(rand.NewPCG(7, uint64(w)))
		p := zeros("w", rows, cols)
		check(nil, s.Attach(p))
		for range clocks {
			versions := ""
			for r := range rows {
				v, err := s.Pull(ctx, distrib.Ref{Row: int32(r), N: 1})
				check(v, err)
				key := fmt.Sprint(r, " ", v)
				versions += key
				mu.Lock()
				if old, ok := states[key]; ok && old != digest(p.Data[r*cols:(r+1)*cols]) {
					t.Errorf("row %d at version %d has two values", r, v)
				} else if ok {
					same++
				}
				states[key] = digest(p.Data[r*cols : (r+1)*cols])
				mu.Unlock()
			}
			u := make(distrib.Dense, rows*cols)
			for i := range u {
				u[i] = float32(rng.NormFloat64())
			}
			time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
			check(nil, s.Push(ctx, distrib.Ref{}, u))
			check(s.Tick(ctx))
		}
		check(nil, s.Close())
	})
	finish(engines, net)
	if same < clocks*rows/2 {
		t.Errorf("only %d times had two workers a row's same version", same)
	}
	for _, e := range engines {
		if err := e.Audit().Check(); err != nil {
			t.Error(err)
		}
	}
}

func digest(x []float32) uint64 {
	h := fnv.New64a()
	for _, v := range x {
		b := math.Float32bits(v)
		h.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)})
	}
	return h.Sum64()
}

// TestOrderedRunsAreEqual: with updates folded in by clock and node, every run ends with
// the same bits, whatever the delays. Without, this test has to fail to be worth anything.
func TestOrderedRunsAreEqual(t *testing.T) {
	ends := map[bool]map[uint64]bool{true: {}, false: {}}
	for _, ordered := range []bool{true, false} {
		for seed := range uint64(12) {
			synctest.Test(t, func(t *testing.T) {
				o := memnet.Options{Seed: seed, Jitter: 20 * time.Millisecond}
				engines, net := cluster(t, 4, o, bsp,
					func(c *distrib.Config) { c.Ordered = ordered })
				each(engines, func(w int, s distrib.Synchronizer) {
					ctx, check := context.Background(), must(t)
					rng := rand.New(rand.NewPCG(3, uint64(w)))
					p := zeros("w", 3, 5)
					check(nil, s.Attach(p))
					for range 10 {
						u := make(distrib.Dense, 15)
						for i := range u {
							u[i] = float32(rng.NormFloat64())
						}
						check(nil, s.Push(ctx, distrib.Ref{}, u))
						check(s.Tick(ctx))
						check(s.Pull(ctx, distrib.Ref{}))
					}
					if w == 2 {
						ends[ordered][digest(p.Data)] = true
					}
					check(nil, s.Close())
				})
				finish(engines, net)
			})
		}
	}
	if len(ends[true]) != 1 || len(ends[false]) == 1 {
		t.Errorf("%d ends with order, %d without", len(ends[true]), len(ends[false]))
	}
}

// TestSumsQueued: over random schedules, with links of which some are slow, no more of sums waits
// than the bound, and at worst most of that.
func TestSumsQueued(t *testing.T) {
	worst := map[string]float64{}
	for i := range longtest.Count(60, 12000) {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		s := schedule{seed: uint64(i), nodes: 2 + rng.IntN(5), perNode: 1, stale: rng.IntN(4),
			clocks: 4 + rng.IntN(20), pushOnce: rng.IntN(4) > 0, foreign: true}
		s.pause = time.Duration(1 + rng.IntN(int(20*time.Millisecond)))
		s.net = memnet.Options{Seed: s.seed, Bps: 1e6, Latency: time.Millisecond,
			Jitter: time.Duration(rng.IntN(int(5 * time.Millisecond)))}
		for node := range s.nodes {
			if rng.IntN(3) == 0 {
				rate := 1e4 * float64(1+rng.IntN(20))
				s.net.Trace = append(s.net.Trace, memnet.Rate{Node: distrib.NodeID(node),
					Up: rate, Down: rate})
			}
		}
		kind, topology := "owners", &distrib.Shards{Block: 1}
		if rng.IntN(2) == 0 {
			kind, topology.Tree = "trees", &distrib.Trees{Degree: 1 + rng.IntN(3), Depth: 6}
		}
		if wait := time.Duration(rng.IntN(int(100 * time.Millisecond))); topology.Tree == nil {
			s.change = func(c *distrib.Config) { c.Transport = tardy{c.Transport, wait} }
		}
		var filter distrib.Filter
		if rng.IntN(3) == 0 {
			filter, s.late = distrib.TopK{Frac: rng.Float64()}, true
		}
		s.plan = func() distrib.Plan {
			own := *topology
			return distrib.Plan{Consistency: distrib.SSP{S: s.stale}, Topology: &own, DownF: filter,
				Down: distrib.Deltas}
		}
		s.queued = func(peak, bound int64) {
			worst[kind] = max(worst[kind], float64(peak)/float64(max(bound, 1)))
		}
		synctest.Test(t, func(t *testing.T) { s.run(t) })
		if t.Failed() {
			t.Fatalf("schedule %d: %+v", i, s)
		}
	}
	for kind, share := range worst {
		if t.Logf("%s: %.2f of the bound", kind, share); share < 0.5 {
			t.Errorf("%s: %.2f of the bound was used at most, want half", kind, share)
		}
	}
}

// tardy is a transport that lets go of messages late.
type tardy struct {
	distrib.Transport
	by time.Duration
}

// Send has Done called later.
func (t tardy) Send(to distrib.NodeID, m *distrib.Msg) {
	done := m.Done
	m.Done = func(err error) { time.AfterFunc(t.by, func() { done(err) }) }
	t.Transport.Send(to, m)
}
