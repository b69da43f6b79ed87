package data

import (
	"math"
	"slices"
	"testing"
)

// TestBLEU: the example of sacreBLEU's documentation, and scores by hand.
func TestBLEU(t *testing.T) {
	system := []string{"The dog bit the man.", "It wasn't surprising.",
		"The man had just bitten him."}
	first := []string{"The dog bit the man.", "It was not unexpected.", "The man bit him first."}
	second := []string{"The dog had bit the man.", "No one was surprised.",
		"The man had bitten the dog."}
	for _, c := range []struct {
		name       string
		have       []string
		references [][]string
		want       float64
	}{
		{"two references", system, [][]string{first, second}, 48.530827009929865},
		{"itself", first, [][]string{first}, 100},
		{"nothing in common", []string{"a b c d"}, [][]string{{"e f g h"}}, 0},
		{"empty", []string{""}, [][]string{{"e f g h"}}, 0},
		{"nothing", nil, [][]string{nil}, 0},
		{"too short for four", []string{"a b c"}, [][]string{{"a b c"}}, 0},
		{"brief", []string{"a b c d"}, [][]string{{"a b c d e f g h"}}, 100 * math.Exp(-1)},
		{"smoothed", []string{"a b c d x"}, [][]string{{"a b c y d"}},
			100 * math.Pow(4./5*2/4*1/3*(1./2/2), 0.25)},
	} {
		if got := BLEU(c.have, c.references...); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTokenize13a(t *testing.T) {
	for text, want := range map[string][]string{
		"func (f *File) Name() string": {"func", "(", "f", "*", "File", ")", "Name", "(", ")",
			"string"},
		"It's 1,000.5 km, no.":              {"It's", "1,000.5", "km", ",", "no", "."},
		"in 1990-95 &quot;x&quot;":          {"in", "1990", "-", "95", `"`, "x", `"`},
		" \n ":                              {},
		"a &amp;lt; b &lt; c":               {"a", "<", "b", "<", "c"},
		"&amp;amp;quot; &quot;":             {"&", "amp", ";", "quot", ";", `"`},
		"well-\nknown\nx-<skipped>\ny\x1cz": {"wellknown", "xy", "z"},
	} {
		if got := tokenize13a(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
