package fit

import (
	"errors"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// TestLargest: whatever the needs are, the answer fits and one more does not, no
// number is asked for twice, and there are not many probes.
func TestLargest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 1<<24).Draw(t, "limit")
		most := rapid.IntRange(0, limit).Draw(t, "most")
		start := rapid.IntRange(-3, 2*limit).Draw(t, "start")
		stride := rapid.IntRange(-1, 2*limit).Draw(t, "stride")
		load := loads(t, most)
		asked := map[int]bool{}
		a, err := Largest(start, stride, limit, func(n int) (Outcome, error) {
			if asked[n] || n < 1 || n > limit {
				t.Fatalf("%d is asked for (again: %t), of 1 to %d", n, asked[n], limit)
			}
			asked[n] = true
			return Outcome{n <= most, load(n)}, nil
		})
		if err != nil || a.Most != most || a.Probes != len(asked) {
			t.Fatalf("%+v, %v, want %d in %d probes", a, err, most, len(asked))
		}
		if want := most + 1; most < limit && a.Next != want {
			t.Fatalf("%+v, want next %d", a, want)
		}
		if most == limit && a.Next != 0 {
			t.Fatalf("%+v, but nothing is refused", a)
		}
		doublings := bits.Len(uint(max(most, min(start, limit), min(stride, limit))))
		if a.Probes > 3*doublings+4 {
			t.Fatalf("%d probes for %d from %d", a.Probes, most, start)
		}
	})
}

// loads draws how a probe's load depends on its number: not known, a line, one that
// says nothing below the limit, or anything.
func loads(t *rapid.T, most int) func(n int) float64 {
	edge := float64(most) + rapid.Float64Range(0, 0.99).Draw(t, "edge")
	base := rapid.Float64Range(0, 0.9).Draw(t, "base")
	straight := func(n int) float64 {
		if edge == 0 {
			return 1 + float64(n)
		}
		return base + (1-base)*float64(n)/edge
	}
	return []func(int) float64{
		func(int) float64 { return 0 },
		straight,
		func(n int) float64 { return max(1, straight(n)) },
		func(n int) float64 { return float64(n*7919%1000) / 500 },
	}[rapid.IntRange(0, 3).Draw(t, "loads")]
}

// TestLines: what is needed in proportion, and a fixed part, take a few probes.
func TestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 1<<20).Draw(t, "most")
		start := rapid.IntRange(1, 1<<10).Draw(t, "start")
		base := rapid.Float64Range(0, 0.5).Draw(t, "base")
		edge := float64(most) + 0.5
		a, err := Largest(start, start, 1<<24, func(n int) (Outcome, error) {
			return Outcome{n <= most, base + (1-base)*float64(n)/edge}, nil
		})
		if err != nil || a.Most != most || a.Probes > 14 {
			t.Fatalf("%+v, %v, want %d", a, err, most)
		}
	})
}

// TestExpected: two probes confirm an answer that is expected, and few more one that
// is near.
func TestExpected(t *testing.T) {
	for off, want := range []int{2, 5, 5, 5, 7, 7, 7, 7, 7} {
		a, err := Largest(1000, 1, 1<<24, func(n int) (Outcome, error) {
			return Outcome{Fits: n <= 1000+off}, nil
		})
		if err != nil || a.Most != 1000+off || a.Probes > want {
			t.Errorf("%d off: %+v, %v, want %d probes", off, a, err, want)
		}
	}
}

// TestUneven: where something larger fits again, the answer is nevertheless one
// that fits while one more does not.
func TestUneven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fits := rapid.SliceOfN(rapid.Bool(), 1, 40).Draw(t, "fits")
		a, err := Largest(rapid.IntRange(1, 40).Draw(t, "start"), 1, len(fits),
			func(n int) (Outcome, error) { return Outcome{Fits: fits[n-1]}, nil })
		if err != nil {
			t.Fatal(err)
		}
		if a.Most > 0 && !fits[a.Most-1] || a.Most < len(fits) && fits[a.Most] {
			t.Fatalf("%+v of %v", a, fits)
		}
	})
}

// TestFailure: what was known when a probe failed.
func TestFailure(t *testing.T) {
	failure := errors.New("no")
	for after, want := range []Answer{
		{},
		{Most: 4, Probes: 1},
		{Most: 8, Probes: 2},
		{Most: 8, Next: 20, Probes: 3},
		{Most: 8, Next: 14, Probes: 4},
		{Most: 8, Next: 11, Probes: 5},
		{Most: 9, Next: 11, Probes: 6},
	} {
		left := after
		a, err := Largest(4, 4, 100, func(n int) (Outcome, error) {
			if left--; left < 0 {
				return Outcome{}, failure
			}
			return Outcome{Fits: n <= 10}, nil
		})
		if !errors.Is(err, failure) || a != want {
			t.Errorf("after %d probes %+v, %v, want %+v", after, a, err, want)
		}
	}
}
