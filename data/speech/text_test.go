package speech

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph/tensor"
)

func TestNormalise(t *testing.T) {
	for in, want := range map[string]string{
		"Read files.":              "read files",
		"  It’s a read-only\tmap!": "it's a read only map",
		`"Yes", (he) said…`:        "yes he said",
		"a—b":                      "a b",
	} {
		if got, err := normalise(in, true); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"":        "without a letter",
		" '. ":    "without a letter",
		"4 files": "transcript with '4'",
		"naïve":   "transcript with 'ï'",
		"a\x00b":  `transcript with '\x00'`,
		"a\xffb":  `transcript with '�'`,
	} {
		if got, err := normalise(in, true); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
}

// sentences draws texts of the alphabet.
func sentences() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom([]rune(Alphabet)), 0, 12, -1)
}

func TestLabels(t *testing.T) {
	if got := English().labels(" az'"); !slices.Equal(got, []int32{0, 1, 26, 27}) || Symbols != 29 {
		t.Errorf("labels %v of %d symbols", got, Symbols)
	}
	if got := English().Text([]int32{1, 28, -1, 2, 99}); got != "ab" {
		t.Errorf("text %q, want ab", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := sentences().Draw(t, "text")
		if got := English().Text(English().labels(s)); got != s {
			t.Fatalf("%q reads as %q", s, got)
		}
		if once, err := normalise(s, true); err == nil {
			if twice, err := normalise(once, true); twice != once || err != nil {
				t.Fatalf("%q is normalised to %q, and that to %q, %v", s, once, twice, err)
			}
		}
	})
}

// TestDecode: a text written into as few frames as it can be is read back.
func TestDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(sentences(), 1, 3).Draw(t, "texts")
		const most = 24
		logits := tensor.New(tensor.Of(tensor.F32, most, len(texts), Symbols))
		frames := make([]int32, len(texts))
		for k, s := range texts {
			write := func(symbol int32) {
				logits.F32()[(int(frames[k])*len(texts)+k)*Symbols+int(symbol)] = 1
				frames[k]++
			}
			for i, l := range English().labels(s) {
				if i > 0 && s[i] == s[i-1] {
					write(int32(Symbols - 1))
				}
				write(l)
			}
			if int(frames[k]) != framesFor(s) {
				t.Fatalf("%q takes %d frames, not %d", s, frames[k], framesFor(s))
			}
		}
		if got, err := English().Decode(logits, frames); err != nil || !slices.Equal(got, texts) {
			t.Fatalf("%q, %v, want %q", got, err, texts)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	logits := func(sizes ...int) tensor.View { return tensor.New(tensor.Of(tensor.F32, sizes...)) }
	for _, test := range []struct {
		logits tensor.View
		frames []int32
		want   string
	}{
		{logits(4, 2), []int32{1, 1}, "logits are f32[4 2], want f32[frames 2 29]"},
		{logits(4, 1, 29), []int32{1, 1}, "want f32[frames 2 29]"},
		{logits(4, 1, 28), []int32{1}, "want f32[frames 1 29]"},
		{tensor.New(tensor.Of(tensor.I32, 4, 1, 29)), []int32{1}, "logits are i32"},
		{logits(4, 1, 29), []int32{5}, "utterance 0 has 5 frames, want 0 to 4"},
		{logits(4, 1, 29), []int32{-1}, "utterance 0 has -1 frames"},
	} {
		if _, err := English().Decode(test.logits, test.frames); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
	nan := logits(1, 1, 29)
	nan.F32()[3] = float32(math.NaN())
	if got, err := English().Decode(nan, []int32{1}); err != nil || got[0] != "" {
		t.Errorf("a frame of no number reads %q, %v", got, err)
	}
}

func TestCER(t *testing.T) {
	for _, test := range []struct {
		have, want []string
		cer        float64
	}{
		{nil, nil, 0},
		{[]string{"abc"}, []string{"abc"}, 0},
		{[]string{"kitten"}, []string{"sitting"}, 3.0 / 7},
		{[]string{"", "ab"}, []string{"abc", "a"}, 1},
		{nil, []string{"abcd"}, 1},
		{[]string{"ab"}, []string{""}, 2},
		// what jiwer 4.0 says: code points, without the space around a text
		{[]string{"größe"}, []string{"grüße"}, 0.2},
		{[]string{"ça va"}, []string{"ca va"}, 0.2},
		{[]string{" hallo  welt "}, []string{"hallo welt"}, 0.1},
		{[]string{"日本語", "ab"}, []string{"日本話", "abc"}, 1.0 / 3},
		{[]string{"e\u0301"}, []string{"é"}, 2},
		{[]string{"a"}, []string{"abc d"}, 0.8},
	} {
		if got := CER(test.have, test.want); math.Abs(got-test.cer) > 1e-12 {
			t.Errorf("%q for %q: %g, want %g", test.have, test.want, got, test.cer)
		}
	}
}

// TestDistance: it is a metric.
func TestDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := sentences().Draw(t, "a"), sentences().Draw(t, "b"), sentences().Draw(t, "c")
		apart := func(a, b string) int { return distance([]rune(a), []rune(b)) }
		d := apart(a, b)
		if d != apart(b, a) || (d == 0) != (a == b) || d > apart(a, c)+apart(c, b) ||
			d > max(len(a), len(b)) {
			t.Fatalf("%q and %q are %d apart", a, b, d)
		}
	})
}
