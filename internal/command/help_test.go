package command

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestTextsOnce: no name has two texts, which would be said one after the other.
func TestTextsOnce(t *testing.T) {
	seen := map[string]bool{}
	for line := range strings.Lines(flagTexts + predictTexts + planTexts + treeTexts) {
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

// parserOf is the whole command line, that of several workers included.
func parserOf(t testing.TB) *kong.Kong {
	t.Helper()
	k, err := kong.New(&cli{}, kong.NoDefaultHelp(), kong.Writers(io.Discard, io.Discard),
		kong.ExplicitGroups(groups), kong.PostBuild(describe), kong.PostBuild(arrange), enums)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestEveryFlagIsInAGroup: no flag of a command with many is outside of the groups, which come
// in their order, and the most used ones are there, first, and in no other group.
func TestEveryFlagIsInAGroup(t *testing.T) {
	commands := 0
	for _, n := range parserOf(t).Model.Children {
		last, first := -1, []string{}
		for _, f := range n.Flags {
			rank := rankOfGroup(f)
			if _, grouped := used[n.Name]; grouped && rank < 0 {
				t.Errorf("%s --%s is in no group", n.Name, f.Name)
			}
			if rank < last {
				t.Errorf("%s --%s of %s comes after %s", n.Name, f.Name, groups[rank].Title,
					groups[last].Title)
			}
			if last = rank; rank == 0 {
				first = append(first, f.Name)
			}
		}
		if list, grouped := used[n.Name]; grouped {
			commands++
			if !slices.Equal(first, list) {
				t.Errorf("%s begins with %q, want %q", n.Name, first, list)
			}
		} else if len(first) > 0 {
			t.Errorf("%s has flags that are used the most: %q", n.Name, first)
		}
	}
	if commands != len(used) {
		t.Errorf("%d commands have flags that are used the most, want %d", commands, len(used))
	}
}

// TestEveryFlagIsExplained: no flag is without a text, and no text is without a
// flag.
func TestEveryFlagIsExplained(t *testing.T) {
	k := parserOf(t)
	used := map[string]bool{}
	err := kong.Visit(k.Model.Node, func(v kong.Visitable, next kong.Next) error {
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
	for name, text := range parseTexts(flagTexts + planTexts + treeTexts) {
		if filled := strings.Contains(text, "${"); !filled && !used[text] {
			t.Errorf("nothing has the text of %s", name)
		}
	}
}
