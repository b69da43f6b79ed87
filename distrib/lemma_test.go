package distrib_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
)

// lemma is n workers under Parameter Flow's plan, whose updates are normal numbers in d elements.
type lemma struct {
	seed      uint64
	n, d, s   int
	delta     float32
	clocks    int
	pushed    func(w, c int) distrib.Dense
	different int // readings that are not exactly those
}

func newLemma(seed uint64) *lemma {
	rng := rand.New(rand.NewPCG(seed, 41))
	l := &lemma{seed: seed, n: 2 + rng.IntN(3), d: 24, s: rng.IntN(4), clocks: 12,
		delta: float32(0.2 + rng.Float64())}
	l.pushed = func(w, c int) distrib.Dense {
		rng := rand.New(rand.NewPCG(seed, uint64(w)<<32|uint64(c)))
		u := make(distrib.Dense, l.d)
		for i := range u {
			u[i] = float32(rng.NormFloat64())
		}
		return u
	}
	return l
}

// bound is the lemmas': n+1 filters keep back an element each, at most the bound of a clock; and
// at most s clocks more of each worker may be in what is read.
func (l *lemma) bound(delta float64, c int) float64 {
	bound := float64(l.n+1) * delta * math.Sqrt(float64(l.d))
	for w := range l.n {
		for k := c - l.s; k < c+l.s; k++ {
			if k >= 0 {
				bound += l.pushed(w, k).Norm()
			}
		}
	}
	return bound
}

// far is how far a reading in a clock is from all updates that are stamped less than c-s.
func (l *lemma) far(data []float32, c int) float64 {
	want := make([]float64, l.d)
	for w := range l.n {
		for k := range c - l.s {
			for i, v := range l.pushed(w, k) {
				want[i] += float64(v)
			}
		}
	}
	sum := 0.0
	for i, v := range data {
		sum += (float64(v) - want[i]) * (float64(v) - want[i])
	}
	return math.Sqrt(sum)
}

// TestLemmas is Parameter Flow's lemmas 1, without staleness, and 2: what is read under its filters
// is no farther from what it would be without them than (n+1) delta sqrt(d), and with staleness
// than that and the updates that may be there or not.
func TestLemmas(t *testing.T) {
	readings, different := 0, 0
	for seed := range uint64(longtest.Count(30, 2000)) {
		l := newLemma(seed)
		synctest.Test(t, func(t *testing.T) { l.run(t) })
		if t.Failed() {
			t.Fatalf("seed %d: %d workers, s=%d, delta %v", seed, l.n, l.s, l.delta)
		}
		readings, different = readings+l.n*l.clocks, different+l.different
	}
	if different < readings/2 {
		t.Errorf("filters kept nothing back in %d of %d readings", readings-different, readings)
	}
}

func (l *lemma) run(t *testing.T) {
	f := distrib.DVF{Low: l.delta, Rate: func(distrib.Clock) float32 { return 1 }}
	plan := func() distrib.Plan {
		return distrib.Plan{Down: distrib.Deltas, Up: f, DownF: f,
			Consistency: distrib.SSP{S: l.s},
			Topology:    &distrib.Shards{Block: 1, Tree: &distrib.Trees{}}}
	}
	engines, net := cluster(t, l.n, memnet.Options{Seed: l.seed, Latency: time.Millisecond,
		Jitter: 20 * time.Millisecond}, plan, nil)
	far := make([]int, l.n)
	each(engines, func(w int, s distrib.Synchronizer) {
		ctx, check := context.Background(), must(t)
		p := zeros("w", 4, l.d/4)
		check(nil, s.Attach(p))
		for c := range l.clocks {
			check(s.Pull(ctx, distrib.Ref{}))
			off, most := l.far(p.Data, c), l.bound(float64(l.delta), c)
			if off > most+1e-4 {
				t.Errorf("worker %d in clock %d is %v off, at most %v", w, c, off, most)
			}
			if off > 1e-3 {
				far[w]++
			}
			time.Sleep(time.Duration(1+w*7) * time.Millisecond)
			check(nil, s.Push(ctx, distrib.Ref{}, l.pushed(w, c)))
			check(s.Tick(ctx))
		}
		check(nil, s.Close())
	})
	finish(engines, net)
	for _, n := range far {
		l.different += n
	}
}
