package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/gomem/gomem/internal/regular"
)

// Running is running text, what a language model reads: documents in sections,
// each of which is trained on or held out.
type Running struct {
	Info    Info
	Train   []Section
	HeldOut []Section

	whole bool // there is nothing to train on, and that is meant
}

// Section is a part of a document, or all of a short one.
type Section struct {
	Text string
	Last bool // its document ends here
}

// Texts are the texts of the sections that are trained on, for [LearnTokenizer].
func (r *Running) Texts() []string {
	out := make([]string, len(r.Train))
	for i, s := range r.Train {
		out[i] = s.Text
	}
	return out
}

// The sizes of sections, in bytes: a 200th of all, within limits, so that even a
// single file of some pages has sections to hold out.
const (
	sectionsWanted  = 200
	minSectionBytes = 256
	maxSectionBytes = 8192
)

// OpenRunning reads the running text that spec names: "text:PATH" is a file, or
// all files below a folder that are text, each a document; "go:doc" is a document
// for each documented declaration of the local Go toolchain. progress may be nil;
// it receives the number of files read so far. A bad spec or file gives an
// *[Error], a done ctx its cause.
func OpenRunning(ctx context.Context, spec string, progress func(files int)) (*Running, error) {
	scheme, path, _ := strings.Cut(spec, ":")
	switch {
	case spec == "go:doc":
		return readDeclarations(ctx, spec, progress)
	case scheme != "text":
		return nil, &Error{Spec: spec, Misspelt: true,
			Err: errors.New("no running text: give go:doc or text:PATH")}
	case path == "":
		return nil, &Error{Spec: spec, Misspelt: true,
			Err: errors.New("no path: give text:PATH, a file or a folder")}
	}
	r := &reader{opts: Options{Progress: progress}, list: sha256.New()}
	r.corpus.Info = Info{Spec: spec, Path: path, Noun: "section"}
	documents, err := r.readDocuments(ctx, path)
	if err != nil {
		return nil, err
	}
	return r.cutDocuments(documents)
}

// readDeclarations makes documents of go:doc's pairs, as "go doc" prints them.
func readDeclarations(ctx context.Context, spec string, progress func(int)) (*Running, error) {
	c, err := Open(ctx, spec, progress)
	if err != nil {
		return nil, err
	}
	documents := func(pairs []Pair) []Section {
		out := make([]Section, len(pairs))
		for i, p := range pairs {
			out[i] = Section{Text: p.Target + "\n    " + p.Source + "\n", Last: true}
		}
		return out
	}
	c.Info.Noun = "declaration"
	return &Running{Info: c.Info, Train: documents(c.Train), HeldOut: documents(c.HeldOut)}, nil
}

// readDocuments reads a file, or the files below a folder that are text, in the
// order of the hash of their paths.
func (r *reader) readDocuments(ctx context.Context, path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, r.fail(path, 0, Remedied(err))
	}
	if !info.IsDir() {
		text, err := readProse(path)
		if err != nil {
			return nil, r.fail(path, 0, err)
		}
		r.addFile(filepath.Base(path), info.Size())
		return []string{text}, nil
	}
	root, err := r.directory(path)
	if err != nil {
		return nil, err
	}
	names, err := r.walk(ctx, root, shown)
	if err != nil {
		return nil, err
	}
	var documents []string
	read := func(i int) (string, error) {
		text, err := readProse(filepath.Join(root, names[i]))
		if err != nil && !errors.Is(err, errNoText) {
			return "", r.fail(filepath.Join(root, names[i]), 0, err)
		}
		return text, nil
	}
	err = inOrder(ctx, len(names), read, func(i int, text string) bool {
		if text == "" {
			r.corpus.Info.Skipped++
			return true
		}
		documents = append(documents, text)
		r.addFile(filepath.ToSlash(names[i]), int64(len(text)))
		return true
	})
	return documents, err
}

// shown accepts files and folders that are not hidden.
func shown(d fs.DirEntry) bool { return !strings.HasPrefix(d.Name(), ".") }

// errNoText is what is wrong with a file that is not text. Among the files of a
// folder it is passed over.
var errNoText = errors.New("not UTF-8 text: convert the file")

// readProse reads a file of text, without a byte order mark.
func readProse(path string) (string, error) {
	raw, err := regular.ReadFile(path)
	if err != nil {
		return "", Remedied(err)
	}
	if !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
		return "", errNoText
	}
	return strings.TrimPrefix(string(raw), "\ufeff"), nil
}

// cutDocuments makes sections, and holds some of them out: those whose hash says
// so, or else the one with the smallest hash.
func (r *reader) cutDocuments(documents []string) (*Running, error) {
	total := 0
	for _, d := range documents {
		total += len(d)
	}
	info := &r.corpus.Info
	size := min(max(total/sectionsWanted, minSectionBytes), maxSectionBytes)
	var all []Section
	for _, d := range documents {
		all = append(all, sections(d, size)...)
	}
	if len(all) == 0 {
		return nil, r.fail(info.Path, 0, fmt.Errorf("no text in %s: give a file that has some",
			counted(info.Files, "file")))
	}
	chosen, smallest := held(all)
	out := &Running{}
	for i, s := range all {
		if chosen[i] || smallest == i {
			out.HeldOut = append(out.HeldOut, s)
		} else {
			out.Train = append(out.Train, s)
		}
	}
	info.Pairs, info.HeldOut = len(all), len(out.HeldOut)
	info.SHA256 = fmt.Sprintf("%x", r.list.Sum(nil))
	out.Info = *info
	return out, nil
}

// held chooses sections by their hashes. If that is none or all, it gives the one
// with the smallest hash instead, −1 if there is only one.
func held(all []Section) (chosen []bool, smallest int) {
	chosen = make([]bool, len(all))
	n, smallest := 0, 0
	for i, s := range all {
		if heldOut(s.Text) {
			chosen[i] = true
			n++
		}
		if hashString(s.Text) < hashString(all[smallest].Text) {
			smallest = i
		}
	}
	switch {
	case len(all) == 1:
		return make([]bool, 1), -1
	case n == 0 || n == len(all):
		return make([]bool, len(all)), smallest
	}
	return chosen, -1
}

// sections cuts a document at ends of lines, into pieces of size bytes or little
// more; of more than twice that only where there is no space.
func sections(text string, size int) []Section {
	var out []Section
	for text != "" {
		n := sectionEnd(text, size)
		out = append(out, Section{Text: text[:n], Last: n == len(text)})
		text = text[n:]
	}
	return out
}

func sectionEnd(text string, size int) int {
	if len(text) <= 2*size {
		return len(text)
	}
	for _, end := range []string{"\n", " "} {
		if at := strings.Index(text[size:2*size], end); at >= 0 {
			return size + at + 1
		}
	}
	n := 2 * size
	for !utf8.RuneStart(text[n]) {
		n++
		if n == len(text) {
			return n
		}
	}
	return n
}
