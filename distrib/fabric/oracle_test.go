package fabric

import (
	"math"
	"slices"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// oracle is the least time that a batch can take, of all orders in which links are reserved, with
// every update going to the server or to any aggregator: the integer program of section 10.1, by
// trying everything.
func oracle(b *Batch, n *Network) float64 {
	best := math.Inf(1)
	hops := b.groups() + 1
	to := make([]int, len(b.Updates))
	permutations(len(b.Updates), func(order []int) {
		for code := 0; ; code++ {
			rest := code
			for i := range to {
				to[i], rest = rest%hops, rest/hops
			}
			if rest > 0 {
				return
			}
			permutations(hops-1, func(sums []int) {
				best = min(best, b.take(n, order, to, sums, best))
			})
		}
	})
	return best
}

// take is how long one way to do it takes; no less than a limit if it gives up.
func (b *Batch) take(n *Network, order, to, sums []int, limit float64) (end float64) {
	m := n.mark()
	defer n.back(m)
	there, sizes := make([]float64, len(sums)), make([]float64, len(sums))
	for _, i := range order {
		u := &b.Updates[i]
		if to[i] == 0 {
			_, at := n.Reserve(u.From, b.Servers[0], 0, u.Bytes[0])
			end = max(end, at)
		} else {
			a := to[i] - 1
			_, at := n.Reserve(u.From, b.Aggregators[0][a], 0, u.Bytes[0])
			there[a], sizes[a] = max(there[a], at), max(sizes[a], u.Bytes[0])
		}
		if end >= limit {
			return end
		}
	}
	for _, a := range sums {
		if sizes[a] > 0 {
			_, at := n.Reserve(b.Aggregators[0][a], b.Servers[0], there[a], sizes[a])
			end = max(end, at)
		}
	}
	return end
}

// permutations calls a function with every order of the numbers below n.
func permutations(n int, do func([]int)) {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	var place func(int)
	place = func(k int) {
		if k == n {
			do(p)
			return
		}
		for i := k; i < n; i++ {
			p[k], p[i] = p[i], p[k]
			place(k + 1)
			p[k], p[i] = p[i], p[k]
		}
	}
	place(0)
}

// TestOracle: schedules of a few updates are not much longer than the shortest of all.
func TestOracle(t *testing.T) {
	var ratios []float64
	for seed := range uint64(longtest.Count(40, 1000)) {
		updates := 2 + int(seed%uint64(longtest.Count(3, 4)))
		b, n := drawn(seed, updates, int(seed%3), false)
		b.MaxDelay = -1
		least := oracle(&b, n.Clone())
		s, err := New(b, n)
		if err != nil {
			t.Fatal(err)
		}
		if s.End < least-1e-9 {
			t.Fatalf("seed %d: %v, and the least is %v", seed, s.End, least)
		}
		ratios = append(ratios, s.End/least)
	}
	slices.Sort(ratios)
	sum := 0.0
	for _, r := range ratios {
		sum += r
	}
	mean := sum / float64(len(ratios))
	t.Logf("of %d batches: mean %.3f, median %.3f, 90 %% %.3f, most %.3f times the least",
		len(ratios), mean, ratios[len(ratios)/2], ratios[len(ratios)*9/10], ratios[len(ratios)-1])
	if mean > 1.05 {
		t.Errorf("%.3f times the least on average", mean)
	}
}
