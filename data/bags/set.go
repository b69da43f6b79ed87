// Package bags has documents as bags of words for topic models: drawn ones, whose topics are
// known, and those of files in the format of the UCI repository's "bag of words".
//
// A document is a row of a number for each word. Of a file it is how often the word comes, scaled
// so that squares add up to one: the squared loss of a document then does not depend on its length.
package bags

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/gomem/gomem/data"
)

// Options of [Open].
type Options struct {
	Seed          uint64
	EvalShare     float64 // of the documents, that is held out; 0: 0.02, of drawn ones 1,000
	Vocab, Topics int     // of what is drawn
}

// Set is documents.
type Set struct {
	Info           data.Info
	Vocab          int // words
	train, heldOut source
}

// source is some documents, each a function of its number.
type source interface {
	size() int
	// fill writes document i, from 0, over zeros.
	fill(i int, words []float32)
}

// Open reads or prepares the documents of a spec, "drawn" or "uci:FILE". The error is a
// *[data.Error], or ctx's cause.
func Open(ctx context.Context, spec string, o Options) (*Set, error) {
	const known = "give drawn or uci:FILE"
	scheme, arg, _ := strings.Cut(spec, ":")
	misspelt := func(err error) (*Set, error) {
		return nil, &data.Error{Spec: spec, Err: err, Misspelt: true}
	}
	switch {
	case data.CheckEvalShare(o.EvalShare) != nil:
		return misspelt(data.CheckEvalShare(o.EvalShare))
	case scheme == "drawn" && arg == "":
		return drawn(spec, o)
	case scheme != "uci":
		return misspelt(errors.New("unknown source: " + known))
	case arg == "":
		return misspelt(errors.New("no path: " + known))
	}
	return readUCI(ctx, spec, arg, o)
}

// Whole is the set with all documents held out: for an evaluation of other data than a model
// learnt from.
func (s *Set) Whole() *Set {
	w := *s
	w.train, w.heldOut = none{}, both{s.train, s.heldOut}
	w.Info.HeldOut = w.Info.Pairs
	return &w
}

// none is no documents.
type none struct{}

func (none) size() int           { return 0 }
func (none) fill(int, []float32) {}

// both is the documents of two, those of the first before the others.
type both [2]source

func (b both) size() int { return b[0].size() + b[1].size() }

func (b both) fill(i int, words []float32) {
	if n := b[0].size(); i >= n {
		b[1].fill(i-n, words)
		return
	}
	b[0].fill(i, words)
}

// checked is the set, if a model can learn from it.
func (s *Set) checked() (*Set, error) {
	if n := s.train.size(); n == 0 {
		return nil, &data.Error{Spec: s.Info.Spec, Err: errors.New("no documents to train on")}
	}
	return s, nil
}

// scaled makes squares add up to one. Nothing stays nothing.
func scaled(words []float32) {
	var sum float64
	for _, w := range words {
		sum += float64(float64(w) * float64(w))
	}
	if sum == 0 {
		return
	}
	by := float32(1 / math.Sqrt(sum))
	for i := range words {
		words[i] *= by
	}
}

// maxVocab is the most words that documents may have.
const maxVocab = 1 << 26

// checkVocab refuses as many words as no document has.
func checkVocab(n int) error {
	if n < 1 || n > maxVocab {
		return fmt.Errorf("%d words: want 1 to %d", n, maxVocab)
	}
	return nil
}
