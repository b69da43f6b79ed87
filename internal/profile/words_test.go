package profile

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestWords: numbers have few figures.
func TestWords(t *testing.T) {
	for want, got := range map[string]string{
		"0 ms": duration(0), "0.5 µs": duration(0.0005), "12.3 µs": duration(0.01234),
		"1 ms": duration(1), "999 ms": duration(999), "1.5 s": duration(1500),
		"120 s": duration(120e3),
		"0B":    brief(0), "999B": brief(999), "1000B": brief(1000), "1.5MiB": brief(3 << 19),
		"8EiB":      brief(1<<63 - 1),
		"1,234,567": grouped(1234567), "-1,234": grouped(-1234), "1 step": counted(1, "step"),
		"2,000 steps": counted(2000, "step"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestShort: a name keeps its ends and fits.
func TestShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zé/]{0,40}`).Draw(t, "name")
		columns := rapid.IntRange(5, 40).Draw(t, "columns")
		got := short(name, columns)
		n := utf8.RuneCountInString(got)
		head, tail, cut := strings.Cut(got, "…")
		if n > columns || !strings.HasPrefix(name, head) || cut && !strings.HasSuffix(name, tail) ||
			!cut && got != name {
			t.Errorf("%q in %d columns is %q", name, columns, got)
		}
	})
}
