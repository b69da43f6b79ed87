package distrib

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSSPWaitsForTheSlowest compares the condition with its definition.
func TestSSPWaitsForTheSlowest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen := rapid.SliceOfN(rapid.Int64Range(0, 9), 1, 5).Draw(t, "seen")
		s := rapid.IntRange(0, 4).Draw(t, "s")
		at := Clock(rapid.Int64Range(0, 12).Draw(t, "at"))
		var peers []NodeID
		for i := range seen {
			peers = append(peers, NodeID(i))
		}
		of := func(q NodeID) Clock { return Clock(seen[q]) }
		want := Clock(slices.Min(seen)) >= at-Clock(s)
		if got := (SSP{S: s}).MayRead(at, of, peers); got != want {
			t.Fatalf("SSP %d in clock %d having seen %v: %v", s, at, seen, got)
		}
		if s == 0 && (BSP{}).MayRead(at, of, peers) != want {
			t.Fatalf("BSP in clock %d having seen %v: not %v", at, seen, want)
		}
	})
}

// TestNeeds: the clock that a reader asks for is the least that is enough.
func TestNeeds(t *testing.T) {
	peers := []NodeID{0, 1}
	for at := range Clock(20) {
		for s := range 6 {
			if got, want := needs(SSP{S: s}, at, peers), max(at-Clock(s), 0); got != want {
				t.Errorf("SSP %d in clock %d needs %d, want %d", s, at, got, want)
			}
		}
		if got := needs(Async{}, at, peers); got != 0 {
			t.Errorf("Async in clock %d needs %d", at, got)
		}
	}
}

// TestDueIsWhatReadersNeed: an entry is due exactly if a reader at the worker's next clock
// plus staleness could miss it.
func TestDueIsWhatReadersNeed(t *testing.T) {
	for s := range 4 {
		for made := range Clock(8) {
			for now := made; now < 12; now++ {
				want := needs(SSP{S: s}, now+1, []NodeID{0}) > made
				if got := (SSP{S: s}).Due(&Entry{Made: made}, now); got != want {
					t.Errorf("SSP %d: entry of clock %d due at %d: %v", s, made, now, got)
				}
			}
		}
	}
}

// TestVectorClock compares the clock with a map.
func TestVectorClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.Int32Range(0, 9), 1, 5,
			func(i int32) int32 { return i }).Draw(t, "ids")
		var nodes []NodeID
		model := map[NodeID]Clock{}
		for _, id := range ids {
			nodes = append(nodes, NodeID(id))
			model[NodeID(id)] = 2
		}
		v := newVectorClock(nodes, 2)
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			q := NodeID(rapid.Int32Range(0, 9).Draw(t, "q"))
			c := Clock(rapid.Int64Range(0, 9).Draw(t, "c"))
			before := v.min()
			moved := v.advance(q, c)
			if _, ok := model[q]; ok {
				model[q] = max(model[q], c)
			}
			least := endOfTime
			for id, c := range model {
				least = min(least, c)
				if v.of(id) != c {
					t.Fatalf("clock of %d is %d, want %d", id, v.of(id), c)
				}
			}
			if v.min() != least || moved != (least > before) {
				t.Fatalf("min %d (moved: %v), want %d after %d", v.min(), moved, least, before)
			}
		}
		for _, q := range v.behind(nil, 5) {
			if model[q] >= 5 {
				t.Fatalf("%d is at %d and not behind 5", q, model[q])
			}
		}
	})
}
