package arena

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/plan/space"
)

// line is where most blocks are packed here.
var line = Of(space.Line)

func blocks(t *rapid.T) []Block {
	n := rapid.IntRange(1, 60).Draw(t, "blocks")
	out := make([]Block, n)
	for i := range out {
		from := rapid.IntRange(0, 50).Draw(t, "from")
		out[i] = Block{
			From: from, To: from + rapid.IntRange(0, 20).Draw(t, "length"),
			Bytes: rapid.Int64Range(1, 1000).Draw(t, "bytes"),
			Fixed: rapid.IntRange(0, 9).Draw(t, "fixed") == 0,
		}
	}
	return out
}

func check(t *rapid.T, bs []Block, offsets []int64, peak int64) {
	var high int64
	for i, a := range bs {
		if offsets[i]%int64(space.Line) != 0 {
			t.Fatalf("block %d at %d is not aligned", i, offsets[i])
		}
		high = max(high, offsets[i]+a.Bytes)
		for j, b := range bs[:i] {
			if meet(a, b) && a.Bytes > 0 && b.Bytes > 0 &&
				offsets[i] < offsets[j]+b.Bytes && offsets[j] < offsets[i]+a.Bytes {
				t.Fatalf("blocks %d %+v at %d and %d %+v at %d overlap", i, a, offsets[i], j, b,
					offsets[j])
			}
		}
	}
	if high != peak {
		t.Fatalf("peak is %d, reported %d", high, peak)
	}
}

// TestNoOverlap: blocks that are live at once never share an address, whatever
// the rule, and the reported peak is the real one and never below the load.
func TestNoOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bs := blocks(t)
		p := line.Pack(bs)
		check(t, bs, p.Offsets, p.Peak)
		if p.Peak < p.Load-int64(space.Line)+1 {
			t.Fatalf("peak %d is below the load %d", p.Peak, p.Load)
		}
		for i := range bs { // each rule on its own
			bs[i].Fixed = false
		}
		size := line.sectioned(bs).inOrder(bySize(bs), len(bs), 0)
		check(t, bs, size, line.peak(bs, size))
		byT := line.byTime(bs, timeline(bs), 0)
		check(t, bs, byT, line.peak(bs, byT))
	})
}

// TestListsAndShelf: with lists of what meets, blocks are placed where they are on a shelf,
// in any order, those without bytes too; and that is the lowest place at which none that is
// placed before meets them.
func TestListsAndShelf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bs := blocks(t)
		for i := range bs {
			bs[i].Bytes -= min(bs[i].Bytes, rapid.Int64Range(0, 400).Draw(t, "less"))
		}
		_, pairs := line.measure(bs, timeline(bs))
		order, base := rapid.Permutation(bySize(bs)).Draw(t, "order"), line.packFixed(bs)
		lists := line.newStrip(bs, pairs).inOrder(order, len(bs), base)
		shelf := line.sectioned(bs).inOrder(order, len(bs), base)
		for n, i := range order {
			if lists[i] != shelf[i] {
				t.Fatalf("%+v is at %d with lists, at %d on a shelf", bs[i], lists[i], shelf[i])
			}
			from := slices.Clone(shelf)
			for _, j := range order[:n] {
				from[j] -= base
			}
			if low := rest(bs, from, order[:n], i); bs[i].Bytes > 0 && low != shelf[i]-base {
				t.Fatalf("%+v is at %d on a shelf, and fits at %d", bs[i], shelf[i]-base, low)
			}
		}
	})
}

// TestFixedFirst: fixed blocks come first, in order, whatever else there is.
func TestFixedFirst(t *testing.T) {
	p := line.Pack([]Block{{0, 3, 100, false}, {0, 0, 10, true}, {1, 2, 50, false},
		{0, 0, 70, true}})
	if p.Offsets[1] != 0 || p.Offsets[3] != 64 {
		t.Fatalf("fixed blocks at %d and %d", p.Offsets[1], p.Offsets[3])
	}
}

// TestReachesLoad: a chain of equal blocks, each live with its neighbour, fits
// in two of them.
func TestReachesLoad(t *testing.T) {
	var bs []Block
	for i := range 100 {
		bs = append(bs, Block{From: i, To: i + 1, Bytes: 128})
	}
	if p := line.Pack(bs); p.Peak != 256 {
		t.Fatalf("peak %d, want 256", p.Peak)
	}
}

// TestSizeBeatsTime: where best fit in order of time leaves a hole, placing the
// largest first does not.
func TestSizeBeatsTime(t *testing.T) {
	bs := []Block{
		{From: 0, To: 9, Bytes: 64}, {From: 0, To: 1, Bytes: 64}, {From: 1, To: 9, Bytes: 64},
		{From: 3, To: 9, Bytes: 128},
	}
	if p := line.Pack(bs); p.Peak != p.Load {
		t.Fatalf("peak %d, load %d by %s", p.Peak, p.Load, p.Rule)
	}
}

func BenchmarkPack(b *testing.B) {
	var bs []Block
	for i := range 100_000 {
		bs = append(bs, Block{From: i, To: i + 1 + i%37, Bytes: int64(64 * (1 + i*7919%101))})
	}
	for b.Loop() {
		line.Pack(bs)
	}
}

// TestWide: by a wider alignment blocks are packed as others are that are so much smaller; and
// blocks of any size have addresses that are multiples of it, and take no more than they need.
func TestWide(t *testing.T) {
	wide := Of(space.Wide)
	const times = int64(space.Wide / space.Line)
	rapid.Check(t, func(t *rapid.T) {
		bs := blocks(t)
		large := slices.Clone(bs)
		for i := range large {
			large[i].Bytes *= times
		}
		small := line.Pack(bs)
		for i, off := range wide.Pack(large).Offsets {
			if off != times*small.Offsets[i] {
				t.Fatalf("block %d is at %d, and a part of it at %d", i, off, small.Offsets[i])
			}
		}
		load := wide.Pack(bs).Load
		limit := rapid.Int64Range(wide.Less(load), 2*load).Draw(t, "limit")
		packed := []Packing{wide.Pack(bs), wide.PackWithin(bs, limit, 1000)}
		if p, ok := wide.Ring(bs, limit); ok {
			packed = append(packed, p)
		}
		for _, p := range packed {
			check(t, bs, p.Offsets, p.Peak)
			for i, off := range p.Offsets {
				if off%int64(space.Wide) != 0 || p.Peak < wide.Less(load) {
					t.Fatalf("%s: block %d at %d of %d", p.Rule, i, off, p.Peak)
				}
			}
		}
	})
}
