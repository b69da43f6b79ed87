package vec

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPhiloxKnownAnswers checks the vectors that the authors publish with
// Random123 (kat_vectors, philox4x32 10).
func TestPhiloxKnownAnswers(t *testing.T) {
	const ones = 0xffffffff
	for _, c := range []struct {
		counter    [4]uint32
		key0, key1 uint32
		want       [4]uint32
	}{
		{[4]uint32{}, 0, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{ones, ones, ones, ones}, ones, ones,
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0,
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := philox4x32(c.counter, c.key0, c.key1); got != c.want {
			t.Errorf("counter %#x: %#x, want %#x", c.counter, got, c.want)
		}
	}
}

// TestPhiloxStreamDoesNotDependOnTheSplit draws pieces of a stream, also across
// the ends of 32-bit and 64-bit counters.
func TestPhiloxStreamDoesNotDependOnTheSplit(t *testing.T) {
	starts := []uint64{0, 1<<34 - 70, 1<<32 - 70, math.MaxUint64 - 70, 12345678901234567}
	for _, k := range available() {
		rapid.Check(t, func(t *rapid.T) {
			key := rapid.Uint64().Draw(t, "key")
			start := rapid.SampledFrom(starts).Draw(t, "start")
			n := rapid.IntRange(0, 300).Draw(t, "n")
			want := make([]uint32, n)
			for i := range want {
				e := start + uint64(i)
				want[i] = philoxBlock(key, e/4)[e%4]
			}
			got := make([]uint32, n)
			Philox(got, key, start)
			if !slices.Equal(got, want) {
				t.Fatal("Philox differs from its definition")
			}
			aligned := min(n, int(-start%4))
			k.philox(got[aligned:], key, start+uint64(aligned))
			if !slices.Equal(got, want) {
				t.Fatalf("%s differs from the definition", k.name)
			}
			cut := rapid.IntRange(0, n).Draw(t, "cut")
			Philox(got[cut:], key, start+uint64(cut))
			Philox(got[:cut], key, start)
			if !slices.Equal(got, want) {
				t.Fatal("a split stream differs")
			}
		})
	}
}

// TestDropoutFollowsTheStream checks every element against its word, and that a
// split changes nothing.
func TestDropoutFollowsTheStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		keep := rapid.Float32Range(0.001, 0.999).Draw(t, "keep")
		key, offset := rapid.Uint64().Draw(t, "key"), rapid.Uint64().Draw(t, "offset")
		x, words := arguments(10, n, 0, true)[0], make([]uint32, n)
		Philox(words, key, offset)
		want := make([]float32, n)
		for i, w := range words {
			if float64(w) < float64(keep)*(1<<32) {
				want[i] = x[i] * (1 / keep)
			}
		}
		got, cut := make([]float32, n), rapid.IntRange(0, n).Draw(t, "cut")
		Dropout(got[:cut], x[:cut], keep, key, offset)
		Dropout(got[cut:], x[cut:], keep, key, offset+uint64(cut))
		if d := differ(got, want); d != "" {
			t.Fatal(d)
		}
		Dropout(x, x, keep, key, offset)
		if d := differ(x, want); d != "" {
			t.Fatal("in place:", d)
		}
	})
}

func TestDropoutKeepsTheStatedFraction(t *testing.T) {
	const n = 1 << 20
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = 1
	}
	for _, keep := range []float32{0.1, 0.5, 0.9} {
		Dropout(y, x, keep, 42, 7)
		mean := float64(Sum(y)) / n
		sigma := math.Sqrt(float64((1-keep)/keep) / n)
		if math.Abs(mean-1) > 5*sigma {
			t.Errorf("keep %g: mean %g, want 1 ± %g", keep, mean, 5*sigma)
		}
	}
}

func TestDropoutOfAllAndNothing(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct{ keep, want float32 }{{0, 0}, {-1, 0}, {nan, 0}, {1, 3}, {2, 3}} {
		t.Run(fmt.Sprint(c.keep), func(t *testing.T) {
			x, y := []float32{3, 3, 3, 3, 3}, []float32{9, 9, 9, 9, 9}
			Dropout(y, x, c.keep, 1, 2)
			if d := differ(y, []float32{c.want, c.want, c.want, c.want, c.want}); d != "" {
				t.Error(d)
			}
		})
	}
}
