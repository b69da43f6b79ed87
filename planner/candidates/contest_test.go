package candidates

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/planner/machine"
)

// pricesOf are those of a machine whose copies take from operations, or do not.
func pricesOf(shared float64) machine.Model {
	profile, err := machine.Named(machine.TitanX)
	if err != nil {
		panic(err)
	}
	return (&machine.Local{Profile: profile, Shared: shared}).For("", nil)
}

// TestContest: whatever order ways come in, the one is taken that copies the least of those that
// take no more than half a percent longer than the fastest, then the one that needs the least, then
// the fastest, and then the first; where nothing is shared, of those that are as fast as the
// fastest. What takes its limit or more is never taken.
func TestContest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shared := rapid.Bool().Draw(t, "shared")
		ways := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Weight {
			return Weight{time.Duration(rapid.Int64Range(9_900, 10_100).Draw(t, "time")),
				rapid.Int64Range(0, 3).Draw(t, "copied"), rapid.Int64Range(0, 3).Draw(t, "bytes")}
		}), 1, 20).Draw(t, "ways")
		c := NewContest[int](pricesOf(map[bool]float64{true: 0.5}[shared]))
		if c.Any() || c.Limit() != Never || c.Best() != 0 {
			t.Fatal("something takes part in the beginning")
		}
		for i, w := range ways {
			over := w.Time >= c.Limit()
			if c.Add(w, i); over && c.Best() == i && (shared || w.Time > ways[0].Time) {
				t.Fatalf("%v is taken beyond the limit", w)
			}
		}
		want, got := taken(ways, shared), c.Best()
		if got != want {
			t.Fatalf("of %v %d is taken, not %d", ways, got, want)
		}
		least := rapid.Int64Range(9_800, 10_200).Draw(t, "least")
		if near := c.Beats(time.Duration(least)); near != (percents(ways, least, shared)) {
			t.Fatalf("%v beat %d: %t", ways, least, near)
		}
	})
}

// taken is the rule in a plain loop.
func taken(ways []Weight, shared bool) int {
	fastest := ways[0].Time
	for _, w := range ways {
		fastest = min(fastest, w.Time)
	}
	best := -1
	for i, w := range ways {
		if w.Time > fastest && (!shared || 200*(w.Time-fastest) > fastest) {
			continue
		}
		if best < 0 || before(w, ways[best]) {
			best = i
		}
	}
	return best
}

func before(a, b Weight) bool {
	if a.Copied != b.Copied {
		return a.Copied < b.Copied
	}
	if a.Bytes != b.Bytes {
		return a.Bytes < b.Bytes
	}
	return a.Time < b.Time
}

// percents reports whether some way takes so long, or half a percent more where that counts.
func percents(ways []Weight, least int64, shared bool) bool {
	for _, w := range ways {
		over := int64(w.Time) - least
		if over <= 0 || shared && 200*over <= least {
			return true
		}
	}
	return false
}

// TestSharedCopiesAreFew: where copies take from operations, plans copy less than where they take
// nothing and nobody waits for one, by a quarter at least.
func TestSharedCopiesAreFew(t *testing.T) {
	m := randgraph.Synthetic(400)
	profile, err := machine.Named(machine.TitanX)
	if err != nil {
		t.Fatal(err)
	}
	profile.In, profile.Out = 1e12, 1e12 // nobody waits for a copy
	least, most := span(t, m.Graph, Options{Policy: Auto}, []Target{training(m)})
	var copied [2]int64
	for _, part := range []int64{1, 2, 3} {
		for i, shared := range []float64{0, 0.5} {
			o := Options{Policy: Auto, Effort: 300, DeviceBytes: least + (most-least)*part/4,
				Machine: &machine.Local{Profile: profile, Shared: shared}}
			r := compiled(t, m.Graph, training(m), o)
			traffic := r.Plan.Traffic()
			copied[i] += traffic.In() + traffic.Out()
		}
	}
	if copied[1] > copied[0]*3/4 {
		t.Errorf("%d bytes are copied, %d where that costs nothing", copied[1], copied[0])
	}
}
