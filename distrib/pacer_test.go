package distrib_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib"
)

// TestVoluntaryTrafficKeepsToTheBudget, in any interval, with messages that are due in
// between, and a sender that comes early, late and often.
func TestVoluntaryTrafficKeepsToTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &distrib.LeakyBucket{
			Mbps:  float64(rapid.IntRange(1, 100).Draw(t, "Mbps")),
			Queue: rapid.IntRange(1, 5000).Draw(t, "queue"),
		}
		type sent struct {
			at    time.Duration
			bytes int
		}
		var voluntary []sent
		start := time.Unix(1, 0)
		var now time.Duration
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			at := start.Add(now)
			bytes, again := p.Budget(2, at)
			if bytes == 0 && again <= 0 {
				t.Fatal("nothing may go, and nobody says when")
			}
			switch n := rapid.IntRange(0, 4).Draw(t, "what"); {
			case n == 0:
				p.Sent(2, rapid.IntRange(1, 10_000).Draw(t, "due"), at)
			case bytes > 0:
				n := rapid.IntRange(1, bytes).Draw(t, "bytes")
				p.Sent(2, n, at)
				voluntary = append(voluntary, sent{now, n})
			}
			if rapid.Bool().Draw(t, "as told") {
				now += again
			} else {
				now += time.Duration(rapid.IntRange(0, 2_000_000).Draw(t, "ns"))
			}
		}
		for i, from := range voluntary {
			total := 0
			for _, s := range voluntary[i:] {
				total += s.bytes
				most := p.Mbps*1e6/8*(s.at-from.at).Seconds() + float64(p.Queue)
				if float64(total) > most+1e-6 {
					t.Fatalf("%d bytes in %v, %.1f may", total, s.at-from.at, most)
				}
			}
		}
	})
}

// TestBudgetIsUsed: who sends when told gets all of it.
func TestBudgetIsUsed(t *testing.T) {
	p := &distrib.LeakyBucket{Mbps: 80, Queue: 1000}
	now, total := time.Unix(0, 0), 0
	for now.Before(time.Unix(1, 0)) {
		bytes, again := p.Budget(0, now)
		if bytes > 0 {
			p.Sent(0, bytes, now)
			total += bytes
		}
		now = now.Add(again)
	}
	if total < 9_990_000 || total > 10_001_000 {
		t.Errorf("%d bytes in a second at 80 Mbit/s", total)
	}
}

func TestNoLimit(t *testing.T) {
	p := &distrib.LeakyBucket{}
	now := time.Unix(0, 0)
	p.Sent(0, 1e9, now)
	if bytes, _ := p.Budget(0, now); bytes != 100_000 {
		t.Errorf("%d bytes", bytes)
	}
}

// TestOveruseGuard: too much on the way stops what is voluntary until it has arrived.
func TestOveruseGuard(t *testing.T) {
	p := &distrib.LeakyBucket{Window: 2}
	now := time.Unix(0, 0)
	may := func() bool {
		bytes, again := p.Budget(0, now)
		if bytes == 0 && again <= 0 {
			t.Error("nobody says when to ask again")
		}
		return bytes > 0
	}
	for i := range 3 {
		if !may() {
			t.Errorf("message %d may not go", i)
		}
		p.Sent(0, 10, now)
	}
	if may() {
		t.Error("a fourth may go")
	}
	p.Acked(0)
	if !may() {
		t.Error("it may not go after one has arrived")
	}
}

// sortedBy are rows in a pacer's order.
func sortedBy(p *distrib.LeakyBucket, es []distrib.Entry, value []float32) []int32 {
	order := make([]*distrib.Entry, len(es))
	for i := range es {
		order[i] = &es[i]
	}
	of := func(r distrib.Ref) []float32 { return value[r.Row : r.Row+1] }
	slices.SortFunc(order, func(a, b *distrib.Entry) int {
		switch {
		case p.Better(a, b, of):
			return -1
		case p.Better(b, a, of):
			return 1
		}
		return 0
	})
	var rows []int32
	for _, e := range order {
		rows = append(rows, e.Ref.Row)
	}
	return rows
}

func TestOrders(t *testing.T) {
	value := []float32{100, 0, -0.5, 1}
	var es []distrib.Entry
	for row, d := range []float32{10, -3, 2, 1} {
		es = append(es, distrib.Entry{Ref: distrib.Ref{Row: int32(row), N: 1},
			U: distrib.Dense{d}})
	}
	es[3].U = distrib.Sparse{N: 1, Idx: []uint32{0}, Val: []float32{1}}
	for order, want := range map[distrib.Order][]int32{
		distrib.AbsMag:     {0, 1, 2, 3},
		distrib.RelMag:     {2, 1, 3, 0}, // 4, 3 for want of a value, 1, 0.1
		distrib.RoundRobin: {2, 3, 0, 1}, // after row 1
	} {
		p := &distrib.LeakyBucket{Order: order}
		p.Released(&es[1])
		if got := sortedBy(p, es, value); !slices.Equal(got, want) {
			t.Errorf("%v: rows %v, want %v", order, got, want)
		}
	}
}

// TestOrdersAreOrders: nothing is better than itself, ties go to the older, and of factors
// the matrix counts.
func TestOrdersAreOrders(t *testing.T) {
	of := func(distrib.Ref) []float32 { return []float32{1, 1, 1, 1} }
	u := distrib.Factored{R: 2, J: 2, K: 2, A: []float32{1, 0, -1, 0}, B: []float32{1, 1, 1, 1}}
	a := &distrib.Entry{Made: 1, U: u, Ref: distrib.Ref{N: 2}}
	b := &distrib.Entry{Made: 2, U: make(distrib.Dense, 4), Ref: distrib.Ref{N: 2}}
	for _, o := range []distrib.Order{distrib.AbsMag, distrib.RelMag, distrib.RoundRobin} {
		p := &distrib.LeakyBucket{Order: o}
		if p.Better(a, a, of) || !p.Better(a, b, of) || p.Better(b, a, of) {
			t.Errorf("%v is no order", o)
		}
	}
}

// TestRandomIsFair: over many messages each row is first about as often.
func TestRandomIsFair(t *testing.T) {
	p := &distrib.LeakyBucket{Order: distrib.Random, Seed: 3}
	es := make([]distrib.Entry, 4)
	for i := range es {
		es[i].Ref = distrib.Ref{Row: int32(i), N: 1}
	}
	first := make([]int, len(es))
	for range 4000 {
		rows := sortedBy(p, es, make([]float32, 4))
		if again := sortedBy(p, es, make([]float32, 4)); !slices.Equal(rows, again) {
			t.Fatal("the order changes while it is used")
		}
		first[rows[0]]++
		p.Sent(0, 1, time.Unix(0, 0))
	}
	for row, n := range first {
		if math.Abs(float64(n)-1000) > 120 { // four standard deviations
			t.Errorf("row %d is first %d times of 4000", row, n)
		}
	}
}

func TestOrderNames(t *testing.T) {
	for _, o := range []distrib.Order{distrib.Random, distrib.RoundRobin, distrib.AbsMag,
		distrib.RelMag} {
		if got, err := distrib.ParseOrder(o.String()); got != o || err != nil {
			t.Errorf("%v: %v, %v", o, got, err)
		}
	}
	const want = `no order "best": there are random, round-robin, absmag and relmag`
	if _, err := distrib.ParseOrder("best"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
