package legible

import (
	"errors"
	"testing"
)

// TestCut: a text is left as it is, cut at a character, or quoted.
func TestCut(t *testing.T) {
	for text, want := range map[string]string{
		"":                "",
		"é \"plain\"":     "é \"plain\"",
		"two\nlines":      `"two\nlines"`,
		"\x1b[31m":        `"\x1b[31m"`,
		"half \xc3":       `"half \xc3"`,
		"ααααααααααααααα": "αααααααααααα",
	} {
		if got := Cut(text, 12); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// TestError: an error that needs no change is itself, another wraps it.
func TestError(t *testing.T) {
	plain, long := errors.New("no such file"), errors.New("a\tvery long line")
	if got := Error(plain, 12); got != plain {
		t.Errorf("%v is shown as %v", plain, got)
	}
	if got := Error(long, 6); got.Error() != `"a\tvery…"` || !errors.Is(got, long) {
		t.Errorf("%v", got)
	}
}
