package distrib_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// hall is where ranks meet to add up: a group, in memory.
type hall struct {
	mu   sync.Mutex
	n    int
	in   int
	sum  []float32
	full chan struct{}
}

type seat struct {
	*hall
	rank int
}

func (s seat) Rank() int                                               { return s.rank }
func (s seat) Size() int                                               { return s.n }
func (s seat) Send(context.Context, int, uint64, []byte) error         { panic("not used") }
func (s seat) Recv(_ context.Context, _ int, _ uint64, _ []byte) error { panic("not used") }

// allReduce adds up exactly, so that the order does not matter.
func allReduce(_ context.Context, g distrib.Group, x []float32) error {
	h := g.(seat).hall
	h.mu.Lock()
	if h.in == 0 {
		h.sum, h.full = make([]float32, len(x)), make(chan struct{})
	}
	for i, v := range x {
		h.sum[i] += v
	}
	sum, full := h.sum, h.full
	if h.in++; h.in == h.n {
		h.in = 0
		close(full)
	}
	h.mu.Unlock()
	<-full
	copy(x, sum)
	return nil
}

// meetings runs workers under plans with a barrier, and returns what each reads after
// each clock.
func meetings(t *testing.T, plan func() distrib.Plan, perNode, clocks int,
	delta func(w, c int) float32) [][][]float32 {
	const nodes = 3
	seen := make([][][]float32, nodes*perNode)
	synctest.Test(t, func(t *testing.T) {
		h := &hall{n: nodes}
		engines, net := cluster(t, nodes, memnet.Options{Jitter: 20 * time.Millisecond}, plan,
			func(c *distrib.Config) {
				c.Group, c.Workers = seat{h, int(c.View.Self)}, perNode
			})
		each(engines, func(w int, s distrib.Synchronizer) {
			ctx, check := context.Background(), must(t)
			p := zeros("w", 2, 2)
			check(nil, s.Attach(p))
			for c := range clocks {
				time.Sleep(time.Duration(1+w*7%5) * time.Millisecond)
				d := delta(w, c)
				check(nil, s.Push(ctx, distrib.Ref{}, distrib.Dense{d, d, d, d}))
				check(s.Tick(ctx))
				time.Sleep(time.Second) // so that nobody reads what is of a later clock
				check(s.Pull(ctx, distrib.Ref{}))
				seen[w] = append(seen[w], append([]float32(nil), p.Data...))
				time.Sleep(time.Second)
			}
			check(nil, s.Close())
		})
		finish(engines, net)
		for _, e := range engines {
			must(t)(nil, e.Audit().Check())
		}
	})
	return seen
}

// TestOnTheirOwn: between barriers a worker reads what it has pushed itself, and nothing else.
func TestOnTheirOwn(t *testing.T) {
	const every = 4
	seen := meetings(t, func() distrib.Plan {
		return distrib.Plan{Topology: &distrib.Local{},
			Every: []distrib.Periodic{distrib.Drained(distrib.Average(every, allReduce))}}
	}, 1, 8, func(w, c int) float32 { return float32(1 + w + c%2) })
	at := make([]float32, len(seen))
	for c := range 8 {
		var mean float32
		for w := range at {
			at[w] += float32(1 + w + c%2)
			mean += at[w] / float32(len(at))
		}
		for w := range at {
			if c%every == every-1 {
				at[w] = mean
			}
			if got := seen[w][c][3]; math.Abs(float64(got-at[w])) > 1e-5 {
				t.Errorf("worker %d reads %v after clock %d, want %v", w, got, c, at[w])
			}
		}
	}
}

// TestSumIsAllReduce: what all push is in every replica after the clocks that say so.
func TestSumIsAllReduce(t *testing.T) {
	for _, perNode := range []int{1, 2} {
		seen := meetings(t, func() distrib.Plan {
			return distrib.Plan{Topology: &distrib.Local{},
				Every: []distrib.Periodic{distrib.Sum(2, allReduce)}}
		}, perNode, 6, func(w, c int) float32 { return float32(1 + w + 10*c) })
		var sum float32
		for c := range 6 {
			for w := range seen {
				sum += float32(1 + w + 10*c)
				_ = w
			}
			if c%2 == 0 {
				continue
			}
			for w := range seen {
				if got := seen[w][c][3]; got != sum {
					t.Errorf("%d per node: worker %d reads %v after clock %d, want %v", perNode, w,
						got, c, sum)
				}
			}
		}
	}
}

// TestAverage: replicas that exchange updates late are equal after a barrier, and hold
// everything once.
func TestAverage(t *testing.T) {
	for name, top := range map[string]func() distrib.Topology{
		"all":       func() distrib.Topology { return &distrib.All{} },
		"ring":      func() distrib.Topology { return &distrib.Ring{} },
		"multicast": func() distrib.Topology { return &distrib.RandomMulticast{Q: 1} },
	} {
		seen := meetings(t, func() distrib.Plan {
			return distrib.Plan{Topology: top(), Consistency: distrib.SSP{S: 5, Lazy: true},
				Every: []distrib.Periodic{distrib.Average(4, allReduce)}}
		}, 1, 8, func(w, c int) float32 { return float32(3 * (1 + w)) })
		for w := range seen {
			for _, c := range []int{3, 7} {
				got, want := seen[w][c][0], float32(18*(c+1))
				if got < want-1e-3 || got > want+1e-3 {
					t.Errorf("%s: worker %d reads %v after clock %d, want %v", name, w, got, c,
						want)
				}
			}
		}
	}
}

// TestElasticAveraging compares with the two lines that define it.
func TestElasticAveraging(t *testing.T) {
	const alpha, beta = 0.25, 0.5
	delta := func(w, c int) float32 { return float32((w + 1) * (c%3 - 1) * 8) }
	seen := meetings(t, func() distrib.Plan {
		return distrib.Plan{Topology: &distrib.Local{},
			Every: []distrib.Periodic{distrib.Own(), distrib.Elastic(1, alpha, beta, allReduce)}}
	}, 1, 9, delta)
	var x [3]float64
	centre, begun := 0.0, false
	for c := range 9 {
		mean := 0.0
		for w := range x {
			x[w] += float64(delta(w, c))
			mean += x[w] / 3
		}
		if !begun {
			centre, begun = mean, true
		}
		before := centre
		centre += beta * (mean - before)
		for w := range x {
			x[w] -= alpha * (x[w] - before)
			if got := float64(seen[w][c][1]); got < x[w]-1e-3 || got > x[w]+1e-3 {
				t.Errorf("worker %d after clock %d: %v, want %v", w, c, got, x[w])
			}
		}
	}
}
