package lda

import (
	"errors"
	"fmt"
)

// Limits of a model.
const (
	MaxTopics = 1<<16 - 1 // topics are numbered by 16 bits, one of which is no topic
	MaxTokens = 1<<31 - 1 // counts have 32 bits
)

// maxParts is how many parts there are at most: a sweep has as many steps, and each part keeps
// tables of its own.
const maxParts = 4096

// Options of a model. All but Threads decide its bits.
type Options struct {
	Topics      int
	Alpha, Beta float64 // priors of documents' topics and of topics' words
	Seed        uint64
	Cycles      int // a word and a document proposal each, of a token in a sweep; 0: 2
	Parts       int // of the documents, and slices of the vocabulary; 0: 4
	BlockTokens int // that a part has in memory at a time, a document at least; 0: 1 Mi
	Threads     int // that sample parts; 0: 1
}

// WithDefaults is the options with what zeros stand for.
func (o Options) WithDefaults() Options {
	for _, x := range []struct {
		field *int
		usual int
	}{{&o.Cycles, 2}, {&o.Parts, 4}, {&o.BlockTokens, 1 << 20}, {&o.Threads, 1}} {
		if *x.field == 0 {
			*x.field = x.usual
		}
	}
	return o
}

// Check reports what is wrong with the options.
func (o Options) Check() error {
	o = o.WithDefaults()
	positive := func(x float64) bool { return x > 0 && x < 1e6 }
	switch {
	case o.Topics < 1 || o.Topics > MaxTopics:
		return fmt.Errorf("lda: %d topics: want 1 to %d", o.Topics, MaxTopics)
	case !positive(o.Alpha) || !positive(o.Beta):
		return fmt.Errorf("lda: alpha %v and beta %v: want numbers above 0, below a million",
			o.Alpha, o.Beta)
	case o.Parts < 1 || o.Parts > maxParts:
		return fmt.Errorf("lda: %d parts: want 1 to %d", o.Parts, maxParts)
	case o.Cycles < 1 || o.BlockTokens < 1 || o.Threads < 1:
		return errors.New("lda: cycles, tokens of blocks and threads: want 1 or more")
	}
	return nil
}

// prior is what sampling adds to counts.
type prior struct {
	topics      int
	alpha, beta float64
	wide        float64 // beta of all words
}

func (o Options) prior(vocab int) prior {
	return prior{o.Topics, o.Alpha, o.Beta, float64(float64(vocab) * o.Beta)}
}
