package lda

import (
	"slices"

	"github.com/gomem/gomem/internal/libm"
)

// Entry is how many tokens of a word a topic has.
type Entry struct {
	Topic uint16
	N     uint32
}

// Table is a word-topic table, which says what new documents are about.
type Table struct {
	prior
	words [][]Entry // in ascending order of topics
	each  []float64 // of a topic: 1 over its tokens and beta of all words
}

// NewTable is the table of words that have these topics, in ascending order.
func NewTable(words [][]Entry, o Options) *Table {
	t := &Table{prior: o.prior(len(words)), words: words, each: make([]float64, o.Topics)}
	for _, entries := range words {
		for _, e := range entries {
			t.each[e.Topic] += float64(e.N)
		}
	}
	for k, n := range t.each {
		t.each[k] = 1 / (n + t.wide)
	}
	return t
}

// Words is the topics of each word.
func (t *Table) Words() [][]Entry { return t.words }

// Topics is how much of a document each topic has: the most likely distribution, of words that
// are given by the table, by expectation-maximisation (Dempster, Laird and Rubin 1977) from equal
// parts. They add up to 1.
func (t *Table) Topics(words []uint32) []float64 {
	const steps = 30
	share, next := make([]float64, t.topics), make([]float64, t.topics)
	for k := range share {
		share[k] = 1 / float64(t.topics)
	}
	for range steps {
		clear(next)
		floor, inverse := t.floor(share), 0.0
		for _, w := range words {
			p := 1 / t.likely(w, share, floor)
			inverse += p
			for _, e := range t.words[w] {
				next[e.Topic] += float64(float64(e.N) * p)
			}
		}
		for k := range next {
			of := float64(float64(share[k]*t.each[k]) * (next[k] + float64(t.beta*inverse)))
			share[k] = (t.alpha + of) / (float64(len(words)) + float64(float64(t.topics)*t.alpha))
		}
	}
	return share
}

// floor is how likely a word is that comes nowhere.
func (t *Table) floor(share []float64) (sum float64) {
	for k, x := range share {
		sum += float64(x * t.each[k])
	}
	return float64(sum * t.beta)
}

// likely is how likely a word is.
func (t *Table) likely(word uint32, share []float64, floor float64) float64 {
	for _, e := range t.words[word] {
		floor += float64(float64(share[e.Topic]*t.each[e.Topic]) * float64(e.N))
	}
	return floor
}

// Complete is how likely the table finds one half of the words of documents, by the topics that the
// other half has: the sum of logarithms, and of how many words it is. Of a document in ascending
// order, it is every second word, from the second.
func (t *Table) Complete(c *Corpus) (logLikelihood float64, tokens int) {
	for d := range c.Docs() {
		var halves [2][]uint32
		for i, w := range c.Doc(d) {
			halves[i%2] = append(halves[i%2], w)
		}
		share := t.Topics(halves[0])
		floor := t.floor(share)
		for _, w := range halves[1] {
			logLikelihood += libm.Log(t.likely(w, share, floor))
		}
		tokens += len(halves[1])
	}
	return logLikelihood, tokens
}

// Perplexity is e to the loss of a token, of the log-likelihood of so many.
func Perplexity(logLikelihood float64, tokens int) float64 {
	return libm.Exp(-logLikelihood / float64(max(tokens, 1)))
}

// Top is the words of each topic that have most of its tokens, the first ones n at most.
func (t *Table) Top(n int) [][]int {
	type ranked struct {
		word int
		n    uint32
	}
	best := make([][]ranked, t.topics)
	for w, entries := range t.words {
		for _, e := range entries {
			at := len(best[e.Topic])
			for at > 0 && best[e.Topic][at-1].n < e.N {
				at--
			}
			if at < n {
				words := slices.Insert(best[e.Topic], at, ranked{w, e.N})
				best[e.Topic] = words[:min(n, len(words))]
			}
		}
	}
	top := make([][]int, t.topics)
	for k, words := range best {
		for _, r := range words {
			top[k] = append(top[k], r.word)
		}
	}
	return top
}
