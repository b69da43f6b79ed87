package speech

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"go/doc"
	"slices"
	"strings"

	"github.com/gomem/gomem/data"
)

// Utterance is a sentence that somebody speaks.
type Utterance struct {
	Text   string // in the letters of the set
	Path   string // of its WAV file; "" if it has none
	Frames int    // of its features

	features []float32         // where they are kept
	sum      [sha256.Size]byte // of its file
}

// Set is what [Open] read, split into two parts that share no text.
type Set struct {
	Info    data.Info // its Pairs are utterances
	Train   []Utterance
	HeldOut []Utterance
	Letters Letters // of all texts

	seed     uint64
	analyser *analyser
	whole    bool // there is nothing to train on, and that is meant
}

// Whole is the set with every utterance held out: for the evaluation of what was
// trained on other data. Nothing can be trained on it.
func (s *Set) Whole() *Set {
	w := *s
	w.Train, w.HeldOut, w.whole = nil, slices.Concat(s.HeldOut, s.Train), true
	w.Info.HeldOut = len(w.HeldOut)
	return &w
}

// Options bounds reading and selects voices. The zero value reads everything.
type Options struct {
	MaxUtterances int    // the first so many are kept; 0 means no limit
	Seed          uint64 // selects the voices of formant and espeak
	// EvalShare is how large a part of the utterances is held out, above 0 and below 1;
	// 0 means 1/50. A larger share holds out what a smaller one does, and more.
	EvalShare float64
	// Letters are those that a model knows: others are refused. Without, there are those
	// of [Alphabet] and, in files, as many others as they have.
	Letters Letters
}

// Open reads the set of utterances that spec names (see the package comment).
// progress may be nil; it receives the number of files read so far, or, of
// espeak, of sentences spoken, on the goroutine that called Open. A bad spec or
// file gives a *data.Error, a done ctx its cause.
func Open(ctx context.Context, spec string, o Options, progress func(done int)) (*Set, error) {
	if progress == nil {
		progress = func(int) {}
	}
	r := &reader{opts: o, progress: progress, list: data.NewDigest(), analyser: newAnalyser(),
		found: map[rune]bool{}}
	r.set = &Set{Info: data.Info{Spec: spec, Noun: "utterance"}, seed: o.Seed, analyser: r.analyser}
	scheme, arg, _ := strings.Cut(spec, ":")
	read, err := r.source(scheme, arg)
	if err != nil {
		return nil, &data.Error{Spec: spec, Err: err, Misspelt: true}
	}
	r.set.Info.Path = arg
	if err := read(ctx, arg); err != nil {
		return nil, err
	}
	return r.finish()
}

// reader gathers a set.
type reader struct {
	opts     Options
	progress func(done int)
	list     *data.Digest  // of the files read
	found    map[rune]bool // the letters of what was read
	analyser *analyser
	set      *Set
}

// source picks the method that reads scheme.
func (r *reader) source(scheme, arg string) (func(context.Context, string) error, error) {
	const known = "give formant, csv:FILE or espeak:FILE"
	switch {
	case r.opts.MaxUtterances < 0:
		return nil, fmt.Errorf("limit of %d utterances: give a positive number, or 0 for all",
			r.opts.MaxUtterances)
	case data.CheckEvalShare(r.opts.EvalShare) != nil:
		return nil, data.CheckEvalShare(r.opts.EvalShare)
	case scheme == "" && arg == "":
		return nil, errors.New("empty spec: " + known)
	case scheme == "formant" && arg == "":
		return r.readGoDoc, nil
	case scheme != "csv" && scheme != "espeak":
		return nil, errors.New("unknown source: " + known)
	case arg == "":
		return nil, errors.New("no path: " + known)
	case scheme == "csv":
		return r.readCSV, nil
	}
	return r.readESpeak, nil
}

// readGoDoc lists the first sentences of the doc comments of the local toolchain,
// each once. Those with digits or symbols are dropped.
func (r *reader) readGoDoc(ctx context.Context, _ string) error {
	// More than half of the comments have a sentence that is new and can be spoken.
	limit := 4 * min(r.opts.MaxUtterances, 1<<20)
	corpus, err := data.Options{MaxPairs: limit, Progress: r.progress}.Open(ctx, "go:doc")
	if bad, ok := errors.AsType[*data.Error](err); ok {
		bad.Spec = r.set.Info.Spec
	}
	if err != nil {
		return err
	}
	info := &r.set.Info
	info.Path, info.Files, info.Bytes, info.Skipped = corpus.Info.Path, corpus.Info.Files,
		corpus.Info.Bytes, corpus.Info.Skipped
	info.SHA256, info.Listing = corpus.Info.SHA256, corpus.Info.Listing
	info.Reason = "repeated, or with digits or symbols"
	seen := map[string]bool{}
	for _, pairs := range [][]data.Pair{corpus.Train, corpus.HeldOut} {
		for _, p := range pairs {
			r.addSentence(new(doc.Package).Synopsis(p.Source), seen)
		}
	}
	return nil
}

// addSentence adds a sentence to be spoken by the formant synthesiser, if it is
// new and can be.
func (r *reader) addSentence(s string, seen map[string]bool) {
	text, err := normalise(s, true)
	if err != nil || seen[text] {
		r.set.Info.Dropped++
		return
	}
	seen[text] = true
	_, samples := voiceOf(text, r.opts.Seed).score(text)
	r.add(Utterance{Text: text, Frames: Frames(samples)})
}

// finish seals the set, which must not be empty.
func (r *reader) finish() (*Set, error) {
	info := &r.set.Info
	if info.Pairs == 0 {
		return nil, r.fail(info.Path, 0, errors.New("no utterances: give a source that holds some"))
	}
	if info.SHA256 == "" {
		r.list.Seal(info)
	}
	if r.set.Letters = r.opts.Letters; r.set.Letters == nil {
		r.set.Letters = English().with(r.found)
	}
	return r.set, nil
}

// full reports whether the limit on utterances is reached.
func (r *reader) full() bool {
	return r.opts.MaxUtterances > 0 && r.set.Info.Pairs == r.opts.MaxUtterances
}

// add keeps u in the part that its text belongs to, unless the set is full.
func (r *reader) add(u Utterance) {
	if r.full() {
		return
	}
	r.set.Info.Pairs++
	if data.HeldOut(u.Text, r.opts.EvalShare) { // whoever speaks it
		r.set.Info.HeldOut++
		r.set.HeldOut = append(r.set.HeldOut, u)
	} else {
		r.set.Train = append(r.set.Train, u)
	}
}

// addFile enters a file into the list of what was read.
func (r *reader) addFile(f data.File) {
	r.list.Add(f)
	r.set.Info.Files++
	r.set.Info.Bytes += f.Size
	r.progress(r.set.Info.Files)
}

// fail wraps err with where it happened.
func (r *reader) fail(path string, line int, err error) error {
	return &data.Error{Spec: r.set.Info.Spec, Path: path, Line: line, Err: err}
}
