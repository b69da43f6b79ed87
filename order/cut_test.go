package order

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/pass"
)

// touched is what some operations touch, counted from nothing.
func touched(p *pass.Program, a *Account, ids []graph.NodeID) int64 {
	var aside, total int64
	seen := map[int32]bool{}
	for _, id := range ids {
		n := p.Graph.Node(id)
		if !a.Runs[id] {
			continue
		}
		aside = max(aside, a.Scratch[id]+a.Staged[id])
		for _, v := range a.Reads[id] {
			seen[v] = true
		}
		for i := range n.Out {
			seen[int32(p.ValueIndex(n.Value(i)))] = true
		}
	}
	for v := range seen {
		total += a.Bytes[v]
	}
	return total + aside
}

// over is what lives over a boundary before a position: made or fed before it, and read
// at it or later.
func over(p *pass.Program, a *Account, at int) int64 {
	var total int64
	before, after := map[int32]bool{}, map[int32]bool{}
	for pos, id := range p.Order {
		n := p.Graph.Node(id)
		for _, v := range a.Reads[id] {
			before[v] = before[v] || pos < at
			after[v] = after[v] || pos >= at
		}
		for i := range n.Out {
			if a.Runs[id] && pos < at {
				before[int32(p.ValueIndex(n.Value(i)))] = true
			}
		}
	}
	for v := range before {
		if before[v] && after[v] {
			total += a.Bytes[v]
		}
	}
	return total
}

// cost is what lives over the boundaries of the starts in a set, or the largest number
// if two neighbours do not fit.
func cost(p *pass.Program, a *Account, window int64, starts []int) int64 {
	var last, total int64
	for k, s := range starts {
		end := len(p.Order)
		if k+1 < len(starts) {
			end = starts[k+1]
		}
		now := touched(p, a, p.Order[s:end])
		if a.Fixed+last+now > window {
			return math.MaxInt64
		}
		last = now
		total += over(p, a, s)
	}
	return total
}

// TestCut: no other cut fits and has less over its boundaries, and where the pass finds
// none there is none.
func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := program(t, boxes(t, 9), places.Draw(t, "place"))
		run(t, p, Creation())
		a := NewAccount(p)
		window := a.Fixed + rapid.Int64Range(0, 3000).Draw(t, "window")
		want := int64(math.MaxInt64)
		for set := range 1 << (len(p.Order) - 1) {
			starts := []int{0}
			for i := 1; i < len(p.Order); i++ {
				if set>>(i-1)&1 == 1 {
					starts = append(starts, i)
				}
			}
			want = min(want, cost(p, a, window, starts))
		}
		err := Cut(window).Run(p)
		if err != nil {
			if want < math.MaxInt64 || !strings.Contains(err.Error(), "two partitions") {
				t.Fatalf("%v, but there is a cut of %d bytes", err, want)
			}
			return
		}
		run(t, p) // checks the tables
		var starts []int
		for i, id := range p.Order {
			if int(p.Part[id]) == len(starts) {
				starts = append(starts, i)
			}
		}
		if got := cost(p, a, window, starts); got != want {
			t.Fatalf("cut at %v: %d bytes, want %d", starts, got, want)
		}
	})
}

// TestCutLarge: many operations, in windows from too small to large enough for all.
func TestCutLarge(t *testing.T) {
	m := randgraph.Synthetic(3000)
	p := program(t, m, "host")
	run(t, p, Creation())
	parts := 0
	for window := int64(1 << 10); window < 1<<40; window *= 4 {
		err := Cut(window).Run(p)
		if err == nil {
			parts = p.Parts()
		} else if parts > 0 {
			t.Errorf("%v, in a larger window", err)
		}
	}
	if least := (len(p.Order) + longest - 1) / longest; parts < least || parts > 2*least {
		t.Errorf("%d partitions in the end, want %d or a few more", parts, least)
	}
}

// TestCutNothing: a program without operations has no partitions.
func TestCutNothing(t *testing.T) {
	p := pass.New(graph.New(), nil, nil)
	p.SetOrder(nil)
	p.Live = []bool{}
	if err := Cut(0).Run(p); err != nil || p.Parts() != 0 {
		t.Errorf("%d partitions, %v", p.Parts(), err)
	}
}
