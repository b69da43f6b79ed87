package order

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPrune: what is kept is what sorting all of them twice would keep, in that order.
func TestPrune(t *testing.T) {
	few := rapid.Int64Range(0, 3)
	rapid.Check(t, func(r *rapid.T) {
		width := rapid.IntRange(1, 5).Draw(r, "width")
		sets := width + rapid.IntRange(-1, 3).Draw(r, "more sets")
		all := make([]partial, rapid.IntRange(1, 60).Draw(r, "partials"))
		for i := range all {
			all[i] = partial{done: uint64(rapid.IntRange(0, sets).Draw(r, "done")),
				live: few.Draw(r, "live"), peak: few.Draw(r, "peak"), area: few.Draw(r, "area"),
				last: int8(few.Draw(r, "last")), from: int32(i)}
		}
		want := slices.Clone(all)
		slices.SortFunc(want, func(x, y partial) int {
			return cmp.Or(cmp.Compare(x.done, y.done), x.better(y))
		})
		want = slices.CompactFunc(want, func(x, y partial) bool { return x.done == y.done })
		if len(want) > width {
			slices.SortFunc(want, partial.better)
			want = want[:width]
		}
		if got := prune(all, width); !slices.Equal(got, want) {
			r.Fatalf("%v is kept; want %v", got, want)
		}
	})
}
