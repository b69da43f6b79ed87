package lda

// extent is which documents a block has, and where in the corpus its tokens are.
type extent struct {
	first, docs int   // the number of the first document, and how many there are
	at          int64 // tokens before it
	tokens      int
}

// bytes are those of a block in memory.
func (e extent) bytes() int64 { return 6*int64(e.tokens) + 4*int64(e.docs+1) }

// block is some documents that lie together, with the topics of their tokens.
type block struct {
	extent
	start []int32 // of each document, and behind the last
	words []uint32
	topic []uint16
}

// newBlock has room for these extents, one at a time.
func newBlock(extents ...extent) *block {
	var docs, tokens int
	for _, e := range extents {
		docs, tokens = max(docs, e.docs), max(tokens, e.tokens)
	}
	return &block{start: make([]int32, docs+1), words: make([]uint32, tokens),
		topic: make([]uint16, tokens)}
}

// lay has the block be of an extent, without its words and topics.
func (b *block) lay(c *Corpus, e extent) {
	b.extent, b.start = e, b.start[:e.docs+1]
	b.words, b.topic = b.words[:e.tokens], b.topic[:e.tokens]
	for d := range e.docs {
		b.start[d+1] = int32(c.end[e.first+d] - e.at)
	}
}

// doc is the words and topics of a document.
func (b *block) doc(d int) ([]uint32, []uint16) {
	from, to := b.start[d], b.start[d+1]
	return b.words[from:to], b.topic[from:to:to]
}

// scatter gives each token a topic that is drawn.
func (b *block) scatter(seed uint64, topics int) {
	for d := range b.docs {
		rng := sourceOf(seed, 0, 0, uint64(b.first+d))
		_, topic := b.doc(d)
		for i := range topic {
			topic[i] = uint16(rng.below(topics))
		}
	}
}

// extents divides documents [from, to) into blocks of so many tokens at most, or of one document.
func (c *Corpus) extents(from, to, tokens int) (all []extent) {
	for from < to {
		e := extent{first: from, at: c.before(from)}
		for e.docs == 0 || from < to && e.tokens+c.length(from) <= tokens {
			e.tokens += c.length(from)
			e.docs++
			from++
		}
		all = append(all, e)
	}
	return all
}
