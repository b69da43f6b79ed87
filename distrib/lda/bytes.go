package lda

import "math/bits"

// Bytes are how much memory a model takes at most, by what for.
type Bytes struct {
	Corpora   int64 // where documents begin, names and numbers of words, words that are in memory
	Blocks    int64 // documents with their topics, as far as they are in memory
	Table     int64 // topics of words
	Proposals int64 // alias tables and lists, of each thread
	Result    int64 // the table as it is handed out
	Sent      int64 // slices on their way between workers
	Kept      int64 // what is written down to go on from
	Rest      int64 // the program, and what is waiting to be used again
}

// Total is all of them.
func (b Bytes) Total() int64 { return b.held() + b.Rest }

func (b Bytes) held() int64 {
	return b.Corpora + b.Blocks + b.Table + b.Proposals + b.Result + b.Sent + b.Kept
}

// Use is who makes a model, and what for.
type Use struct {
	Rank, Workers int     // 0: one
	Kept          bool    // its state is written down, or handed out
	Held          *Corpus // that it is tried on; nil: none
}

// restBytes are those of a program that has nothing. Besides, a quarter of what it has is for what
// it has no more, so that the collector of that does not run all the time.
const restBytes = 32 << 20

// Bytes are those of a model of the corpus.
func (c *Corpus) Bytes(o Options, u Use) Bytes {
	o = o.WithDefaults()
	own := dealt(o.Parts, u.Rank, max(u.Workers, 1))
	d := c.divide(o)
	b := Bytes{Corpora: c.resident()}
	if u.Held != nil {
		b.Corpora += u.Held.resident()
	}
	b.Corpora += 8*int64(c.Vocab) + 8*int64(o.Parts) // the division's
	for _, of := range d.blocks {
		b.Corpora += 64 * int64(len(of))
	}
	for _, of := range d.blocks[own.from:own.to] {
		b.Blocks += blockBytes(of, c.shelf != nil)
	}
	b.tables(d, o, own, u)
	if u.Kept {
		b.Kept = 16*int64(c.Tokens()) + 4*int64(c.Vocab)*int64(o.Topics) + b.Result
	}
	b.Rest = restBytes + b.held()/4
	return b
}

// Traffic is that of a model of the corpus. Slices go round once for each block of the part that
// has most of them.
func (c *Corpus) Traffic(o Options, u Use) Traffic {
	o = o.WithDefaults()
	workers := max(u.Workers, 1)
	own := dealt(o.Parts, u.Rank, workers)
	d := c.divide(o)
	tokens := c.before(d.documents[own.to]) - c.before(d.documents[own.from])
	const word, topic = 4, 2
	t := Traffic{Disk: word*int64(c.Tokens()) + topic*tokens, Streamed: (word + 2*topic) * tokens}
	if workers == 1 {
		return t
	}
	rounds, k := int64(d.rounds()), int64(o.Topics)
	t.Sent = rounds * d.sent()
	// A number of a topic takes a byte, and another one if it is 64 or more, which few can be: a
	// token changes two of them by one.
	perLeg, legs := 8+k, rounds*int64(o.Parts)
	t.Sent += int64(workers-1) * (legs*perLeg + tokens/16)
	return t
}

// blockBytes are those of the blocks of a part: of two at a time, or of all.
func blockBytes(of []extent, two bool) (sum int64) {
	var docs, tokens int
	for _, e := range of {
		docs, tokens = max(docs, e.docs), max(tokens, e.tokens)
		sum += e.bytes()
	}
	if two {
		return 2 * extent{docs: docs, tokens: tokens}.bytes()
	}
	return sum
}

// tables adds those that do not depend on how many documents are in memory.
func (b *Bytes) tables(d *division, o Options, own span, u Use) {
	const rowBytes, cellBytes, entryBytes, sliceBytes = 40, 12, 8, 24
	parts := int64(own.to - own.from)
	var sent int64
	var tables []int64 // of the slices
	for i := range len(d.words) - 1 {
		var table, entries int64
		for _, n := range d.freq[d.words[i]:d.words[i+1]] {
			table += rowBytes + cellBytes*int64(mostCells(n, o.Topics))
			entries += int64(min(n, o.Topics))
		}
		tables = append(tables, table+table/8) // what is asked for is rounded up
		b.Table += tables[i]
		sent = max(sent, 6*entries) // numbers of one to five bytes
		b.Result += entryBytes * entries
	}
	vocab := int64(len(d.freq))
	b.Result += sliceBytes * vocab
	if u.Workers > 1 {
		// A worker has as many slices as its parts begin with, and one more that has come.
		b.Table = most(tables, perPart*int(parts)+1)
		b.Sent = 2 * atOnce * sent
	}
	r := d.room()
	threads := min(int64(o.Threads), parts)
	k := int64(o.Topics)
	b.Proposals = threads*(4*int64(r.words)+2*int64(r.listed)+8*int64(r.columns)+19*k) +
		parts*12*k + 12*k
}

// most is the most that so many of some numbers come to that follow each other in a ring.
func most(numbers []int64, n int) (most int64) {
	for i := range numbers {
		var sum int64
		for k := range min(n, len(numbers)) {
			sum += numbers[(i+k)%len(numbers)]
		}
		most = max(most, sum)
	}
	return most
}

// mostCells is the most cells that a row has of a word with so many tokens. Each of them may have
// had another topic when proposals were made.
func mostCells(tokens, topics int) int {
	return cellsFor(min(2*tokens, topics), topics, heavy(tokens, topics))
}

// resident is the memory that the corpus itself takes.
func (c *Corpus) resident() int64 {
	const nameBytes = 64 // of a name's place in a list and in a table, but for itself
	n := 8*int64(cap(c.end)+cap(c.freq)) + 4*int64(cap(c.words))
	for _, name := range c.Names {
		n += nameBytes + int64(len(name))
	}
	return n
}

// Fitting are options with blocks as large as they can be within so many bytes, !ok if there are
// none: powers of two of tokens, those that are asked for at most.
func (c *Corpus) Fitting(o Options, u Use, most int64) (_ Options, ok bool) {
	o = o.WithDefaults()
	for n := 1 << (bits.Len(uint(o.BlockTokens)) - 1); n >= 1<<10; n >>= 1 {
		if o.BlockTokens = n; c.Bytes(o, u).Total() <= most {
			return o, true
		}
	}
	return o, false
}
