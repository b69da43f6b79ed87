package lda

import (
	"fmt"
	"os"
	"slices"
)

// Corpus is documents as the words that they have, by number; the words of a document are in
// ascending order, each as often as it comes.
type Corpus struct {
	Vocab int      // words there are
	Names []string // of the words; nil: they have none

	end   []int64  // of each document: tokens up to there
	freq  []int    // how often each word comes, up to the last one that does
	words []uint32 // of all documents; on a shelf, those that are not in its file yet
	dir   string   // of the shelf
	shelf *scratch[uint32]
}

// Shelved is an empty corpus whose words are in a file of a directory, and not in memory; "" is the
// system's for temporary files. Close removes it.
func Shelved(dir string) (*Corpus, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	s, err := newScratch[uint32](dir)
	return &Corpus{dir: dir, shelf: s}, err
}

// Shelf is the directory of the file that words are in, !ok if they are in memory.
func (c *Corpus) Shelf() (dir string, ok bool) { return c.dir, c.shelf != nil }

// Close removes the file of a corpus that has one.
func (c *Corpus) Close() error {
	if c.shelf == nil {
		return nil
	}
	return c.shelf.Close()
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
	for _, w := range words {
		for int(w) >= len(c.freq) {
			c.freq = append(c.freq, 0)
		}
		c.freq[w]++
	}
	c.end = append(c.end, int64(c.Tokens()+len(words)))
	c.words = append(c.words, words...)
	slices.Sort(c.words[len(c.words)-len(words):])
	if c.shelf != nil && len(c.words) >= chunk {
		return c.put()
	}
	return nil
}

// put has all words be in the shelf's file.
func (c *Corpus) put() error {
	err := c.shelf.write(int64(c.Tokens()-len(c.words)), c.words)
	c.words = c.words[:0]
	return err
}

// Docs is how many documents there are.
func (c *Corpus) Docs() int { return len(c.end) }

// Tokens is how many words the documents have together.
func (c *Corpus) Tokens() int { return int(c.before(len(c.end))) }

// before is how many tokens there are before a document.
func (c *Corpus) before(i int) int64 {
	if i == 0 {
		return 0
	}
	return c.end[i-1]
}

func (c *Corpus) length(i int) int { return int(c.end[i] - c.before(i)) }

// Doc is the words of a document, not to be changed, of a corpus that is in memory.
func (c *Corpus) Doc(i int) []uint32 { return c.words[c.before(i):c.end[i]] }

// read copies the words from a number on.
func (c *Corpus) read(from int64, to []uint32) error {
	if c.shelf == nil {
		copy(to, c.words[from:])
		return nil
	}
	return c.shelf.read(from, to)
}

// whole is all documents.
func (c *Corpus) whole() extent { return extent{docs: c.Docs(), tokens: c.Tokens()} }

// Frequencies are how often each word comes.
func (c *Corpus) Frequencies() []int {
	return append(slices.Clip(c.freq), make([]int, c.Vocab-len(c.freq))...)
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
