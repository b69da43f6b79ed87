package lda

import (
	"fmt"
	"slices"
)

// Corpus is documents as the words that they have, by number; the words of a document are in
// ascending order, each as often as it comes.
type Corpus struct {
	Vocab int      // words there are
	Names []string // of the words; nil: they have none
	start []int64  // of each document but the first
	words []uint32
}

// Add adds a document of these words, in any order.
func (c *Corpus) Add(words []uint32) error {
	for _, w := range words {
		if int(w) >= c.Vocab {
			return fmt.Errorf("lda: word %d of document %d: there are %d", w, c.Docs(), c.Vocab)
		}
	}
	if c.Tokens()+len(words) > MaxTokens {
		return fmt.Errorf("lda: document %d is beyond the %d tokens that there may be", c.Docs(),
			MaxTokens)
	}
	c.words = append(c.words, words...)
	slices.Sort(c.words[c.Tokens()-len(words):])
	c.start = append(c.start, int64(len(c.words)))
	return nil
}

// Docs is how many documents there are.
func (c *Corpus) Docs() int { return len(c.start) }

// Tokens is how many words the documents have together.
func (c *Corpus) Tokens() int { return len(c.words) }

// Doc is the words of a document, not to be changed.
func (c *Corpus) Doc(i int) []uint32 {
	from := int64(0)
	if i > 0 {
		from = c.start[i-1]
	}
	return c.words[from:c.start[i]]
}

// frequencies are how often each word comes.
func (c *Corpus) frequencies() []int {
	n := make([]int, c.Vocab)
	for _, w := range c.words {
		n[w]++
	}
	return n
}

// block is some documents that lie together, with the topics of their tokens.
type block struct {
	first int     // the number of the first document
	start []int32 // of each document, and behind the last
	words []uint32
	topic []uint16
}

func (b *block) docs() int { return len(b.start) - 1 }

// doc is the words and topics of a document.
func (b *block) doc(d int) ([]uint32, []uint16) {
	from, to := b.start[d], b.start[d+1]
	return b.words[from:to], b.topic[from:to:to]
}

// scatter gives each token a topic that is drawn.
func (b *block) scatter(seed uint64, topics int) {
	for d := range b.docs() {
		rng := sourceOf(seed, 0, 0, uint64(b.first+d))
		_, topic := b.doc(d)
		for i := range topic {
			topic[i] = uint16(rng.below(topics))
		}
	}
}

// cuts divides weights into parts that lie together, as equal as they can be one after the other:
// part i is [cuts[i], cuts[i+1]).
func cuts(weights func(i int) int, n, parts int) []int {
	total := 0
	for i := range n {
		total += weights(i)
	}
	at, sum := make([]int, 1, parts+1), 0
	for i := range n {
		for len(at) < parts && sum*parts >= total*len(at) {
			at = append(at, i)
		}
		sum += weights(i)
	}
	for len(at) <= parts {
		at = append(at, n)
	}
	return at
}

// rounds is how many blocks there would be of documents [from, to).
func (c *Corpus) rounds(from, to, tokens int) (n int) {
	for ; from < to; n++ {
		from = c.behind(from, to, tokens)
	}
	return n
}

// behind is the document behind a block that begins with one.
func (c *Corpus) behind(from, to, tokens int) int {
	for sum := len(c.Doc(from)); ; {
		if from++; from >= to {
			return to
		}
		if sum += len(c.Doc(from)); sum > tokens {
			return from
		}
	}
}

// blocks divides documents [from, to) into blocks of so many tokens at most, or of one document.
func (c *Corpus) blocks(from, to, tokens int) (all []*block) {
	for from < to {
		b := &block{first: from, start: []int32{0}}
		for end := c.behind(from, to, tokens); from < end; from++ {
			b.words = append(b.words, c.Doc(from)...)
			b.start = append(b.start, int32(len(b.words)))
		}
		b.words = slices.Clip(b.words)
		b.topic = make([]uint16, len(b.words))
		all = append(all, b)
	}
	return all
}
