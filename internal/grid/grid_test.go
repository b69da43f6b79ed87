package grid_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/grid"
)

// TestNew: columns line up, numbers to the right, and nothing ends in spaces.
func TestNew(t *testing.T) {
	x := grid.New(2)
	x.AppendHeader(table.Row{"name", "bytes", "where"})
	x.AppendRow(table.Row{"a", "12MiB", "here"})
	x.AppendRow(table.Row{"longer", "5B", ""})
	want := "name    bytes  where\na       12MiB  here\nlonger     5B"
	if got := x.Render(); got != want {
		t.Errorf("\n%q, want\n%q", got, want)
	}
}

// TestWrap: words stay, in order; lines are as full as they can be.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-zäκ]{1,9}`)).Draw(t, "words")
		columns := rapid.IntRange(1, 30).Draw(t, "columns")
		got := grid.Wrap(strings.Join(words, " "), columns)
		if strings.Join(strings.Fields(got), " ") != strings.Join(words, " ") {
			t.Fatalf("%q of %q", got, words)
		}
		lines := strings.Split(got, "\n")
		for i, line := range lines {
			n := utf8.RuneCountInString(line)
			if n > columns && strings.Contains(line, " ") || line != strings.TrimSpace(line) {
				t.Fatalf("%q in %d columns", line, columns)
			}
			if i > 0 {
				first, _, _ := strings.Cut(line, " ")
				before := utf8.RuneCountInString(lines[i-1])
				if before+1+utf8.RuneCountInString(first) <= columns {
					t.Fatalf("%q had room on the line before", first)
				}
			}
		}
	})
}
