package data

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// writeFile puts text in a new directory and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	writeAt(t, path, text)
	return path
}

// writeAt writes text to path, with its directories.
func writeAt(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// open opens a spec that must be good.
func open(t *testing.T, spec string, o Options) *Corpus {
	t.Helper()
	c, err := o.Open(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// all gives the pairs of both parts, training first.
func all(c *Corpus) []Pair { return slices.Concat(c.Train, c.HeldOut) }

// sorted gives the pairs of both parts in the order of their text.
func sorted(c *Corpus) []Pair {
	pairs := all(c)
	slices.SortFunc(pairs, func(a, b Pair) int {
		return strings.Compare(a.Source+"\t"+a.Target, b.Source+"\t"+b.Target)
	})
	return pairs
}

// numbered writes a TSV file of n pairs.
func numbered(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "source number %d\ttarget %s\n", i, strings.Repeat("x", i%40+1))
	}
	return "tsv:" + writeFile(t, "pairs.tsv", b.String())
}

func TestTSV(t *testing.T) {
	text := "\ufeffein Haus\ta house\r\n zwei \t two \nein Haus\ta house\nein Haus\tone house"
	path := writeFile(t, "pairs.tsv", text)
	c := open(t, "tsv:"+path, Options{})
	want := []Pair{{"ein Haus", "a house"}, {"zwei", "two"}, {"ein Haus", "one house"}}
	if got := all(c); !slices.Equal(got, want) {
		t.Errorf("pairs %q, want %q", got, want)
	}
	sum := func(line string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(line))) }
	digest, listing := sum(sum(text)+" pairs.tsv\n"), sum(fmt.Sprintln(len(text), "pairs.tsv"))
	info := Info{Spec: "tsv:" + path, Path: path, Files: 1, Pairs: 3, Dropped: 1,
		Bytes: int64(len(text)), SHA256: digest, Listing: listing}
	if c.Info != info {
		t.Errorf("info %+v, want %+v", c.Info, info)
	}
	for _, part := range []string{path, "1 file (", "3 pairs", "1 pair dropped",
		c.Info.SHA256[:16]} {
		if !strings.Contains(c.Info.String(), part) {
			t.Errorf("%q lacks %q", c.Info, part)
		}
	}
}

func TestText(t *testing.T) {
	c := open(t, "text:"+writeFile(t, "book.txt", "one\n\n  two  \nthree\n \nfour\n"), Options{})
	want := []Pair{{"one", "two"}, {"two", "three"}, {"three", "four"}}
	if got := all(c); !slices.Equal(got, want) {
		t.Errorf("windows %q, want %q", got, want)
	}
}

const goSource = `// Package p is not a declaration.
package p

// Add adds
//   two   numbers.
//
//go:noinline
func Add(
	a int,
	b int, // the second
) (sum int) { return a + b }

func undocumented() {}

//go:nosplit
func onlyDirective() {}

// Len is a method.
func (l *List[T]) Len() int { return 0 }

// A List has fields.
type List[T any] struct { a, b T }

type (
	// Key is in a group.
	Key = string
	// Doer does.
	Doer interface { Do() error }
	// Empty has nothing.
	Empty struct{}
	bare int
)

// Limit is a constant.
const Limit = 3
`

func TestGoDoc(t *testing.T) {
	root := t.TempDir()
	t.Setenv("GOROOT", root)
	writeAt(t, filepath.Join(root, "src/p/p.go"), goSource)
	writeAt(t, filepath.Join(root, "src/q/broken.go"), "package q\nfunc {")
	for _, skipped := range []string{"p/p_test.go", "p/testdata/x.go", "vendor/v/v.go",
		"p/notes.txt"} {
		writeAt(t, filepath.Join(root, "src", skipped),
			"package x\n// Wrong is read.\nfunc Wrong() {}\n")
	}
	c := open(t, "go:doc", Options{})
	want := []Pair{
		{"A List has fields.", "type List[T any] struct{ ... }"},
		{"Add adds two numbers.", "func Add(a int, b int) (sum int)"},
		{"Doer does.", "type Doer interface{ ... }"},
		{"Empty has nothing.", "type Empty struct{}"},
		{"Key is in a group.", "type Key = string"},
		{"Len is a method.", "func (l *List[T]) Len() int"},
	}
	if got := sorted(c); !slices.Equal(got, want) {
		t.Errorf("pairs\n%q, want\n%q", got, want)
	}
	if c.Info.Files != 2 || c.Info.Skipped != 1 {
		t.Errorf("read %d files and skipped %d, want 2 and 1", c.Info.Files, c.Info.Skipped)
	}
}

