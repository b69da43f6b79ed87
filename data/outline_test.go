package data

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/longtest"
)

// sameOutline checks that an outline gives what the whole text does.
func sameOutline(t interface{ Errorf(string, ...any) }, name string, text []byte) {
	want, err := parseOutline(text)
	got, err2 := parseOutline(outline(text))
	if err != nil || err2 != nil || want.skipped {
		return
	}
	if got.skipped || got.dropped != want.dropped || !slices.Equal(got.pairs, want.pairs) {
		t.Errorf("%s: an outline gives %+v, the whole %+v; the outline:\n%s", name, got, want,
			outline(text))
	}
}

// TestOutlineOfGo: the outlines of Go's own files give what the files do.
func TestOutlineOfGo(t *testing.T) {
	longtest.Skip(t)
	root, err := goRoot(context.Background(), goPatience)
	if err != nil || root == "" {
		t.Skip("no Go tree: ", err)
	}
	dirs := []string{"go", "net/http", "unicode", "reflect", "runtime", "syscall"}
	if longtest.Enabled() {
		dirs = []string{"."}
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, "src", dir),
			func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
					return err
				}
				text, err := os.ReadFile(path)
				sameOutline(t, path, text)
				return err
			})
		if err != nil {
			t.Error(err)
		}
	}
}

// pieces are what is hard to read in part.
var pieces = []string{
	"func f()", "func f() {}", "func f() { g(\"}\", '}', `}`, '\\'', \"\\\"}\") }",
	"func f() {\n\t// }\n\t/* } */\n\tx := a / b\n}", "func (t T) f() struct{} { return x }",
	"func f() interface{ m() } { return nil }", "func f() (a struct{ b int }, c int) { return }",
	"func f[T interface{ ~int }](x map[string]struct{}) [2]struct{ x int } { return x }",
	"func f() Astruct { return x }", "func f() structure { return x }",
	"func f() func(struct{}) {\n}", "func f() chan\nint { }", "func f() { // comment\n}",
	"func f() { func() { }() } // comment", "func ƒ() größe { return }",
	"var x = 1", "var x = 1 // comment", "var x = f(\n1,\n)", "var x = a +\n\tb",
	"const (\n a = 1\n)",
	"var x = []T{{1}, {2}}", "var x = func() { return }", "var x struct {\n a int\n}",
	"var x = \"a // b\"", "var x = `a\n// b`", "var x = 1 /* a\nb */", "var x, y int; var z int",
	"var x = '\\\\'", "variable := 1", "var_ = 1",
	"type T struct {\n\ta int // a\n}", "type T interface{ m() }",
	"type (\n// doc\nT int\nU = T\n)",
	"type T[P any] func(P) struct{}", "type T int // comment",
	"// doc", "// doc\n// more", "/* doc */", "/* doc\nmore */", "//go:noinline", "", ";",
	"import \"x\"", "}", "{", "(", "\"", "'", "`", "/*",
}

// TestOutline: whatever stands behind one another, an outline gives what the whole does.
func TestOutline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "pieces")
		between := rapid.SampledFrom([]string{"\n", "\n\n", "; ", " "})
		text := "package p\n"
		for _, p := range parts {
			text += p + between.Draw(t, "between")
		}
		sameOutline(t, text, []byte(text))
	})
}

// TestOutlineIsShort: what is left out is.
func TestOutlineIsShort(t *testing.T) {
	text := "package p\n\n// f\nfunc f(a int) error {\n\treturn g(\"}\")\n}\n" +
		"\nvar x = map[T]T{1: 2}\n"
	const want = "package p\n\n// f\nfunc f(a int) error {}\n\nvar _ T\n"
	if got := string(outline([]byte(text))); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, odd := range []string{"package p\nfunc f() {", "package p\nx", "package p\nvar x = \"\n",
		"package p /*", "\xef\xbb\xbfpackage p", "package p\nvar x = 1 /*\n*/\n"} {
		if got := string(outline([]byte(odd))); got != odd {
			t.Errorf("%q of %q", got, odd)
		}
	}
	if got := string(outline([]byte(strings.Repeat("var x = (1)\n", 3)))); got !=
		strings.Repeat("var _ T\n", 3) {
		t.Errorf("%q", got)
	}
}
