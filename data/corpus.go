package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
)

// Pair is one example: a text and what a model should make of it.
type Pair struct {
	Source, Target string
}

// Corpus is what Open read, split into two parts that share no source.
type Corpus struct {
	Info    Info
	Train   []Pair
	HeldOut []Pair

	whole bool // there is nothing to train on, and that is meant
}

// Info says what was read, so that a run can be repeated and compared.
type Info struct {
	Spec    string // as given to Open
	Path    string // the file or the root directory
	Files   int    // files read
	Noun    string // of an example; "" means pair
	Pairs   int    // examples: training and held-out together
	HeldOut int    // examples held out
	Dropped int    // examples left out, for Reason
	Reason  string // "" means an empty side, not UTF-8, or an exact repeat
	Skipped int    // files left out because they did not parse (go:doc)
	LeftOut int    // links, other paths that are no regular files, and what cannot be read
	First   string // of these, the first path,
	Why     string // and what is wrong with it
	Bytes   int64  // total size of the files read
	SHA256  string // of a line "SHA-256 NAME" a file, in the order read, in hex

	// Listing is of a line "SIZE NAME" a file. Checkpoints that were made before contents
	// were looked at tell data apart by it.
	Listing string
}

// String describes the corpus on one line.
func (i Info) String() string {
	noun := cmp.Or(i.Noun, "pair")
	s := fmt.Sprintf("%s: %s (%.1f MiB) of %s, %s (%d held out), sha256 %.16s", i.Spec,
		counted(i.Files, "file"),
		float64(i.Bytes)/(1<<20), i.Path, counted(i.Pairs, noun), i.HeldOut, i.SHA256)
	if i.Dropped > 0 {
		reason := cmp.Or(i.Reason, "repeated, untranslated or not UTF-8")
		s += fmt.Sprintf(", %s dropped (%s)", counted(i.Dropped, noun), reason)
	}
	if i.Skipped > 0 {
		why := "not parsed"
		if noun == "section" {
			why = "empty or not UTF-8"
		}
		s += fmt.Sprintf(", %s skipped (%s)", counted(i.Skipped, "file"), why)
	}
	if i.LeftOut > 0 {
		s += fmt.Sprintf(", %s left out, the first %s (%s)", counted(i.LeftOut, "path"),
			printable(i.First), i.Why)
	}
	return s
}

// counted gives n with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Options bounds and watches reading. The zero value reads everything.
type Options struct {
	// MaxPairs stops reading once that many pairs are kept; 0 means no limit.
	// The result is the first MaxPairs pairs of the whole corpus.
	MaxPairs int
	// EvalShare is how large a part of the pairs is held out, above 0 and below 1; 0
	// means 1/50. A larger share holds out what a smaller one does, and more.
	EvalShare float64
	// Progress, if not nil, is called with the number of files read so far. It
	// runs on the goroutine that called Open.
	Progress func(files int)
}

// Open reads the whole corpus that spec names (see the package comment for
// the specs). progress may be nil; it receives the number of files read so
// far. A bad spec or file gives an *Error, a done ctx its cause.
func Open(ctx context.Context, spec string, progress func(files int)) (*Corpus, error) {
	return Options{Progress: progress}.Open(ctx, spec)
}

// Open is the function Open with a limit on the number of pairs, and a share held out.
func (o Options) Open(ctx context.Context, spec string) (*Corpus, error) {
	scheme, arg, _ := strings.Cut(spec, ":")
	r := &reader{opts: o, list: NewDigest(), seen: map[Pair]struct{}{}}
	r.corpus.Info.Spec = spec
	read, err := r.source(scheme, arg)
	if err != nil {
		return nil, &Error{Spec: spec, Err: err, Misspelt: true}
	}
	if err := read(ctx, arg); err != nil {
		return nil, err
	}
	return r.finish()
}

// reader gathers one corpus.
type reader struct {
	opts   Options
	corpus Corpus
	list   *Digest           // of the files read
	seen   map[Pair]struct{} // the pairs kept
}

// source picks the method that reads scheme.
func (r *reader) source(scheme, arg string) (func(context.Context, string) error, error) {
	const known = "give go:doc, tsv:FILE, mo:DIR or text:FILE"
	switch {
	case r.opts.MaxPairs < 0:
		return nil, fmt.Errorf("limit of %d pairs: give a positive number, or 0 for all",
			r.opts.MaxPairs)
	case CheckEvalShare(r.opts.EvalShare) != nil:
		return nil, CheckEvalShare(r.opts.EvalShare)
	case scheme == "" && arg == "":
		return nil, errors.New("empty spec: " + known)
	case scheme == "go" && arg == "doc":
		return r.readGoDoc, nil
	case scheme != "tsv" && scheme != "mo" && scheme != "text":
		return nil, errors.New("unknown source: " + known)
	case arg == "":
		return nil, errors.New("no path: " + known)
	case scheme == "mo":
		return r.readCatalogues, nil
	case scheme == "tsv":
		return r.readTSV, nil
	}
	return r.readText, nil
}

// finish seals the corpus, which must not be empty.
func (r *reader) finish() (*Corpus, error) {
	info := &r.corpus.Info
	if info.Pairs == 0 {
		err := fmt.Errorf("no pairs in %s: give a source that holds some",
			counted(info.Files, "file"))
		return nil, &Error{Spec: info.Spec, Path: info.Path, Err: err}
	}
	r.list.Seal(info)
	return &r.corpus, nil
}

// full reports whether the limit on pairs is reached.
func (r *reader) full() bool {
	return r.opts.MaxPairs > 0 && r.corpus.Info.Pairs == r.opts.MaxPairs
}

// add keeps p in the part its source belongs to, unless p is unusable or the
// corpus is full.
func (r *reader) add(p Pair) {
	if r.full() {
		return
	}
	if _, repeated := r.seen[p]; repeated || p.Source == "" || p.Target == "" {
		r.corpus.Info.Dropped++
		return
	}
	r.seen[p] = struct{}{}
	r.corpus.Info.Pairs++
	if HeldOut(p.Source, r.opts.EvalShare) {
		r.corpus.Info.HeldOut++
		r.corpus.HeldOut = append(r.corpus.HeldOut, p)
	} else {
		r.corpus.Train = append(r.corpus.Train, p)
	}
}

// addFile enters a file into the list of what was read. A single file goes by the last
// element of its path.
func (r *reader) addFile(f File) {
	r.list.Add(f)
	r.corpus.Info.Files++
	r.corpus.Info.Bytes += f.Size
	if r.opts.Progress != nil {
		r.opts.Progress(r.corpus.Info.Files)
	}
}

// fail wraps err with where it happened.
func (r *reader) fail(path string, line int, err error) error {
	return &Error{Spec: r.corpus.Info.Spec, Path: path, Line: line, Err: err}
}

// hashString spreads strings evenly over 64 bits; FNV alone leaves the bits of
// short strings correlated.
func hashString(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return mix(h.Sum64())
}
