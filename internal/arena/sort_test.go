package arena

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSortKeys: keys are sorted as numbers, however many there are, whatever bits their offsets
// share and however close together most of them are.
func TestSortKeys(t *testing.T) {
	var s sorter
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 4*fewKeys).Draw(t, "keys")
		most := uint64(1) << rapid.IntRange(0, 63-indexBits).Draw(t, "bits")
		base := rapid.Uint64Range(0, most-1).Draw(t, "base")
		span := rapid.Uint64Range(0, most-1-base).Draw(t, "span")
		var keys []uint64
		for i := range n {
			at := base + rapid.Uint64Range(0, span).Draw(t, "offset")
			if i%8 > 0 {
				at = base + at%(span/512+1)
			}
			keys = append(keys, at<<indexBits|uint64(i))
		}
		want := slices.Sorted(slices.Values(keys))
		got := s.sort(keys)
		if !slices.Equal(got, want) {
			t.Fatalf("%x, want %x", got, want)
		}
		if len(got) > 0 && len(s.spare) > 0 && &got[0] == &s.spare[0] {
			t.Fatal("the sorted keys are in the room for the next")
		}
	})
}
