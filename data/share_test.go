package data

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// shares draws shares of which one is in the default, one beyond it, and their order.
func shares(t *rapid.T) (small, large float64) {
	share := rapid.OneOf(rapid.Float64Range(1e-6, 0.02), rapid.Float64Range(0.02, 0.999999))
	a, b := share.Draw(t, "share"), share.Draw(t, "other share")
	return min(a, b), max(a, b)
}

// TestSharesNest: a share is as large as it says, holds out what smaller ones do, and
// the 1/50 that is asked for is the default.
func TestSharesNest(t *testing.T) {
	const names = 20_000
	hashes := make([]uint64, names)
	for i := range hashes {
		hashes[i] = hashString(fmt.Sprint("item ", i))
	}
	rapid.Check(t, func(t *rapid.T) {
		small, large := shares(t)
		held := 0
		for i, h := range hashes {
			if heldOut(h, small) && !heldOut(h, large) {
				t.Fatalf("%v holds item %d out, %v does not", small, i, large)
			}
			if heldOut(h, 0.02) != heldOut(h, 0) || heldOut(h, 0) != (h%50 == 0) {
				t.Fatalf("item %d: the default is not 1/50", i)
			}
			if heldOut(h, large) {
				held++
			}
		}
		five := 5 * math.Sqrt(names*large*(1-large))
		if got := math.Abs(float64(held) - names*large); got > five+5 {
			t.Fatalf("%d of %d are held out, the share is %v", held, names, large)
		}
	})
	for _, h := range []uint64{0, 1, 49, 50, math.MaxUint64, math.MaxUint64 - 15} {
		if heldOut(h, 0.02) != (h%50 == 0) || !heldOut(h, math.Nextafter(1, 0)) ||
			heldOut(h, math.SmallestNonzeroFloat64) != (h < 50 && h%50 == 0) {
			t.Errorf("hash %d is on the wrong side", h)
		}
	}
}

// TestRunningSharesNest: of few sections, too, a larger share holds out what a smaller
// one does; something is held out and something is not; the default is what it was.
func TestRunningSharesNest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Section
		most := rapid.SampledFrom([]int{1, 3, 400}).Draw(t, "most")
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, most), 2, 60).Draw(t, "texts") {
			all = append(all, Section{Text: fmt.Sprint("section ", i)})
		}
		small, large := shares(t)
		few, many := held(all, small), held(all, large)
		for i := range all {
			if few[i] && !many[i] {
				t.Fatalf("%v holds section %d out, %v does not", small, i, large)
			}
		}
		for _, chosen := range [][]bool{few, many} {
			if !slices.Contains(chosen, true) || !slices.Contains(chosen, false) {
				t.Fatalf("%v: nothing is held out, or everything", chosen)
			}
		}
		if got, want := held(all, 0), classZero(all); !slices.Equal(got, want) ||
			!slices.Equal(held(all, 0.02), want) {
			t.Fatalf("by default %v, want %v", got, want)
		}
	})
	if held([]Section{{Text: "one"}}, 0.9)[0] {
		t.Error("the only section is held out")
	}
}

// classZero is what is held out of sections by default: those of class 0, or the one with
// the smallest hash if that is none or all.
func classZero(all []Section) []bool {
	chosen, smallest, n := make([]bool, len(all)), 0, 0
	for i, s := range all {
		if hashString(s.Text)%50 == 0 {
			chosen[i] = true
			n++
		}
		if hashString(s.Text) < hashString(all[smallest].Text) {
			smallest = i
		}
	}
	if n == 0 || n == len(all) {
		chosen = make([]bool, len(all))
		chosen[smallest] = true
	}
	return chosen
}

// TestOpenShare: readers hold out what they are asked to, in the order of the data.
func TestOpenShare(t *testing.T) {
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, "source %d\ttarget %d\n", i, i)
	}
	path := writeFile(t, "pairs.tsv", lines.String())
	ctx := context.Background()
	plain, err := Open(ctx, "tsv:"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Options{EvalShare: 0.3}.Open(ctx, "tsv:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.HeldOut); n < 800 || n > 1000 || n != c.Info.HeldOut ||
		c.Info.SHA256 != plain.Info.SHA256 || len(c.Train) != 3000-n {
		t.Errorf("%s; %d held out", c.Info, n)
	}
	for _, p := range plain.HeldOut {
		if !slices.Contains(c.HeldOut, p) {
			t.Errorf("%v is not held out of the larger share", p)
		}
	}
	r, err := Options{EvalShare: 0.3}.OpenRunning(ctx, "text:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.HeldOut); n < 35 || n > 85 || n != r.Info.HeldOut {
		t.Errorf("%s", r.Info)
	}
}

// TestShareRefused: what is no share is an error that says what is.
func TestShareRefused(t *testing.T) {
	for _, share := range []float64{math.NaN(), -0.1, 1, 1.5, math.Inf(1), math.Inf(-1)} {
		o := Options{EvalShare: share}
		_, pairs := o.Open(context.Background(), "text:x")
		_, running := o.OpenRunning(context.Background(), "text:x")
		for _, err := range []error{pairs, running} {
			e, ok := errors.AsType[*Error](err)
			if !ok || !e.Misspelt || !strings.Contains(err.Error(), "a number above 0, below 1") {
				t.Errorf("%v: %v", share, err)
			}
		}
	}
	_, err := Options{MaxPairs: 3}.OpenRunning(context.Background(), "text:x")
	if e, ok := errors.AsType[*Error](err); !ok || !e.Misspelt ||
		!strings.Contains(err.Error(), "leave their limit out") {
		t.Errorf("a limit: %v", err)
	}
}