func TestGoDocOfToolchain(t *testing.T) {
	ctx := context.Background()
	read := func(limit int) *Corpus {
		c, err := Options{MaxPairs: limit}.Open(ctx, "go:doc")
		if errors.Is(err, fs.ErrNotExist) {
			t.Skipf("needs the Go source tree: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	small, again, large := read(300), read(300), read(900)
	if small.Info.Pairs != 300 || large.Info.Pairs != 900 {
		t.Errorf("%d and %d pairs, want 300 and 900", small.Info.Pairs, large.Info.Pairs)
	}
	if small.Info != again.Info || !slices.Equal(small.Train, again.Train) {
		t.Error("two reads differ")
	}
	if !slices.Equal(large.Train[:len(small.Train)], small.Train) ||
		!slices.Equal(large.HeldOut[:len(small.HeldOut)], small.HeldOut) {
		t.Error("a smaller limit does not give a prefix")
	}
}

func TestLimitAndProgress(t *testing.T) {
	spec := numbered(t, 50)
	if c := open(t, spec, Options{MaxPairs: 20}); c.Info.Pairs != 20 {
		t.Errorf("%d pairs, want 20", c.Info.Pairs)
	}
	root := t.TempDir()
	for i := range 10 {
		writeAt(t, filepath.Join(root, fmt.Sprintf("%d/a.mo", i)),
			makeMO(false, [2]string{fmt.Sprint("m", i), "x"}))
	}
	var calls []int
	c, err := Open(context.Background(), "mo:"+root, func(files int) {
		calls = append(calls, files)
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(calls, want) ||
		c.Info.Files != 10 {
		t.Errorf("progress %v and %d files, want %v", calls, c.Info.Files, want)
	}
}

func TestHeldOut(t *testing.T) {
	c := open(t, numbered(t, 5000), Options{})
	if n := len(c.HeldOut); n < 60 || n > 140 || n != c.Info.HeldOut {
		t.Errorf("%d pairs held out of 5000, want about 100", n)
	}
	rapid.Check(t, func(t *rapid.T) {
		source := rapid.String().Draw(t, "source")
		r := reader{seen: map[Pair]struct{}{}}
		for _, target := range rapid.SliceOf(rapid.String()).Draw(t, "targets") {
			r.add(Pair{Source: source, Target: target})
		}
		if len(r.corpus.Train) > 0 && len(r.corpus.HeldOut) > 0 {
			t.Fatalf("pairs of source %q in both parts", source)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	file, dir := writeFile(t, "good.tsv", "a\tb\n"), t.TempDir()
	tsv := func(text string) string { return "tsv:" + writeFile(t, "bad.tsv", text) }
	mo := func(text string) string { return "mo:" + filepath.Dir(writeFile(t, "bad.mo", text)) }
	tests := []struct {
		name, spec, want string
		line             int
	}{
		{"empty spec", "", "data: empty spec: give go:doc", 0},
		{"unknown scheme", "csv:x", "data csv:x: unknown source: give go:doc", 0},
		{"no scheme", file, "unknown source", 0},
		{"unknown go source", "go:test", "unknown source", 0},
		{"no path", "tsv:", "no path: give", 0},
		{"control character", "a\nb:", `data "a\nb:": unknown source`, 0},
		{"missing file", "tsv:" + dir + "/none", "no such file or directory: check the path", 0},
		{"missing text", "text:" + dir + "/none", "check the path", 0},
		{"missing directory", "mo:" + dir + "/none", "check the path", 0},
		{"directory for a file", "tsv:" + dir, "a directory, not a regular file: give a file", 0},
		{"file for a directory", "mo:" + file, "is a file: give the directory", 0},
		{"empty file", tsv(""), "no pairs in 1 file: give a source", 0},
		{"single line", "text:" + file, "no pairs in 1 file", 0},
		{"empty directory", "mo:" + dir, "no pairs in 0 files", 0},
		{"no tab", tsv("a\tb\nc d\n"), "bad.tsv:2: no tab: write", 2},
		{"blank line", tsv("a\tb\n\n"), "bad.tsv:2: no tab", 2},
		{"two tabs", tsv("a\tb\tc\n"), "bad.tsv:1: more than one tab", 1},
		{"empty source", tsv(" \tb\n"), "bad.tsv:1: empty source", 1},
		{"empty target", tsv("a\tb\nc\t\n"), "bad.tsv:2: empty target", 2},
		{"not UTF-8", tsv("a\tb\nc\t\xff\n"), "bad.tsv:2: not UTF-8: convert", 2},
		{"endless line", tsv("a\tb\n" + strings.Repeat("x", maxLineBytes+1)),
			"bad.tsv:2: line of more than", 2},
		{"not a catalogue", mo("this is certainly no catalogue"), "bad.mo: not a gettext catalogue",
			0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := Open(context.Background(), test.spec, nil)
			var e *Error
			if c != nil || !errors.As(err, &e) {
				t.Fatalf("got %v, %v; want an *Error", c, err)
			}
			if e.Spec != test.spec || e.Line != test.line ||
				!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("spec %q line %d: %q; want %q at line %d", e.Spec, e.Line, err, test.want,
					test.line)
			}
		})
	}
}

func TestOpenRefusesLimit(t *testing.T) {
	if _, err := (Options{MaxPairs: -1}).Open(context.Background(), "go:doc"); err == nil {
		t.Error("a negative limit was accepted")
	}
}

func TestOpenUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read every file")
	}
	file := writeFile(t, "secret.mo", "")
	if err := os.Chmod(file, 0); err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"tsv:" + file, "mo:" + filepath.Dir(file)} {
		_, err := Open(context.Background(), spec, nil)
		if !errors.Is(err, fs.ErrPermission) ||
			!strings.Contains(err.Error(), "secret.mo: permission denied: make it readable") {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func TestNoGoSource(t *testing.T) {
	root := t.TempDir()
	t.Setenv("GOROOT", root)
	_, err := Open(context.Background(), "go:doc", nil)
	if want := "no Go source tree (file does not exist): install Go or set GOROOT"; !errors.Is(err,
		fs.ErrNotExist) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	writeAt(t, filepath.Join(root, "src"), "")
	if _, err := Open(context.Background(), "go:doc", nil); err == nil ||
		!strings.Contains(err.Error(), "is a file") {
		t.Errorf("src as a file: %v", err)
	}
}

func TestOpenCancelled(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	dir := filepath.Dir(writeFile(t, "a.mo", makeMO(false, [2]string{"a", "b"})))
	for _, spec := range []string{numbered(t, 5), "mo:" + dir} {
		if _, err := Open(ctx, spec, nil); !errors.Is(err, stop) {
			t.Errorf("%s: %v, want the cause", spec, err)
		}
	}
}

func TestInOrder(t *testing.T) {
	boom := errors.New("boom")
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 100).Draw(t, "n")
		bad := rapid.IntRange(0, 120).Draw(t, "fails from")
		limit := rapid.IntRange(1, 120).Draw(t, "uses")
		work := func(i int) (int, error) {
			if i >= bad {
				return 0, fmt.Errorf("%d: %w", i, boom)
			}
			return i * i, nil
		}
		var used []int
		err := inOrder(context.Background(), n, work, func(i, value int) bool {
			used = append(used, i)
			return value == i*i && len(used) < limit
		})
		want := min(n, bad, limit)
		if len(used) != want || !slices.IsSorted(used) {
			t.Fatalf("used %v, want the first %d", used, want)
		}
		if failed := bad < n && bad < limit; failed != errors.Is(err, boom) || failed &&
			!strings.HasPrefix(err.Error(), fmt.Sprint(bad, ":")) {
			t.Fatalf("error %v; fails: %v, from %d", err, failed, bad)
		}
	})
}
