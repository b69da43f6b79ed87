package arena

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

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
		if offsets[i]%Align != 0 {
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
		p := Pack(bs)
		check(t, bs, p.Offsets, p.Peak)
		if p.Peak < p.Load-Align+1 {
			t.Fatalf("peak %d is below the load %d", p.Peak, p.Load)
		}
		for i := range bs { // each rule on its own
			bs[i].Fixed = false
		}
		size := sectioned(bs).inOrder(bySize(bs), len(bs), 0)
		check(t, bs, size, peak(bs, size))
		byT := byTime(bs, timeline(bs), 0)
		check(t, bs, byT, peak(bs, byT))
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
		_, pairs := measure(bs, timeline(bs))
		order, base := rapid.Permutation(bySize(bs)).Draw(t, "order"), packFixed(bs)
		lists := newStrip(bs, pairs).inOrder(order, len(bs), base)
		shelf := sectioned(bs).inOrder(order, len(bs), base)
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
	p := Pack([]Block{{0, 3, 100, false}, {0, 0, 10, true}, {1, 2, 50, false}, {0, 0, 70, true}})
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
	if p := Pack(bs); p.Peak != 256 {
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
	if p := Pack(bs); p.Peak != p.Load {
		t.Fatalf("peak %d, load %d by %s", p.Peak, p.Load, p.Rule)
	}
}

func BenchmarkPack(b *testing.B) {
	var bs []Block
	for i := range 100_000 {
		bs = append(bs, Block{From: i, To: i + 1 + i%37, Bytes: int64(64 * (1 + i*7919%101))})
	}
	for b.Loop() {
		Pack(bs)
	}
}
