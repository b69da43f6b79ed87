package spill

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLoad holds the tree against a list.
func TestLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "events")
		event := rapid.Int32Range(0, int32(n-1))
		changes := make([]int64, n)
		plain := make([]int64, n)
		var sum int64
		for i := range changes {
			changes[i] = rapid.Int64Range(-50, 50).Draw(t, "change")
			sum += changes[i]
			plain[i] = sum
		}
		l := newLoad(changes)
		for range rapid.IntRange(0, 20).Draw(t, "rounds") {
			from, to := event.Draw(t, "from"), event.Draw(t, "to")
			if from > to {
				if l.within(from, to) > -1<<40 {
					t.Fatal("no event has a load")
				}
				from, to = to, from
			}
			bytes := rapid.Int64Range(-100, 100).Draw(t, "bytes")
			l.add(from, to, bytes)
			for i := from; i <= to; i++ {
				plain[i] += bytes
			}
			from, to = event.Draw(t, "first"), event.Draw(t, "last")
			if from <= to && l.within(from, to) != slices.Max(plain[from:to+1]) {
				t.Fatalf("%d to %d: %d, want the most of %v", from, to, l.within(from, to),
					plain[from:to+1])
			}
			if want := slices.Max(plain); n == l.size && l.peak() != want {
				t.Fatalf("the peak is %d, want %d", l.peak(), want)
			}
		}
	})
}
