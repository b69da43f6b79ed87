package data

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzRunning: running text that is read is the text of its files without marks of byte order,
// each section once, and takes memory by its size; of any other spec the error is an *Error of
// one line that names what was given.
func FuzzRunning(f *testing.F) {
	for _, c := range []struct {
		spec, first, second string
		share               float64
	}{
		{"text:a", "some text\n", "", 0}, {"text:.", "one\n", "other\n", 0.5},
		{"text:a", "\ufeff", "", 0}, {"text:a", "\ufeff\ufeffx", "", 0.9},
		{"text:a", "\xff", "", 0}, {"text:.", "\xff", "x", 0}, {"text:", "x", "x", 0},
		{"text:./a", strings.Repeat("é", 5000), strings.Repeat("\u2028", 900), 0.02},
		{"text:a", strings.Repeat("x", 20000), "", 0},
		{"text:.", strings.Repeat("\n", 3000), "", 1},
		{"text:none\u001b[31m", "", "", 0}, {"text:a/b", "x", "", 0}, {"text:\x00", "", "", 0},
		{"text:../a", "", "", 0}, {"text:a:b", "", "", 0}, {"text", "", "", 0}, {"\n:a", "", "", 0},
		{"text:a", "x y", "", -1}, {"text:a", "\x00\r\n\f", "", 0},
		{"text:" + strings.Repeat("a/", 3000), "", "", 0},
	} {
		f.Add(c.spec, c.first, c.second, c.share)
	}
	f.Fuzz(func(t *testing.T, spec, first, second string, share float64) {
		if scheme, path, _ := strings.Cut(spec, ":"); scheme == "go" || filepath.IsAbs(path) ||
			strings.Contains(path, "..") {
			return // what is outside of the folder
		}
		t.Chdir(t.TempDir())
		for name, text := range map[string]string{"a": first, "b": second} {
			if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Options{EvalShare: share}.OpenRunning(t.Context(), spec)
		runtime.ReadMemStats(&after)
		size := len(spec) + len(first) + len(second)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20+50*uint64(size) {
			t.Errorf("%d bytes take %d of memory", size, took)
		}
		if err != nil {
			odd := func(r rune) bool { return !unicode.IsPrint(r) }
			bad, ok := errors.AsType[*Error](err)
			if !ok || strings.ContainsFunc(err.Error(), odd) || !utf8.ValidString(err.Error()) {
				t.Fatalf("%q", err)
			}
			if bad.Spec != spec && bad.Path == "" {
				t.Errorf("%q names neither the spec nor the file", err)
			}
			return
		}
		checkRunning(t, r, first, second)
	})
}

// checkRunning compares running text with the files that it is of.
func checkRunning(t *testing.T, r *Running, first, second string) {
	read := map[string]bool{}
	for _, text := range []string{first, second} {
		if text = strings.TrimPrefix(text, "\ufeff"); utf8.ValidString(text) {
			read[text] = true
		}
	}
	document := ""
	for _, s := range r.inOrder {
		if document += s.Text; !s.Last {
			continue
		}
		if !read[document] {
			t.Errorf("%.100q is no document", document)
		}
		document = ""
	}
	n := len(r.Train) + len(r.HeldOut)
	if document != "" || n != len(r.inOrder) || n != r.Info.Pairs || len(r.Train) == 0 ||
		n > 1 && len(r.HeldOut) == 0 || len(r.HeldOut) != r.Info.HeldOut {
		t.Errorf("%d sections, %d trained on, %d held out, %+v, left: %.100q", len(r.inOrder),
			len(r.Train), len(r.HeldOut), r.Info, document)
	}
	if text := joined(r.inOrder); int64(len(text)) > r.Info.Bytes ||
		strings.Contains(r.Info.String(), "\n") {
		t.Errorf("%d bytes of text in %s", len(text), r.Info)
	}
}
