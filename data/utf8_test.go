package data

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// inUTF16 is a text in UTF-16, with a mark if it has one.
func inUTF16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// TestNoText: what is not UTF-8 is refused by every reader, with its file, its line, and what
// would make text of it. None of it is trained on.
func TestNoText(t *testing.T) {
	const pairs = "one\tun\ntwo\tdeux\nthree\ttrois\n"
	for name, c := range map[string]struct {
		content, want string
		line          int
	}{
		"UTF-16": {inUTF16(binary.LittleEndian, "\ufeff"+pairs),
			"UTF-16: convert the file, as by iconv -f UTF-16 -t UTF-8", 1},
		"UTF-16 big": {inUTF16(binary.BigEndian, "\ufeff"+pairs), "iconv -f UTF-16 -t UTF-8", 1},
		"UTF-16 without a mark": {inUTF16(binary.LittleEndian, pairs),
			"iconv -f UTF-16LE -t UTF-8", 1},
		"zero":   {"one\tun\ntwo\tdeux\nth\x00ree\ttrois\n", "a byte of zero", 3},
		"Latin":  {"one\tun\ncaf\xe9\tcoffee\n", "not UTF-8: convert the file, as by iconv", 2},
		"zeroes": {strings.Repeat("\x00", 5000), "a byte of zero", 1},
	} {
		path := writeFile(t, name, c.content)
		for _, read := range []func(spec string) error{
			func(spec string) error { _, err := Open(t.Context(), "tsv"+spec, nil); return err },
			func(spec string) error { _, err := Open(t.Context(), "text"+spec, nil); return err },
			func(spec string) error {
				_, err := OpenRunning(t.Context(), "text"+spec, nil)
				return err
			},
		} {
			err := read(":" + path)
			bad, ok := errors.AsType[*Error](err)
			if !ok || bad.Line != c.line || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want line %d with %q", name, err, c.line, c.want)
			}
		}
	}
}

// TestMarkAndEnds: a byte order mark of UTF-8, ends of lines as others write them and a last
// line without one change nothing.
func TestMarkAndEnds(t *testing.T) {
	var want *Corpus
	for i, content := range []string{"one\tun\ntwo\tdeux\n", "\ufeffone\tun\r\ntwo\tdeux\r\n",
		"one\tun\ntwo\tdeux"} {
		c, err := Open(t.Context(), "tsv:"+writeFile(t, "pairs.tsv", content), nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want = c
		}
		if len(c.Train) != 2 || c.Train[0] != want.Train[0] || c.Train[1] != want.Train[1] {
			t.Errorf("%q reads as %q", content, c.Train)
		}
	}
	for _, content := range []string{"", "\ufeff", "\n", "\ufeff\r\n"} {
		for _, spec := range []string{"text:", "tsv:"} {
			path := writeFile(t, "empty", content)
			if _, err := Open(t.Context(), spec+path, nil); err == nil {
				t.Errorf("%q is a corpus", content)
			}
		}
		if _, err := OpenRunning(t.Context(), "text:"+writeFile(t, "empty", strings.TrimSpace(
			content)), nil); err == nil || !strings.Contains(err.Error(), "no text in 1 file") {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestLinksOfFolders: what is passed over in a folder is counted and named, a loop of links is
// an error, and what is hidden is not there.
func TestLinksOfFolders(t *testing.T) {
	root := t.TempDir()
	writeAt(t, filepath.Join(root, "a.txt"), "some text\n")
	writeAt(t, filepath.Join(root, "latin.txt"), "caf\xe9\n")
	writeAt(t, filepath.Join(root, ".git", "b.txt"), "hidden\n")
	loop := filepath.Join(root, "loop.txt")
	if err := os.Symlink("loop.txt", loop); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRunning(t.Context(), "text:"+root, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 file (", "1 file skipped (empty or not UTF-8)",
		"1 path left out, the first " + loop + " (a link, or no regular file)"} {
		if have := r.Info.String(); !strings.Contains(have, want) {
			t.Errorf("%q does not say %q", have, want)
		}
	}
	for _, spec := range []string{"text:", "tsv:"} {
		_, err := Open(t.Context(), spec+loop, nil)
		if path, ok := errors.AsType[*Error](err); !ok || path.Line != 0 ||
			!strings.Contains(err.Error(), "too many") {
			t.Errorf("%s: %v", spec, err)
		}
	}
	if _, err := Open(t.Context(), "mo:"+loop, nil); err == nil {
		t.Error("a loop is a directory")
	}
	writeAt(t, filepath.Join(root, "._b.mo"), "what a Mac keeps of b.mo")
	if _, err := Open(t.Context(), "mo:"+root, nil); err == nil ||
		!strings.Contains(err.Error(), "no pairs in 0 files") {
		t.Errorf("a hidden catalogue: %v", err)
	}
}

// TestUnreadableFile: a file that may not be read is named.
func TestUnreadableFile(t *testing.T) {
	path := writeFile(t, "secret", "a\tb\n")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(path); err == nil {
		f.Close()
		t.Skip("this user may read everything")
	}
	_, err := Open(t.Context(), "tsv:"+path, nil)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "make it readable") {
		t.Errorf("%v", err)
	}
}

// TestDigestOfContents: a file that is edited has another digest though its size is the same;
// the listing, by which older checkpoints tell data apart, is what it was.
func TestDigestOfContents(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.txt")
	for spec, read := range map[string]func() Info{
		"tsv": func() Info {
			c, err := Open(t.Context(), "tsv:"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			return c.Info
		},
		"file": func() Info {
			r, err := OpenRunning(t.Context(), "text:"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r.Info
		},
		"folder": func() Info {
			r, err := OpenRunning(t.Context(), "text:"+dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r.Info
		},
	} {
		writeAt(t, path, "one\tun\n")
		before := read()
		writeAt(t, path, "one\tau\n")
		after := read()
		const listing = "c7bca974" // of the line "7 x.txt"
		if before.SHA256 == after.SHA256 || before.Listing != after.Listing ||
			len(before.Listing) != 64 || before.Listing[:8] != listing {
			t.Errorf("%s: %+v, then %+v", spec, before, after)
		}
	}
	limited, err := Options{MaxPairs: 1}.Open(t.Context(), "tsv:"+writeFile(t, "x.txt",
		"a\tb\n"+strings.Repeat("c\td\n", 1<<16)))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Options{MaxPairs: 1}.Open(t.Context(), "tsv:"+writeFile(t, "x.txt",
		"a\tb\n"+strings.Repeat("c\td\n", 1<<16-1)+"e\tf\n"))
	if err != nil || limited.Info.SHA256 == other.Info.SHA256 {
		t.Errorf("what is behind the last pair does not tell: %v", err)
	}
}

// FuzzLines: any file gives pairs or an error that names it, and no pair has what is no text.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\tb\n"))
	f.Add([]byte("\xff\xfea\x00\t\x00b\x00\n\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := Open(t.Context(), "tsv:"+writeFile(t, "fuzzed", string(content)), nil)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
			return
		}
		for _, p := range append(c.Train, c.HeldOut...) {
			if bytes.IndexByte([]byte(p.Source+p.Target), 0) >= 0 ||
				CheckUTF8(p.Source+p.Target) != nil {
				t.Errorf("%q is a pair", p)
			}
		}
	})
}
