package fabric

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNothingIsDroppedInVain: where links are alike, and there is an order in which all updates are
// in time, all are kept: as many with a last position up to k as there are positions, for all k.
func TestNothingIsDroppedInVain(t *testing.T) {
	full := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		b := Batch{Servers: []Host{8}, Version: 20, MaxDelay: 20}
		possible := true
		for i := range 8 {
			b.Updates = append(b.Updates, Update{ID: ID(i), From: Host(i), Bytes: []float64{1},
				Version: int64(r.IntN(8))})
		}
		for k := range 8 {
			early := 0
			for _, u := range b.Updates {
				if u.Version+1 <= int64(k) {
					early++
				}
			}
			possible = possible && early <= k
		}
		s, err := New(b, Even(9, 1))
		if err != nil {
			t.Fatal(err)
		}
		if possible {
			full++
			if len(s.Dropped) > 0 {
				t.Errorf("seed %d: %v are dropped of %+v", seed, s.Dropped, b.Updates)
			}
		} else if len(s.Dropped) == 0 {
			t.Errorf("seed %d: none is dropped of %+v", seed, b.Updates)
		}
	}
	if full < 10 || full > 290 {
		t.Errorf("%d of 300 are possible", full)
	}
}

// TestDistance: a server with momentum and a replica that lacks its last updates are no further
// apart than the bound says, and as far where all updates point one way.
func TestDistance(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		b := Bound{Momentum: []float64{0, 0.5, 0.9}[seed%3]}
		aligned := seed%2 == 0
		updates, lacking := 2+r.IntN(20), r.IntN(8)
		lacking = min(lacking, updates)
		var w, v, replica [3]float64
		h := 0.0
		var norms []float64
		for i := range updates {
			u := [3]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
			if aligned {
				u = [3]float64{r.Float64(), 0, 0}
			}
			if i == updates-lacking {
				replica = w
			}
			if norm := length(u); i < updates-lacking {
				h = b.step(h, norm)
			} else {
				norms = append(norms, norm)
			}
			for k := range u {
				v[k] = b.Momentum*v[k] + u[k]
				w[k] += v[k]
			}
		}
		if lacking == 0 {
			replica = w
		}
		apart := length([3]float64{w[0] - replica[0], w[1] - replica[1], w[2] - replica[2]})
		bound := b.Distance(h, norms)
		if apart > bound+1e-9 || aligned && math.Abs(apart-bound) > 1e-9 {
			t.Errorf("seed %d: %v apart, and the bound is %v", seed, apart, bound)
		}
	}
}

func length(v [3]float64) float64 { return math.Sqrt(v[0]*v[0] + v[1]*v[1] + v[2]*v[2]) }

// TestAdvance: a network at a later time has what it had then, and a new rate leaves what is
// reserved so.
func TestAdvance(t *testing.T) {
	n := NewNetwork([]Profile{{{0, 4}, {3, 2}}, {{0, 9}}}, []Profile{{{0, 9}}, {{0, 9}}})
	n.Reserve(0, 1, 0, 4)
	n.Advance(0.5)
	if want := (Profile{{0, 0}, {0.5, 4}, {2.5, 2}}); !slices.Equal(n.up[0], want) {
		t.Errorf("up %v, want %v", n.up[0], want)
	}
	n.Rate(0, 5, 9)
	if want := (Profile{{0, 3}, {0.5, 7}, {2.5, 5}}); !slices.Equal(n.up[0], want) {
		t.Errorf("up %v, want %v", n.up[0], want)
	}
	if at := n.Finish(0, 1, 0, 1.5); at != 0.5 {
		t.Errorf("at %v", at)
	}
	n.Rate(0, 1, 9)
	if want := (Profile{{0, 0}, {0.5, 3}, {2.5, 1}}); !slices.Equal(n.up[0], want) {
		t.Errorf("up %v, want %v", n.up[0], want)
	}
}

// TestBadBatches: a batch that makes no sense is refused.
func TestBadBatches(t *testing.T) {
	one := []Update{{ID: 1, From: 0, Bytes: []float64{1}}}
	for name, b := range map[string]Batch{
		"no server":                {Updates: one},
		"a server that is nowhere": {Updates: one, Servers: []Host{3}},
		"an update twice":          {Updates: append(one, one...), Servers: []Host{1}},
		"two components":           {Updates: one, Servers: []Host{1, 2}},
		"aggregators of two": {Updates: one, Servers: []Host{1},
			Aggregators: make([][]Host, 2)},
		"an aggregator nowhere": {Updates: one, Servers: []Host{1}, Aggregators: [][]Host{{-1}}},
		"a worker nowhere": {Updates: []Update{{From: 9, Bytes: []float64{1}}},
			Servers: []Host{1}},
	} {
		if s, err := New(b, Even(3, 1)); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for _, b := range []Batch{{Servers: []Host{1}},
		{Servers: []Host{1}, Aggregators: [][]Host{{0}}}} {
		if s, err := New(b, Even(3, 1)); err != nil || len(s.Transfers) > 0 {
			t.Errorf("no updates: %+v, %v", s, err)
		}
	}
}
