package data

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func openRunning(t *testing.T, spec string) *Running {
	t.Helper()
	r, err := OpenRunning(context.Background(), spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// all is the text of sections.
func joined(sections []Section) string {
	var b strings.Builder
	for _, s := range sections {
		b.WriteString(s.Text)
	}
	return b.String()
}

// TestSections: sections are the document in order, of at most three times the
// size where there are spaces, and the last ends it.
func TestSections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.StringN(1, 40, -1).Draw(t, "text"),
			rapid.IntRange(1, 30).Draw(t, "times"))
		size := rapid.IntRange(4, 50).Draw(t, "size")
		all := sections(text, size)
		if joined(all) != text {
			t.Fatalf("%v are not the text", all)
		}
		for i, s := range all {
			if s.Text == "" || s.Last != (i == len(all)-1) || len(s.Text) > 2*size+4 {
				t.Fatalf("section %d of %d is %q, last %v", i, len(all), s.Text, s.Last)
			}
		}
	})
	lines := sections(strings.Repeat("a line of text\n", 20), 50)
	if lines[0].Text != strings.Repeat("a line of text\n", 4) {
		t.Errorf("%q does not end with a line", lines[0].Text)
	}
}

func TestRunningFile(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "line %d of a book\n", i)
	}
	path := writeFile(t, "book.txt", "\ufeff"+b.String())
	r, again := openRunning(t, "text:"+path), openRunning(t, "text:"+path)
	if n := len(joined(r.Train)) + len(joined(r.HeldOut)); n != b.Len() {
		t.Errorf("%d bytes of %d", n, b.Len())
	}
	if len(r.HeldOut) == 0 || len(r.HeldOut) > 12 || len(r.Texts()) != len(r.Train) {
		t.Errorf("%d of %d sections held out", len(r.HeldOut), len(r.Train)+len(r.HeldOut))
	}
	if !slices.Equal(r.Train, again.Train) || r.Info != again.Info || r.Info.Files != 1 {
		t.Errorf("two readings differ: %v, %v", r.Info, again.Info)
	}
	if !strings.Contains(r.Info.String(), "sections") {
		t.Errorf("%s does not count sections", r.Info)
	}
}

// TestRunningFolder: what is no text is passed over, what is hidden not seen.
func TestRunningFolder(t *testing.T) {
	root := t.TempDir()
	for i := range 6 {
		writeAt(t, filepath.Join(root, fmt.Sprintf("%d/a.md", i)), fmt.Sprintf("text %d\n", i))
	}
	writeAt(t, filepath.Join(root, ".git/x"), "hidden")
	writeAt(t, filepath.Join(root, "picture"), "\x89PNG\x00")
	writeAt(t, filepath.Join(root, "empty"), "")
	r := openRunning(t, "text:"+root)
	if r.Info.Files != 6 || r.Info.Skipped != 2 || len(r.Train) != 5 || len(r.HeldOut) != 1 {
		t.Errorf("%s: %d sections to train on, %d held out", r.Info, len(r.Train), len(r.HeldOut))
	}
	for _, s := range slices.Concat(r.Train, r.HeldOut) {
		if !s.Last || !strings.HasPrefix(s.Text, "text ") {
			t.Errorf("section %v", s)
		}
	}
}

func TestRunningDeclarations(t *testing.T) {
	root := t.TempDir()
	t.Setenv("GOROOT", root)
	writeAt(t, filepath.Join(root, "src/p/p.go"), goSource)
	r := openRunning(t, "go:doc")
	all := slices.Concat(r.Train, r.HeldOut)
	want := Section{Text: "func Add(a int, b int) (sum int)\n    Add adds two numbers.\n",
		Last: true}
	if len(all) != 6 || !slices.Contains(all, want) {
		t.Errorf("%v lacks %v", all, want)
	}
}

func TestRunningRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		spec, want string
		misspelt   bool
	}{
		{"", "give go:doc, text:PATH or jsonl:FILE", true},
		{"tsv:x", "no running text", true},
		{"text:", "no path", true},
		{"text:" + dir + "/none", "check the path", false},
		{"text:" + dir, "no text in 0 files", false},
		{"text:" + writeFile(t, "empty", ""), "no text in 1 file", false},
		{"text:" + writeFile(t, "bad", "a\xff"), "not UTF-8: convert", false},
		{"text:" + writeFile(t, "zero", "a\x00"), "a byte of zero", false},
	} {
		r, err := OpenRunning(context.Background(), c.spec, nil)
		e, ok := errors.AsType[*Error](err)
		if r != nil || !ok || !strings.Contains(err.Error(), c.want) || e.Misspelt != c.misspelt ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v does not say %q", c.spec, err, c.want)
		}
	}
}

