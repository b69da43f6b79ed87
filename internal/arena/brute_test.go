package arena

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/plan/space"
)

// few draws sets that exhaustive search can pack.
func few(t *rapid.T) []Block {
	n := rapid.IntRange(1, 6).Draw(t, "blocks")
	out := make([]Block, n)
	for i := range out {
		from := rapid.IntRange(0, 8).Draw(t, "from")
		out[i] = Block{From: from, To: from + rapid.IntRange(0, 6).Draw(t, "length"),
			Bytes: int64(space.Line) * rapid.Int64Range(0, 6).Draw(t, "lines")}
	}
	return out
}

func meet(a, b Block) bool {
	return a.Fixed || b.Fixed || a.From <= b.To && b.From <= a.To
}

// optimum is the lowest peak of any packing: some order of placing every block as
// low as it goes finds it, since in an optimal packing all blocks can be let down,
// the lowest first, until each rests on another or on the ground.
func optimum(blocks []Block) int64 {
	best := int64(math.MaxInt64)
	offsets := make([]int64, len(blocks))
	var place func(placed []int, high int64)
	place = func(placed []int, high int64) {
		if high >= best {
			return
		}
		if len(placed) == len(blocks) {
			best = high
			return
		}
		for i, b := range blocks {
			if slices.Contains(placed, i) {
				continue
			}
			offsets[i] = rest(blocks, offsets, placed, i)
			place(append(slices.Clone(placed), i), max(high, offsets[i]+line.Up(b.Bytes)))
		}
	}
	place(nil, 0)
	return best
}

// rest is where block i comes to rest: the ground or the top of a placed block,
// whichever is the lowest at which it fits.
func rest(blocks []Block, offsets []int64, placed []int, i int) int64 {
	candidates := []int64{0}
	for _, j := range placed {
		candidates = append(candidates, offsets[j]+line.Up(blocks[j].Bytes))
	}
	slices.Sort(candidates)
	for _, at := range candidates {
		if !slices.ContainsFunc(placed, func(j int) bool {
			return meet(blocks[i], blocks[j]) && at < offsets[j]+line.Up(blocks[j].Bytes) &&
				offsets[j] < at+line.Up(blocks[i].Bytes)
		}) {
			return at
		}
	}
	panic("there is room on top of everything")
}

// plainLoad is the most bytes live at one time, counted at every time there is.
func plainLoad(blocks []Block) int64 {
	var most int64
	for _, at := range blocks {
		var live int64
		for _, b := range blocks {
			if b.From <= at.From && at.From <= b.To {
				live += line.Up(b.Bytes)
			}
		}
		most = max(most, live)
	}
	return most
}

// TestNearTheOptimum: of few blocks the packing is never below the load, which is
// what a plain count says, nor below the best that exhaustive search finds, and at
// most half above that; mostly it is that.
func TestNearTheOptimum(t *testing.T) {
	sets, optimal := 0, 0
	for round := range longtest.Count(1, 20) {
		longtest.Check(t, round, func(t *rapid.T) {
			bs := few(t)
			p, best := line.Pack(bs), optimum(bs)
			check(t, bs, p.Offsets, p.Peak)
			if load := plainLoad(bs); p.Load != load || best < load {
				t.Fatalf("load %d, want %d; the optimum is %d", p.Load, load, best)
			}
			if line.Up(p.Peak) < best || 2*p.Peak > 3*best {
				t.Fatalf("peak %d by %s, the optimum is %d", p.Peak, p.Rule, best)
			}
			sets++
			if p.Peak == best {
				optimal++
			}
		})
	}
	if optimal*10 < sets*9 {
		t.Errorf("%d of %d packings are optimal", optimal, sets)
	}
}

// TestFreeList: what is taken never overlaps, is as low as best fit says, and
// after everything is given back all of it is one gap.
func TestFreeList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const base = 3 * int64(space.Line)
		free, taken, top := newFreeList(base), map[int64]int64{}, int64(base)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if len(taken) > 0 && rapid.Bool().Draw(t, "give") {
				starts := make([]int64, 0, len(taken))
				for lo := range taken {
					starts = append(starts, lo)
				}
				slices.Sort(starts)
				lo := rapid.SampledFrom(starts).Draw(t, "which")
				free.give(lo, taken[lo])
				delete(taken, lo)
				continue
			}
			size := int64(space.Line) * rapid.Int64Range(1, 9).Draw(t, "size")
			lo, gap := free.take(size), bestGap(taken, base, top, size)
			if top = max(top, lo+size); lo != gap {
				t.Fatalf("%d bytes at %d, best fit is at %d", size, lo, gap)
			}
			for at, n := range taken {
				if lo < at+n && at < lo+size {
					t.Fatalf("%d bytes at %d overlap %d bytes at %d", size, lo, n, at)
				}
			}
			taken[lo] = size
		}
		for lo, n := range taken {
			free.give(lo, n)
		}
		if n := free.byOffset.Len(); n != 1 || free.bySize.Len() != 1 {
			t.Fatalf("%d gaps of nothing in use", n)
		}
	})
}

// bestGap is the lowest of the smallest gaps below the top that hold so many bytes,
// or else where the memory that is free up to the top and beyond it begins.
func bestGap(taken map[int64]int64, base, top, size int64) int64 {
	starts := []int64{}
	for lo := range taken {
		starts = append(starts, lo)
	}
	slices.Sort(starts)
	best, least, at := int64(-1), int64(math.MaxInt64), base
	for _, lo := range append(starts, top) {
		if gap := lo - at; gap >= size && gap < least {
			best, least = at, gap
		}
		if lo < top {
			at = lo + taken[lo]
		}
	}
	if best < 0 {
		return at
	}
	return best
}
