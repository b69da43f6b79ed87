package images

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math/rand/v2"
	"strings"

	"github.com/gomem/gomem/data"
)

// Set is what Open read, split into a training and a held-out part.
type Set struct {
	Info       data.Info
	Classes    int      // kinds of images
	ClassNames []string // of kind i, whose label is i+1

	train, heldOut part

	whole  bool  // there is nothing to train on, and that is meant
	labels []int // by kind, where they are another model's; nil: one more than the kind
}

// part is one part of a set. Its methods are pure functions that any number of
// goroutines may call.
type part interface {
	len() int
	kind(i int) int // of image i, an index of ClassNames
	// paint fills a square with image i. With rng it is distorted in ways that
	// leave its kind what it is.
	paint(dst *image.RGBA, i int, rng *rand.Rand)
}

// Options bounds reading and seeds drawing. The zero value reads everything.
type Options struct {
	// MaxImages bounds the images of the training part, and of the held-out part; 0
	// means no limit. Files are taken in the order of a hash of their names, others
	// in their order.
	MaxImages int
	// Seed selects the images of a set that is drawn.
	Seed uint64
	// EvalShare is how large a part of the images is held out, above 0 and below 1; 0
	// means 1/50, of glyphs 1,000. A larger share holds out what a smaller one does, and
	// more. CIFAR-10 has a part for that, and takes none.
	EvalShare float64
	// Strict refuses files that would be left out.
	Strict bool
}

// Open reads the set that spec names (see the package comment for the specs).
// progress may be nil; it receives the number of files read so far, on the
// goroutine that called Open. A bad spec or file gives a *data.Error, a done ctx
// its cause.
func Open(ctx context.Context, spec string, o Options, progress func(files int)) (*Set, error) {
	scheme, path, _ := strings.Cut(spec, ":")
	r := &reader{ctx: ctx, opts: o, spec: spec, path: path, progress: progress}
	read, err := r.source(scheme)
	if err != nil {
		return nil, &data.Error{Spec: spec, Err: err, Misspelt: true}
	}
	s, err := read()
	if err != nil {
		return nil, err
	}
	s.Classes = len(s.ClassNames)
	s.Info.Spec, s.Info.Noun = spec, "image"
	s.Info.LeftOut, s.Info.First = r.leftOut, r.first
	if r.why != nil {
		s.Info.Why = r.why.Error()
	}
	s.Info.HeldOut = s.heldOut.len()
	s.Info.Pairs = s.train.len() + s.Info.HeldOut
	return s, r.check(s)
}

// reader is how one set is read.
type reader struct {
	ctx        context.Context
	opts       Options
	spec, path string
	progress   func(files int)

	leftOut int    // paths that cannot be read
	first   string // of these, the first,
	why     error  // and what is wrong with it
}

// source picks the method that reads scheme.
func (r *reader) source(scheme string) (func() (*Set, error), error) {
	const known = "give glyphs, dir:PATH, cifar10:DIR or icons:DIR"
	sources := map[string]func() (*Set, error){
		"dir": r.readDir, "cifar10": r.readCIFAR, "icons": r.readIcons,
	}
	switch {
	case r.opts.MaxImages < 0:
		return nil, fmt.Errorf("limit of %d images: give a positive number, or 0 for all",
			r.opts.MaxImages)
	case data.CheckEvalShare(r.opts.EvalShare) != nil:
		return nil, data.CheckEvalShare(r.opts.EvalShare)
	case r.spec == "":
		return nil, errors.New("empty spec: " + known)
	case r.spec == "glyphs":
		return r.readGlyphs, nil
	case sources[scheme] == nil:
		return nil, errors.New("unknown source: " + known)
	case r.path == "":
		return nil, errors.New("no path: " + known)
	case scheme == "cifar10" && r.opts.EvalShare != 0:
		return nil, errors.New("its test set is what is held out: give no share for evaluation")
	}
	return sources[scheme], nil
}

// check refuses a set that nothing can be learnt from.
func (r *reader) check(s *Set) error {
	switch {
	case s.train.len() == 0:
		return r.fail(r.path, errors.New("no image to train on: add some, or hold less out"))
	case s.Classes < 2:
		return r.fail(r.path, fmt.Errorf("one kind of images, %s: give two or more",
			s.ClassNames[0]))
	}
	return nil
}

// fail is an error of a file or directory.
func (r *reader) fail(path string, err error) error { return data.FileError(r.spec, path, err) }

// leaveOut counts a path that cannot be read and is passed over, or refuses it.
func (r *reader) leaveOut(path string, why error) error {
	if r.opts.Strict {
		return r.fail(path, why)
	}
	if r.leftOut == 0 {
		r.first, r.why = path, why
	}
	r.leftOut++
	return nil
}

// limit is how many of n images may be kept in a part.
func (r *reader) limit(n int) int {
	if r.opts.MaxImages == 0 {
		return n
	}
	return min(n, r.opts.MaxImages)
}

// step reports progress.
func (r *reader) step(files int) {
	if r.progress != nil {
		r.progress(files)
	}
}
