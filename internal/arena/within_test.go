package arena

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/plan/space"
)

// rectangle is a range of times and of lines of [space.Line] bytes, ends not included.
type rectangle struct {
	from, to int
	lo, hi   int64
}

// cutStrip cuts a strip into at least n blocks, so that a packing exists that has no
// hole at all: at random across time or across addresses, or as a pinwheel, which no
// series of cuts all the way through makes. The blocks are shuffled.
func cutStrip(rng *rand.Rand, n, times int, lines int64) []Block {
	all := []rectangle{{0, times, 0, lines}}
	for tries := 0; len(all) < n && tries < 50*n; tries++ {
		k := rng.IntN(len(all))
		for range 2 { // large ones first, mostly
			if j := rng.IntN(len(all)); area(all[j]) > area(all[k]) {
				k = j
			}
		}
		if parts := cutOnce(rng, all[k]); parts != nil {
			all = slices.Concat(all[:k], all[k+1:], parts)
		}
	}
	blocks := make([]Block, len(all))
	for i, j := range rng.Perm(len(all)) {
		r := all[j]
		blocks[i] = Block{From: r.from, To: r.to - 1, Bytes: int64(space.Line) * (r.hi - r.lo)}
	}
	return blocks
}

func area(r rectangle) int64 { return int64(r.to-r.from) * (r.hi - r.lo) }

// cutOnce cuts a rectangle in two or in five, or returns nothing if it is too small
// for what chance says.
func cutOnce(rng *rand.Rand, r rectangle) []rectangle {
	width, height := r.to-r.from, r.hi-r.lo
	switch kind := rng.IntN(8); {
	case kind == 0 && width > 2 && height > 2:
		a := r.from + 1 + rng.IntN(width-2)
		b := a + 1 + rng.IntN(r.to-a-1)
		x := r.lo + 1 + rng.Int64N(height-2)
		y := x + 1 + rng.Int64N(r.hi-x-1)
		return []rectangle{{r.from, b, r.lo, x}, {b, r.to, r.lo, y}, {a, r.to, y, r.hi},
			{r.from, a, x, r.hi}, {a, b, x, y}}
	case kind < 5 && height > 1:
		x := r.lo + 1 + rng.Int64N(height-1)
		return []rectangle{{r.from, r.to, r.lo, x}, {r.from, r.to, x, r.hi}}
	case kind >= 5 && width > 1:
		a := r.from + 1 + rng.IntN(width-1)
		return []rectangle{{r.from, a, r.lo, r.hi}, {a, r.to, r.lo, r.hi}}
	}
	return nil
}

// TestWithin: a packing within a limit is a packing, no worse than Pack's, the same
// each time, and Pack's own where that keeps to the limit.
func TestWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bs := blocks(t)
		p := line.Pack(bs)
		limit := rapid.Int64Range(-1, 2*p.Peak).Draw(t, "limit")
		effort := rapid.Int64Range(-1, 1<<14).Draw(t, "effort")
		w := line.PackWithin(bs, limit, effort)
		check(t, bs, w.Offsets, w.Peak)
		switch again := line.PackWithin(slices.Clone(bs), limit, effort); {
		case w.Peak > p.Peak || w.Load != p.Load:
			t.Fatalf("peak %d, load %d, but Pack's are %d, %d", w.Peak, w.Load, p.Peak, p.Load)
		case p.Peak <= limit && fmt.Sprint(p) != fmt.Sprint(w):
			t.Fatalf("%+v is within %d, but not the result: %+v", p, limit, w)
		case fmt.Sprint(again) != fmt.Sprint(w):
			t.Fatalf("%+v, then %+v", w, again)
		}
		for i, b := range bs {
			if b.Fixed && p.Offsets[i] != w.Offsets[i] {
				t.Fatalf("fixed block %d is at %d and %d", i, p.Offsets[i], w.Offsets[i])
			}
		}
	})
}

// TestWithinIsOptimal: of few blocks a packing with a limit that none keeps to is as
// low as exhaustive search finds, almost always.
func TestWithinIsOptimal(t *testing.T) {
	sets, optimal := 0, 0
	for round := range longtest.Count(1, 20) {
		longtest.Check(t, round, func(t *rapid.T) {
			bs := few(t)
			p, best := line.PackWithin(bs, 0, 20_000), optimum(bs)
			check(t, bs, p.Offsets, p.Peak)
			if line.Up(p.Peak) < best {
				t.Fatalf("peak %d by %s, the optimum is %d", p.Peak, p.Rule, best)
			}
			sets++
			if p.Peak == best {
				optimal++
			}
		})
	}
	if optimal*100 < sets*99 {
		t.Errorf("%d of %d packings are optimal", optimal, sets)
	}
}

// TestFullStrips: strips that are full from end to end, cut into blocks, are packed
// again with little more than there was.
func TestFullStrips(t *testing.T) {
	longtest.Skip(t)
	for seed := range uint64(longtest.Count(3, 30)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n := 100 + rng.IntN(400)
		bs := cutStrip(rng, n, n/2, 4096)
		p := line.PackWithin(bs, 4096*int64(space.Line), 20_000_000)
		if p.Load != 4096*int64(space.Line) {
			t.Fatalf("load %d of a full strip of %d", p.Load, 4096*int64(space.Line))
		}
		if p.Peak*100 > p.Load*118 {
			t.Errorf("%d blocks: peak is %.3f of the load by %s", len(bs),
				float64(p.Peak)/float64(p.Load), p.Rule)
		}
	}
}

// TestNotSearchable: what is too large for a search is packed all the same.
func TestNotSearchable(t *testing.T) {
	bs := []Block{{0, 9, 1 << 60, false}, {0, 1, 64, false}, {1, 9, 64, false},
		{3, 9, 1 << 60, false}}
	for _, limit := range []int64{math.MinInt64, 0, math.MaxInt64} {
		a, b := line.Pack(bs), line.PackWithin(bs, limit, 1<<20)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%+v, and %+v within %d", a, b, limit)
		}
	}
	if p := line.PackWithin(nil, 0, 9); p.Peak != 0 || p.Load != 0 {
		t.Errorf("nothing: %+v", p)
	}
}

// TestStripKnowsWhatMeets: the lists of a strip are what a plain comparison finds.
func TestStripKnowsWhatMeets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bs := slices.DeleteFunc(blocks(t), func(b Block) bool { return b.Fixed })
		_, pairs := line.measure(bs, timeline(bs))
		s := line.newStrip(bs, pairs)
		if int64(len(s.before)) != pairs || s.load != plainLoad(bs) {
			t.Fatalf("%d pairs, load %d, want %d, %d", len(s.before), s.load, pairs, plainLoad(bs))
		}
		for k := range int32(len(s.ids)) {
			got := slices.Clone(s.earlier(k))
			for j := k + 1; j < s.later(k); j++ {
				got = append(got, j)
			}
			var want []int32
			for j := range int32(len(s.ids)) {
				if j != k && meet(bs[s.ids[j]], bs[s.ids[k]]) {
					want = append(want, j)
				}
			}
			if !slices.Equal(got, want) || s.degree(k) != int64(len(want)) {
				t.Fatalf("block %d meets %v, want %v", k, got, want)
			}
		}
	})
}

func BenchmarkFullStrip(b *testing.B) {
	for _, n := range []int{500, 2_000, 6_000} {
		bs := cutStrip(rand.New(rand.NewPCG(7, 7)), n, n/2, 1<<16)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				p := line.PackWithin(bs, 1<<16*int64(space.Line), 20_000_000)
				b.ReportMetric(float64(p.Peak)/float64(p.Load), "peak/load")
			}
		})
	}
}
