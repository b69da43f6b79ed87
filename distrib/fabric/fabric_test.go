package fabric

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawn is a batch of updates on hosts with links of a rate, or of rates that are drawn, as in the
// paper's section 7.4: half as many hosts as updates, deadlines between 1 and twice their number.
func drawn(seed uint64, updates, aggregators int, even bool) (Batch, *Network) {
	r := rand.New(rand.NewPCG(seed, 7))
	hosts := max(updates/2, 2) + 1
	up, down := make([]Profile, hosts), make([]Profile, hosts)
	rate := func() float64 {
		if even {
			return 1.25e9
		}
		return []float64{1.25e8, 3.125e8, 4.125e8, 6.25e8, 1.25e9}[r.IntN(5)]
	}
	for i := range hosts {
		up[i], down[i] = Profile{{0, rate()}}, Profile{{0, rate()}}
		if !even && r.IntN(3) == 0 {
			up[i] = append(up[i], Step{r.Float64(), rate()})
		}
	}
	server := Host(hosts - 1)
	up[server], down[server] = Profile{{0, 1.25e9}}, Profile{{0, 1.25e9}}
	b := Batch{Servers: []Host{server}, Version: int64(2 * updates), MaxDelay: int64(2 * updates)}
	for i := range updates {
		b.Updates = append(b.Updates, Update{ID: ID(i + 1), From: Host(r.IntN(hosts - 1)),
			Bytes: []float64{1e8}, Norm: r.Float64(), Version: 1 + r.Int64N(int64(2*updates))})
	}
	if aggregators > 0 {
		all := make([]Host, aggregators)
		for i, h := range r.Perm(hosts - 1)[:min(aggregators, hosts-1)] {
			all[i] = Host(h)
		}
		b.Aggregators = [][]Host{all[:min(aggregators, hosts-1)]}
	}
	return b, NewNetwork(up, down)
}

// TestFigure4: 30 MB over a path whose rate changes arrive when the area under it is 30 MB, and
// what is left is what was not used.
func TestFigure4(t *testing.T) {
	up := Profile{{0, 10}, {2, 2}, {4, 5}, {6, 10}}
	n := NewNetwork([]Profile{up, {{0, 3}}}, []Profile{{{0, 1}}, {{0, 8}}})
	// 8·2 + 2·2 = 20 by second 4, then 5 a second
	if at := n.Finish(0, 1, 0, 30); at != 6 {
		t.Errorf("30 arrive at %v, want 6", at)
	}
	start, end := n.Reserve(0, 1, 1, 10)
	if start != 1 || end != 2.0+2.0/2 {
		t.Errorf("from %v to %v, want 1 to 3", start, end)
	}
	if want := (Profile{{0, 10}, {1, 2}, {2, 0}, {3, 2}, {4, 5}, {6, 10}}); !slices.Equal(n.up[0],
		want) {
		t.Errorf("up %v, want %v", n.up[0], want)
	}
	if want := (Profile{{0, 8}, {1, 0}, {2, 6}, {3, 8}}); !slices.Equal(n.down[1], want) {
		t.Errorf("down %v, want %v", n.down[1], want)
	}
	if at := n.Finish(1, 1, 3, 10); at != 3 {
		t.Errorf("to itself at %v", at)
	}
	dead := NewNetwork([]Profile{nil, {{0, 1}}}, []Profile{{{0, 1}}, {{0, 1}, {5, 0}}})
	if at := dead.Finish(0, 1, 0, 1); !math.IsInf(at, 1) {
		t.Errorf("without a link at %v", at)
	}
	if at := dead.Finish(1, 1, 0, 1); at != 0 {
		t.Errorf("at %v", at)
	}
	if at := dead.Finish(1, 0, 3, 4); at != 7 {
		t.Errorf("at %v, want 7", at)
	}
}

func BenchmarkNew(b *testing.B) {
	for _, even := range []bool{true, false} {
		for _, n := range []int{10, 100, 500, 1000, 2000} {
			b.Run(fmt.Sprintf("%d/even=%t", n, even), func(b *testing.B) {
				batch, net := drawn(1, n, 8, even)
				for b.Loop() {
					if _, err := New(batch, net.Clone()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// TestLackingFromBefore: what a replica lacks from before goes to it, also where all that is new is
// dropped and there is no server's transfer to be delayed.
func TestLackingFromBefore(t *testing.T) {
	c := Config{Servers: []Host{0}, Replicas: []Host{1}, MaxDelay: 2,
		Bound: Bound{Updates: 1}, Lacking: []Update{
			{ID: 7, From: 2, Bytes: []float64{100}}, {ID: 8, From: 2, Bytes: []float64{100}}}}
	late := []Update{{ID: 9, From: 3, Bytes: []float64{100}}}
	s, err := NewScheduler(c, 10).Schedule(late, Even(4, 100), false)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Replica; len(s.Dropped) != 1 || len(r.Updates) < 1 || r.Updates[0] != 7 ||
		r.Punted > 1 {
		t.Errorf("%+v, with %+v", s, r)
	}
}