// running is a text of documents "0 0 0 0", "1 1 1 1", ….
func running(documents, words int) *Running {
	r := &Running{}
	for i := range documents {
		text := strings.TrimSpace(strings.Repeat(fmt.Sprintf("w%d ", i), words))
		r.Train = append(r.Train, Section{Text: text, Last: true})
	}
	r.HeldOut = []Section{{Text: "held out text", Last: true}, {Text: "and more", Last: true}}
	return r
}

// TestRunningLoader: an epoch's windows are consecutive tokens, none twice, with
// the next one as the target; and a held-out token is predicted once.
func TestRunningLoader(t *testing.T) {
	tok := learnt(t, 300)
	r := running(40, 6)
	stream := encodeGroup(r.Train, tok, opening)
	rapid.Check(t, func(t *rapid.T) {
		o := RunningOptions{Rows: rapid.IntRange(1, 4).Draw(t, "rows"),
			Length: rapid.IntRange(1, 20).Draw(t, "length"), Seed: rapid.Uint64().Draw(t, "seed")}
		l, err := NewRunningLoader(context.Background(), r, tok, o)
		if err != nil {
			t.Fatal(err)
		}
		epoch := rapid.IntRange(0, 3).Draw(t, "epoch")
		seen := map[int]bool{}
		for i := range l.StepsPerEpoch() {
			b := l.Train(epoch*l.StepsPerEpoch() + i)
			if b.Units != o.Rows*o.Length {
				t.Fatalf("%d units", b.Units)
			}
			for row := range o.Rows {
				ids := b.Inputs[0].I32()[row*o.Length:][:o.Length]
				next := b.Inputs[1].I32()[row*o.Length:][:o.Length]
				at := find(stream, append(slices.Clone(ids), next[o.Length-1]), seen)
				if at < 0 || !slices.Equal(ids[1:], next[:o.Length-1]) {
					t.Fatalf("%v, then %v, is no window", ids, next)
				}
			}
		}
		if n := len(seen); n != l.StepsPerEpoch()*o.Rows {
			t.Fatalf("%d windows in %d batches", n, l.StepsPerEpoch())
		}
		held := encodeGroup(r.HeldOut, tok, opening)
		units := 0
		for i := range l.HeldOutBatches() {
			b := l.HeldOut(i)
			units += b.Units
			for k, id := range b.Inputs[1].I32() {
				at := i*o.Rows*o.Length + k + 1
				if want := at < len(held); want != (id != NoTarget) || want && id != held[at] {
					t.Fatalf("target %d is %d of %v", at, id, held)
				}
			}
		}
		if units != len(held)-1 {
			t.Fatalf("%d targets of %d tokens", units, len(held))
		}
	})
}

// find is a place of window in stream that was not seen before.
func find(stream, window []int32, seen map[int]bool) int {
	for at := range len(stream) - len(window) + 1 {
		if !seen[at] && slices.Equal(stream[at:at+len(window)], window) {
			seen[at] = true
			return at
		}
	}
	return -1
}

// TestEncodeAll: groups, memories and cores do not show.
func TestEncodeAll(t *testing.T) {
	tok := learnt(t, 300)
	section := Section{Text: strings.Repeat(prose, 200), Last: true}
	var want []int32
	var all []Section
	for range 30 {
		all = append(all, section)
		want = append(append(want, tok.Encode(section.Text)...), tok.EOS())
	}
	got, err := encodeAll(context.Background(), all, tok, encodeGroup)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d ids, want %d; %v", len(got), len(want), err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if _, err := encodeAll(stopped, all, tok, encodeGroup); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

func TestRunningLoaderRefuses(t *testing.T) {
	tok := learnt(t, 300)
	for _, c := range []struct {
		o    RunningOptions
		want string
	}{
		{RunningOptions{Length: 4}, "0 rows"},
		{RunningOptions{Rows: 4}, "0 tokens"},
		{RunningOptions{Rows: 1 << 20, Length: 1 << 20}, "at most"},
		{RunningOptions{Rows: 100, Length: 20}, "do not fill one batch"},
	} {
		_, err := NewRunningLoader(context.Background(), running(3, 3), tok, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v does not say %q", c.o, err, c.want)
		}
	}
}
