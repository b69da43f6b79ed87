package command

import (
	"io"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestTextsOnce: no name has two texts, which would be said one after the other.
func TestTextsOnce(t *testing.T) {
	seen := map[string]bool{}
	for line := range strings.Lines(flagTexts + predictTexts) {
		name := strings.TrimSpace(line)
		if name == "" || line[0] == ' ' {
			continue
		}
		if seen[name] {
			t.Errorf("%s has two texts", name)
		}
		seen[name] = true
	}
}

// TestEveryFlagIsExplained: no flag is without a text, and no text is without a
// flag.
func TestEveryFlagIsExplained(t *testing.T) {
	k, err := kong.New(&cli{}, kong.NoDefaultHelp(), kong.Writers(io.Discard, io.Discard),
		kong.ExplicitGroups(groups), kong.PostBuild(describe), enums)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	err = kong.Visit(k.Model.Node, func(v kong.Visitable, next kong.Next) error {
		if n, ok := v.(*kong.Node); ok {
			for _, f := range n.Flags {
				used[f.Help] = true
				if !strings.HasSuffix(f.Help, ".") {
					t.Errorf("%s --%s: %q", n.Name, f.Name, f.Help)
				}
			}
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range parseTexts(flagTexts) {
		if filled := strings.Contains(text, "${"); !filled && !used[text] {
			t.Errorf("nothing has the text of %s", name)
		}
	}
}
