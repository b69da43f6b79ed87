package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

	whole     bool      // there is nothing to train on, and that is meant
	inOrder   []Section // all of them, in the order of the text
	documents bool      // sections are documents, each encoded as a text of its own
	packed    bool      // so they are, and rows have several whole ones
}

// Section is a part of a document, or all of a short one.
type Section struct {
	Text  string
	Given int  // bytes at its beginning that are given: nothing is to be learnt of them
	Last  bool // its document ends here
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
// all files below a folder that are text, each a document; "jsonl:PATH" is a file with a
// document a line, {"text": …} or {"prompt": …, "completion": …}, see [Running.Packed]; "go:doc" is
// a document for each documented declaration of the local Go toolchain. progress may be nil;
// it receives the number of files read so far. A bad spec or file gives an
// *[Error], a done ctx its cause.
func OpenRunning(ctx context.Context, spec string, progress func(files int)) (*Running, error) {
	return Options{Progress: progress}.OpenRunning(ctx, spec)
}

// OpenRunning is the function OpenRunning with a share held out: of the sections, or
// where the spec is go:doc, of the documents. A limit on the number of pairs is refused,
// since running text has none.
func (o Options) OpenRunning(ctx context.Context, spec string) (*Running, error) {
	scheme, path, _ := strings.Cut(spec, ":")
	switch err := CheckEvalShare(o.EvalShare); {
	case err != nil:
		return nil, &Error{Spec: spec, Misspelt: true, Err: err}
	case o.MaxPairs != 0:
		return nil, &Error{Spec: spec, Misspelt: true,
			Err: errors.New("running text has no pairs: leave their limit out")}
	case spec == "go:doc":
		return o.readDeclarations(ctx, spec)
	case scheme != "text" && scheme != "jsonl":
		return nil, &Error{Spec: spec, Misspelt: true,
			Err: errors.New("no running text: give go:doc, text:PATH or jsonl:FILE")}
	case path == "":
		return nil, &Error{Spec: spec, Misspelt: true,
			Err: errors.New("no path: give text:PATH, a file or a folder, or jsonl:FILE")}
	}
	r := &reader{opts: o, list: NewDigest()}
	r.corpus.Info = Info{Spec: spec, Path: path, Noun: "section"}
	if scheme == "jsonl" {
		return readJSONLines(ctx, r, path)
	}
	documents, err := r.readDocuments(ctx, path)
	if err != nil {
		return nil, err
	}
	return r.cutDocuments(documents)
}

// readDeclarations makes documents of go:doc's pairs, as "go doc" prints them.
func (o Options) readDeclarations(ctx context.Context, spec string) (*Running, error) {
	c, err := o.Open(ctx, spec)
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
	r := &Running{Info: c.Info, Train: documents(c.Train), HeldOut: documents(c.HeldOut)}
	r.inOrder = slices.Concat(r.HeldOut, r.Train)
	return r, nil
}

// readDocuments reads a file, or the files below a folder that are text, in the
// order of the hash of their paths.
func (r *reader) readDocuments(ctx context.Context, path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, r.fail(path, 0, Remedied(err))
	}
	if !info.IsDir() {
		d, err := r.readProse(filepath.Base(path), path)
		r.addFile(d.file)
		return []string{d.text}, err
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
	read := func(i int) (document, error) {
		d, err := r.readProse(filepath.ToSlash(names[i]), filepath.Join(root, names[i]))
		if errors.Is(err, errNoText) {
			return document{}, nil
		}
		return d, err
	}
	err = inOrder(ctx, len(names), read, func(i int, d document) bool {
		if d.text == "" {
			r.corpus.Info.Skipped++
			return true
		}
		documents = append(documents, d.text)
		r.addFile(d.file)
		return true
	})
	return documents, err
}

// shown accepts files and folders that are not hidden.
func shown(d fs.DirEntry) bool { return !strings.HasPrefix(d.Name(), ".") }

// errNoText is wrapped by the errors of a file that is not text. Among the files of a
// folder it is passed over.
var errNoText = errors.New("no text")

// document is a file of text, without a byte order mark.
type document struct {
	text string
	file File
}

// readProse reads a file of text.
func (r *reader) readProse(name, path string) (document, error) {
	raw, err := regular.ReadFile(path)
	if err != nil {
		return document{}, r.fail(path, 0, Remedied(err))
	}
	text := string(raw)
	if err := CheckUTF8(text); err != nil {
		return document{}, r.fail(path, faultyLine(text), fmt.Errorf("%w: %w", errNoText, err))
	}
	d := document{strings.TrimPrefix(text, "\ufeff"), FileOf(name, raw)}
	d.file.Size = int64(len(d.text))
	return d, nil
}

// cutDocuments makes sections, and holds some of them out.
func (r *reader) cutDocuments(documents []string) (*Running, error) {
	total := 0
	for _, d := range documents {
		total += len(d)
	}
	size := min(max(total/sectionsWanted, minSectionBytes), maxSectionBytes)
	var all []Section
	for _, d := range documents {
		all = append(all, sections(d, size)...)
	}
	return r.shared(all)
}

// shared holds some sections out.
func (r *reader) shared(all []Section) (*Running, error) {
	info := &r.corpus.Info
	if len(all) == 0 {
		return nil, r.fail(info.Path, 0, fmt.Errorf("no text in %s: give a file that has some",
			counted(info.Files, "file")))
	}
	chosen := held(all, r.opts.EvalShare)
	out := &Running{inOrder: all}
	for i, s := range all {
		if chosen[i] {
			out.HeldOut = append(out.HeldOut, s)
		} else {
			out.Train = append(out.Train, s)
		}
	}
	info.Pairs, info.HeldOut = len(all), len(out.HeldOut)
	r.list.Seal(info)
	out.Info = *info
	return out, nil
}

// held chooses sections by their hashes. Of two or more at least one is held out,
// whatever the share, and one is not, so that a larger share still holds out what a
// smaller one does: the section that is always held out is the first of those of the
// default share, or the one with the smallest hash if that has none.
func held(all []Section, share float64) []bool {
	chosen := make([]bool, len(all))
	if len(all) < 2 {
		return chosen
	}
	hashes, places := make([]uint64, len(all)), make([]int, len(all))
	for i, s := range all {
		hashes[i], places[i] = hashString(s.Text), i
		chosen[i] = heldOut(hashes[i], share)
	}
	first := slices.MinFunc(places, func(i, j int) int {
		a, _ := hashClass(hashes[i])
		b, _ := hashClass(hashes[j])
		return cmp.Or(cmp.Compare(min(a, 1), min(b, 1)), cmp.Compare(hashes[i], hashes[j]))
	})
	last := slices.MaxFunc(slices.Delete(places, first, first+1), func(i, j int) int {
		return byShare(hashes[i], hashes[j])
	})
	chosen[first] = true
	switch {
	case heldOut(hashes[last], 0): // and so are all: one stands for them
		chosen = make([]bool, len(all))
		chosen[first] = true
	case !slices.Contains(chosen, false):
		chosen[last] = false
	}
	return chosen
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
