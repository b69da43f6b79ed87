package lda

import "math/bits"

// column is one of an alias table: a number below the sum of all weights is below cut, or it is the
// other topic's.
type column struct {
	cut   uint32
	other uint16
}

// aliases appends the alias table of the counts of a heavy word (Vose 1991), in whole numbers: of
// len(cells) columns times their sum, each topic has exactly len(cells) times its count.
func (p *proposals) aliases(to []column, cells []cell, sum uint32) []column {
	n, at := uint64(len(cells)), len(to)
	left, stack := p.left, p.stack
	poor, rich := stack[:0], len(stack)
	for k, c := range cells {
		to = append(to, column{sum, uint16(k)})
		if left[k] = uint64(c.stale) * n; left[k] < uint64(sum) {
			poor = append(poor, uint16(k))
		} else {
			rich--
			stack[rich] = uint16(k)
		}
	}
	for len(poor) > 0 && rich < len(stack) {
		k, from := poor[len(poor)-1], stack[rich]
		poor = poor[:len(poor)-1]
		to[at+int(k)] = column{uint32(left[k]), from}
		left[from] -= uint64(sum) - left[k]
		if left[from] < uint64(sum) {
			rich++
			poor = append(poor, from)
		}
	}
	return to
}

// proposals are what the topics of words are drawn from, made of counts as they were when a visit
// came to the word: an alias table of a heavy word, and of a light one the topics of all its tokens
// in a list.
type proposals struct {
	at      []int32 // of each word of the slice, where its list or table begins, -1: it has none
	lists   []uint16
	columns []column

	seen  []uint64 // topics, a bit each
	stack []uint16
	left  []uint64 // what of a topic is in no column yet
}

// newProposals has room for those of the words of any slice.
func newProposals(r room, topics int) *proposals {
	return &proposals{at: make([]int32, 0, r.words), lists: make([]uint16, 0, r.listed),
		columns: make([]column, 0, r.columns), seen: make([]uint64, (topics+63)/64),
		stack: make([]uint16, topics), left: make([]uint64, topics)}
}

// reset forgets all, for a slice of so many words.
func (p *proposals) reset(words int) {
	p.at, p.lists, p.columns = p.at[:words], p.lists[:0], p.columns[:0]
	for i := range p.at {
		p.at[i] = -1
	}
}

// make makes those of a word.
func (p *proposals) make(word int, r *row) {
	r.freshen()
	if r.heavy {
		p.at[word] = int32(len(p.columns))
		p.columns = p.aliases(p.columns, r.cells, uint32(r.tokens))
		return
	}
	p.at[word] = int32(len(p.lists))
	for _, c := range r.cells {
		if c.count > 0 {
			p.seen[c.topic/64] |= 1 << (c.topic % 64)
		}
	}
	for i, set := range p.seen { // in ascending order, whatever the table's is
		for ; set != 0; set &= set - 1 {
			topic := uint16(64*i + bits.TrailingZeros64(set))
			for range r.find(topic).count {
				p.lists = append(p.lists, topic)
			}
		}
		p.seen[i] = 0
	}
}

// draw is a topic by the counts that the word had, plus beta.
func (p *proposals) draw(word int, r *row, x *prior, from *source) uint16 {
	n := float64(r.tokens)
	u := float64(from.unit() * (n + float64(float64(x.topics)*x.beta)))
	if u >= n {
		return uniform(u-n, x.beta, x.topics)
	}
	if !r.heavy {
		return p.lists[int(p.at[word])+int(u)]
	}
	k := from.below(x.topics)
	if c := p.columns[int(p.at[word])+k]; uint32(u) >= c.cut {
		return c.other
	}
	return uint16(k)
}

// uniform is the topic of a number below topics times each.
func uniform(u, each float64, topics int) uint16 { return uint16(min(int(u/each), topics-1)) }

// drawOf is a topic by the counts of a document, plus alpha: that of one of its tokens, or any.
func drawOf(doc []uint16, x *prior, from *source) uint16 {
	n := float64(len(doc))
	u := float64(from.unit() * (n + float64(float64(x.topics)*x.alpha)))
	if u >= n {
		return uniform(u-n, x.alpha, x.topics)
	}
	return doc[int(u)]
}
