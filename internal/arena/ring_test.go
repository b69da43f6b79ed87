package arena

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRing: blocks on a ring never share an address while both are live, and keep to the limit;
// with room for all of them none is given an address that another had, and below the load there
// is no ring.
func TestRing(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		bs := blocks(t)
		for i := range bs {
			bs[i].Bytes -= min(bs[i].Bytes, rapid.Int64Range(0, 200).Draw(t, "less"))
		}
		load := line.Pack(bs).Load
		limit := rapid.Int64Range(load, 4*load).Draw(t, "limit")
		if p, ok := line.Ring(bs, limit); ok {
			found++
			check(t, bs, p.Offsets, p.Peak)
			if p.Peak > limit || p.Load != load {
				t.Fatalf("peak %d and load %d of %d within %d", p.Peak, p.Load, load, limit)
			}
		}
		if _, ok := line.Ring(bs, load-1); ok && load > 0 {
			t.Fatalf("a ring of %d with a load of %d", load-1, load)
		}
		all := apart(bs)
		p, ok := line.Ring(bs, all)
		if !ok {
			t.Fatalf("no ring of %d, which all have together", all)
		}
		for i := range bs {
			bs[i].From, bs[i].To = 0, 100
		}
		check(t, bs, p.Offsets, p.Peak)
	})
	if found == 0 {
		t.Error("no ring between the load and four times as much")
	}
}

// apart is the bytes of all blocks together.
func apart(bs []Block) int64 {
	var sum int64
	for _, b := range bs {
		sum += line.Up(b.Bytes)
	}
	return sum
}

// TestRingGoesRound: what is free the longest is taken first, though the lowest gap would do, and
// a gap that it ends in is taken from there on.
func TestRingGoesRound(t *testing.T) {
	bs := []Block{
		{From: 0, To: 0, Bytes: 64}, {From: 1, To: 1, Bytes: 64}, {From: 2, To: 5, Bytes: 64},
		{From: 3, To: 3, Bytes: 64}, {From: 4, To: 4, Bytes: 128}, {From: 5, To: 5, Bytes: 64},
	}
	want := []int64{0, 64, 128, 192, 0, 192}
	if p, ok := line.Ring(bs, 256); !ok || !slices.Equal(p.Offsets, want) {
		t.Errorf("offsets %v, %v; want %v", p.Offsets, ok, want)
	}
}
