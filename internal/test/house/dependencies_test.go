package house_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dependenciesDoc is the document that says why there is each of them.
const dependenciesDoc = "docs/rfcs/0002-dependencies.md"

// TestDependencies: the document lists all direct dependencies and no others.
func TestDependencies(t *testing.T) {
	atRoot(t)
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(dependenciesDoc)
	if err != nil {
		t.Fatal(err)
	}
	required, listed := requirements(string(mod)), tabled(string(text))
	if len(required) == 0 {
		t.Fatal("go.mod requires nothing")
	}
	for _, m := range without(required, listed) {
		t.Errorf("%s does not list %s, which go.mod requires", dependenciesDoc, m)
	}
	for _, m := range without(listed, required) {
		t.Errorf("%s lists %s, which go.mod does not require directly", dependenciesDoc, m)
	}
}

// requirement is a line of go.mod that requires a module, in a block or by itself.
var requirement = regexp.MustCompile(
	`(?m)^(?:require[ \t]+|\t)([^\s/]+\.[^\s/]+/\S+)[ \t]+v\S+(.*)$`)

// requirements are the modules that a go.mod requires directly.
func requirements(mod string) (modules []string) {
	for _, m := range requirement.FindAllStringSubmatch(mod, -1) {
		if !strings.Contains(m[2], "// indirect") {
			modules = append(modules, m[1])
		}
	}
	return modules
}

// tabled are the modules in the first column of a document's tables: what is in backticks
// there and begins with the name of a host.
func tabled(text string) (modules []string) {
	module := regexp.MustCompile("(?m)^\\| *`([^`/\\s]+\\.[^`/\\s]+/[^`\\s]+)` *\\|")
	for _, m := range module.FindAllStringSubmatch(text, -1) {
		modules = append(modules, m[1])
	}
	return modules
}

// without are the words of a that are not in b.
func without(a, b []string) (rest []string) {
	for _, x := range a {
		if !slices.Contains(b, x) {
			rest = append(rest, x)
		}
	}
	return rest
}

// TestDependenciesRule: what the rule reads, and what it sees.
func TestDependenciesRule(t *testing.T) {
	const mod = `module a.example/m

go 1.26.0

require b.example/alone v1.0.0

require (
	c.example/two/v2 v2.0.0
	d.example/three v0.1.0 // indirect
)
`
	const text = "| module | for |\n|---|---|\n| `b.example/alone` | `internal/one` |\n" +
		"| `e.example/four` | `f.example/none` |\n| words | `graph/ops` |\n"
	required, listed := requirements(mod), tabled(text)
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"required", required, []string{"b.example/alone", "c.example/two/v2"}},
		{"listed", listed, []string{"b.example/alone", "e.example/four"}},
		{"missing", without(required, listed), []string{"c.example/two/v2"}},
		{"absent", without(listed, required), []string{"e.example/four"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
}
