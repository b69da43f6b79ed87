package arena

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSortKeys: keys are sorted as numbers, however many there are and whatever bits
// their offsets share.
func TestSortKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 4*fewKeys).Draw(t, "keys")
		most := uint64(1) << rapid.IntRange(0, 63-indexBits).Draw(t, "bits")
		base := rapid.Uint64Range(0, most-1).Draw(t, "base")
		span := rapid.Uint64Range(0, most-1-base).Draw(t, "span")
		var keys []uint64
		for i := range n {
			at := base + rapid.Uint64Range(0, span).Draw(t, "offset")
			keys = append(keys, at<<indexBits|uint64(i))
		}
		want := slices.Sorted(slices.Values(keys))
		got, room := sortKeys(keys, nil)
		if !slices.Equal(got, want) {
			t.Fatalf("%x, want %x", got, want)
		}
		if len(got) > 0 && len(room) > 0 && &got[0] == &room[0] {
			t.Fatal("the sorted keys are in the room for the next")
		}
	})
}
