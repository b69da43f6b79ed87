package bags

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
)

func opened(t *testing.T, spec string, o Options) *Set {
	t.Helper()
	s, err := Open(t.Context(), spec, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// row is a document of a source.
func row(s *Set, from source, i int) []float32 {
	x := make([]float32, s.Vocab)
	from.fill(i, x)
	return x
}

// TestDrawn: a drawn document is a sum of one topic or two of the dictionary, and noise of the
// deviation that is said; the same one at every call, others by another seed.
func TestDrawn(t *testing.T) {
	const vocab, topics = 100, 6
	s := opened(t, "drawn", Options{Seed: 3, Vocab: vocab, Topics: topics})
	d := Dictionary(3, vocab, topics)
	for k := range topics {
		var sum float64
		for w := range vocab {
			sum += float64(d[w*topics+k]) * float64(d[w*topics+k])
		}
		if math.Abs(sum-1) > 1e-5 {
			t.Errorf("squares of topic %d add up to %g", k, sum)
		}
	}
	for i := range 50 {
		x := row(s, s.train, i)
		if !slices.Equal(x, row(s, s.train, i)) {
			t.Fatalf("document %d is another one at the second call", i)
		}
		left := math.Inf(1) // of the best two topics
		for a := range topics {
			for b := range a + 1 {
				left = min(left, leastSquares(x, d, topics, a, b))
			}
		}
		if got := math.Sqrt(left / vocab); got > 1.5*Noise || got < Noise/2 {
			t.Errorf("document %d: noise of %g", i, got)
		}
	}
	other := opened(t, "drawn", Options{Seed: 4, Vocab: vocab, Topics: topics})
	if other.Info.SHA256 == s.Info.SHA256 || slices.Equal(row(s, s.train, 0),
		row(other, other.train, 0)) {
		t.Error("another seed draws the same")
	}
	if s.Info.HeldOut != 1000 || s.heldOut.size() != 1000 || s.train.size() != 50_000 {
		t.Errorf("%+v", s.Info)
	}
}

// leastSquares is what is left of x by the best sum of two topics.
func leastSquares(x, d []float32, topics, a, b int) float64 {
	var aa, ab, bb, ax, bx float64
	at := func(w, k int) float64 { return float64(d[w*topics+k]) }
	for w, v := range x {
		aa, ab, bb = aa+at(w, a)*at(w, a), ab+at(w, a)*at(w, b), bb+at(w, b)*at(w, b)
		ax, bx = ax+at(w, a)*float64(v), bx+at(w, b)*float64(v)
	}
	det := aa*bb - ab*ab
	if a == b || det < 1e-9 {
		det, ab, bb, bx = aa, 0, 1, 0
	}
	p, q := (ax*bb-ab*bx)/det, (aa*bx-ab*ax)/det
	var sum float64
	for w, v := range x {
		rest := float64(v) - p*at(w, a) - q*at(w, b)
		sum += rest * rest
	}
	return sum
}

// file writes a file and gives its spec.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docword.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "uci:" + path
}

// TestUCI: a file's documents have their words, scaled; those without words are left out and
// counted, and each is either held out or not.
func TestUCI(t *testing.T) {
	s := opened(t, file(t, "4\n3\n4\n1 1 3\n1 3 4\n3 2 7\n4 1 1\n"), Options{EvalShare: 0.5})
	if s.Vocab != 3 || s.Info.Pairs != 3 || s.Info.Dropped != 1 ||
		s.train.size()+s.heldOut.size() != 3 {
		t.Errorf("%+v", s.Info)
	}
	all := s.Whole()
	var got [][]float32
	for i := range all.heldOut.size() {
		got = append(got, row(all, all.heldOut, i))
	}
	for _, want := range [][]float32{{0.6, 0, 0.8}, {0, 1, 0}, {1, 0, 0}} {
		if !slices.ContainsFunc(got, func(x []float32) bool {
			return slices.EqualFunc(x, want, func(a, b float32) bool {
				return a-b < 1e-6 && b-a < 1e-6
			})
		}) {
			t.Errorf("no %v in %v", want, got)
		}
	}
}

// TestRefused: what is no such file is one line with what is wrong, and where.
func TestRefused(t *testing.T) {
	for want, text := range map[string]string{
		"no documents": "3\n", ":2: \"0\": want a number": "1\n0\n1\n1 1 1\n",
		":4: word 4 of document 1, there are 3 of":  "2\n3\n1\n1 4 1\n",
		":5: document 1 behind document 2":          "2\n3\n2\n2 1 1\n1 1 1\n",
		"1 lines, and 2 were announced":             "2\n3\n2\n1 1 1\n",
		":5: more than the 1 lines":                 "2\n3\n1\n1 1 1\n1 2 1\n",
		":4: \"x\" is no number from 1":             "2\n3\n1\n1 x 1\n",
		":4: \"-3\" is no number from 1":            "2\n3\n1\n1 1 -3\n",
		":4: 2 numbers":                             "2\n3\n1\n1 1\n",
		":1: \"two\": want a number alone":          "two\n",
		":1: \"99999999999999999999\": want a numb": "99999999999999999999\n",
	} {
		_, err := Open(t.Context(), file(t, text), Options{})
		failed, ok := errors.AsType[*data.Error](err)
		if !ok || failed.Misspelt || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for spec, o := range map[string]Options{"": {}, "uci": {}, "drawn:3": {}, "csv:a": {},
		"drawn": {EvalShare: 2}} {
		_, err := Open(t.Context(), spec, o)
		if failed, ok := errors.AsType[*data.Error](err); !ok || !failed.Misspelt {
			t.Errorf("%q: %v", spec, err)
		}
	}
	for _, o := range []Options{{Vocab: 0, Topics: 1}, {Vocab: 3, Topics: 4}, {Vocab: 1 << 30,
		Topics: 2}} {
		if _, err := Open(t.Context(), "drawn", o); err == nil {
			t.Errorf("%+v is drawn", o)
		}
	}
	if _, err := Open(t.Context(), "uci:nowhere", Options{}); err == nil {
		t.Error("a file that is not there")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	many := "1\n1\n5000\n" + strings.Repeat("1 1 1\n", 5000)
	if _, err := Open(ctx, file(t, many), Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestLoader: an epoch has each document once, but for what does not fill a batch; held-out
// batches have all, and behind them rows that count for nothing.
func TestLoader(t *testing.T) {
	s := opened(t, "drawn", Options{Vocab: 10, Topics: 2, EvalShare: 0.0002})
	l, err := NewLoader(s, LoaderOptions{Documents: 7, Vocab: 12, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := l.Train(5)
	if b.Units != 7 || !slices.Equal(b.Inputs[0].F32(), l.Train(5).Inputs[0].F32()) ||
		b.Inputs[0].F32()[11] != 0 {
		t.Errorf("%+v", b)
	}
	if u, ok := l.Uncounted(5); !ok || u.Units != 0 || slices.Max(u.Inputs[1].F32()) != 0 {
		t.Errorf("%+v", u)
	}
	if s.heldOut.size() != 10 || l.HeldOutBatches() != 2 {
		t.Fatalf("%d held out in %d batches", s.heldOut.size(), l.HeldOutBatches())
	}
	last := l.HeldOut(1)
	if last.Units != 3 || !slices.Equal(last.Inputs[1].F32(), []float32{1, 1, 1, 0, 0, 0, 0}) {
		t.Errorf("%+v", last)
	}
	for _, o := range []LoaderOptions{{Documents: 0, Vocab: 10}, {Documents: 1, Vocab: 9},
		{Documents: 1 << 20, Vocab: 10}} {
		if _, err := NewLoader(s, o); err == nil {
			t.Errorf("%+v makes batches", o)
		}
	}
}
