package lda

import (
	"cmp"
	"math/bits"
	"slices"
)

// cell is a topic of a word: how many of the word's tokens it has, and how many it had when the
// word's proposals were made.
type cell struct {
	count, stale uint32
	topic        uint16 // noTopic: the cell is free
}

const noTopic = 1<<16 - 1

// row is the topics of a word, as a hash table with open addressing. Where that would have as many
// cells as there are topics, it is a dense row, with a cell for each, whose hash is the topic
// itself: it is read as any. The row of a heavy word is dense for good.
type row struct {
	cells  []cell // a power of two of them, unless it is dense
	factor uint32 // the hash of a topic is its product with it,
	shift  uint8  // without so many bits
	heavy  bool
	topics uint16 // that there are
	used   int32  // cells that are not free
	tokens int32  // of the word
}

// scatter is odd, and near 2^32 by the golden ratio: Fibonacci hashing (Knuth, volume 3, 6.4).
const scatter = 0x9e3779b1

// newRow is a row of a word that has so many tokens, none of which is counted yet.
func newRow(tokens, topics int) row {
	r := row{tokens: int32(tokens), topics: uint16(topics), heavy: heavy(tokens, topics)}
	r.resize(0)
	return r
}

// heavy reports whether a word has so many tokens that a cell for each topic is less than them.
func heavy(tokens, topics int) bool { return tokens >= 4*topics }

// cellsFor is how many cells a row is made with that has so many topics of all of them, live.
func cellsFor(live, topics int, heavy bool) int {
	n := max(4, 1<<bits.Len(uint(3*live)))
	if heavy || n > topics {
		return topics
	}
	return n
}

// resize is a table of free cells, enough for so many topics.
func (r *row) resize(live int) {
	n := cellsFor(live, int(r.topics), r.heavy)
	r.cells, r.used = make([]cell, n), 0
	if r.dense() {
		r.factor, r.shift, r.used = 1, 0, int32(n)
		for k := range r.cells {
			r.cells[k].topic = uint16(k)
		}
		return
	}
	r.factor, r.shift = scatter, uint8(32-bits.TrailingZeros(uint(n)))
	for i := range r.cells {
		r.cells[i].topic = noTopic
	}
}

// dense reports whether each topic has a cell of its own.
func (r *row) dense() bool { return len(r.cells) == int(r.topics) }

// find is the cell of a topic, or the free one where it would be, whose counts are 0.
func (r *row) find(topic uint16) *cell {
	i := uint32(topic) * r.factor >> r.shift
	for {
		c := &r.cells[i]
		if c.topic == topic || c.topic == noTopic {
			return c
		}
		if i++; i == uint32(len(r.cells)) {
			i = 0
		}
	}
}

// add counts a token of a topic, whose cell was found.
func (r *row) add(topic uint16, c *cell) {
	c.count++
	if c.topic != noTopic {
		return
	}
	c.topic = topic
	if r.used++; int(r.used)*2 > len(r.cells) {
		r.rehash()
	}
}

// put counts tokens of a topic.
func (r *row) put(topic uint16, n int) {
	c := r.find(topic)
	c.count += uint32(n) - 1
	r.add(topic, c)
}

// each visits the topics that the word has, in ascending order if it is heavy.
func (r *row) each(visit func(topic uint16, n uint32)) {
	for _, c := range r.cells {
		if c.count > 0 {
			visit(c.topic, c.count)
		}
	}
}

// entries are the topics that the word has, in ascending order.
func (r *row) entries() []Entry {
	n := 0
	r.each(func(uint16, uint32) { n++ })
	all := make([]Entry, 0, n)
	r.each(func(topic uint16, n uint32) { all = append(all, Entry{topic, n}) })
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Topic, b.Topic) })
	return all
}

// rehash makes room, and leaves out the cells of topics that the word has no more.
func (r *row) rehash() {
	old, live := r.cells, 0
	for _, c := range old {
		if c.count+c.stale > 0 {
			live++
		}
	}
	r.resize(live)
	for _, c := range old {
		if c.count+c.stale == 0 {
			continue
		}
		to := r.find(c.topic)
		if to.topic == noTopic {
			r.used++
		}
		*to = c
	}
}

// freshen notes the counts as those that proposals are made by, and leaves out the cells of topics
// that the word has no more where they are most.
func (r *row) freshen() {
	live := 0
	for i := range r.cells {
		c := &r.cells[i]
		if c.stale = c.count; c.count > 0 {
			live++
		}
	}
	if int(r.used) > 2*live+4 && cellsFor(live, int(r.topics), r.heavy) < int(r.topics) {
		r.rehash()
	}
}
