package arena

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/longtest"
)

// TestBuilderIsExact: with any key, building finds a packing at the optimum that
// exhaustive search knows, and that there is none below it.
func TestBuilderIsExact(t *testing.T) {
	for round := range longtest.Count(1, 20) {
		longtest.Check(t, round, func(t *rapid.T) {
			bs := few(t)
			best := optimum(bs)
			_, pairs := line.measure(bs, timeline(bs))
			s := line.newStrip(bs, pairs)
			key := keys[rapid.IntRange(0, len(keys)-1).Draw(t, "key")]
			at := newBuilder(s, best, math.MaxInt64, key)
			if v := at.run(); v != solved {
				t.Fatalf("verdict %d at the optimum of %d", v, best)
			}
			offsets := make([]int64, len(bs))
			for k, i := range s.ids {
				offsets[i] = at.at[k]
			}
			check(t, bs, offsets, line.peak(bs, offsets))
			if best > 0 && newBuilder(s, best-1, math.MaxInt64, key).run() != failed {
				t.Fatalf("a packing below the optimum of %d", best)
			}
		})
	}
}

// TestBuilderUndoes: a search that fails or is cut short leaves nothing behind in what
// is summed up, and one that is cut short says so.
func TestBuilderUndoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bs := few(t)
		_, pairs := line.measure(bs, timeline(bs))
		s := line.newStrip(bs, pairs)
		b := newBuilder(s, s.load-1, math.MaxInt64, keys[0])
		if len(s.ids) > 0 && b.run() != failed {
			t.Fatalf("a packing below the load of %d", s.load)
		}
		fresh := newBuilder(s, s.load, 1, keys[0])
		for k := range b.at {
			if b.at[k] != out || b.low[k] != 0 {
				t.Fatalf("block %d is at %d, and would rest at %d", k, b.at[k], b.low[k])
			}
		}
		for n := range b.rest {
			if b.rest[n] != fresh.rest[n] || b.cross[n] != fresh.cross[n] || b.floor[n] != 0 {
				t.Fatalf("section %d: %d, %d, %d", n, b.rest[n], b.cross[n], b.floor[n])
			}
		}
		if len(s.ids) > 0 && fresh.run() != spent {
			t.Fatal("one look is enough")
		}
	})
}
