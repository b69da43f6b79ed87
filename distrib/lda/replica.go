package lda

import (
	"cmp"
	"slices"

	"github.com/gomem/gomem/distrib"
)

// Replica is the documents of one of several workers who share the word-topic table by servers
// (PLDA: Wang et al. 2009, after Newman, Asuncion, Smyth and Welling 2009). It samples them by rows
// as it last read them, which lack what others do meanwhile, and says by how much its own tokens
// change the table. What all say is added up, so the table always counts all tokens.
type Replica struct {
	Options
	prior
	freq    []int
	blocks  []*block // documents of a clock each
	slice   slice    // all words; rows of those that are sampled
	sampler *sampler
}

// Drawn is the topics of a corpus' tokens at the beginning, of a corpus that is in memory.
func Drawn(c *Corpus, o Options) []uint16 {
	b := newBlock(c.whole())
	b.lay(c, c.whole())
	b.scatter(o.Seed, o.Topics)
	return b.topic
}

// Count is the word-topic table of a corpus that is in memory, whose tokens have these topics.
func Count(c *Corpus, topics []uint16, k int) [][]Entry {
	b := newBlock(c.whole())
	b.lay(c, c.whole())
	b.words, b.topic = c.words, topics
	s := newSlice(0, c.Frequencies(), k)
	s.count(b)
	words := make([][]Entry, len(s.rows))
	for w := range s.rows {
		words[w] = s.rows[w].entries()
	}
	return words
}

// NewReplica is the documents of a worker among several, of a corpus that is in memory, whose
// tokens have these topics. They are in Parts parts, each with about as many tokens.
func NewReplica(c *Corpus, topics []uint16, o Options, worker, of int) *Replica {
	o = o.WithDefaults()
	r := &Replica{Options: o, prior: o.prior(c.Vocab), freq: c.Frequencies(),
		slice: slice{rows: make([]row, c.Vocab)}}
	r.sampler = newSampler(r.prior, o.Cycles)
	r.sampler.proposals = newProposals(room{words: c.Vocab}, o.Topics)
	own := cuts(c.length, c.Docs(), of)[worker:]
	parts := cuts(func(i int) int { return c.length(own[0] + i) }, own[1]-own[0], o.Parts)
	for p := range o.Parts {
		e := extent{first: own[0] + parts[p], docs: parts[p+1] - parts[p],
			at: c.before(own[0] + parts[p])}
		e.tokens = int(c.before(own[0]+parts[p+1]) - e.at)
		b := newBlock(e)
		b.lay(c, e)
		copy(b.words, c.words[e.at:])
		copy(b.topic, topics[e.at:])
		r.blocks = append(r.blocks, b)
	}
	return r
}

// Words are the words of a part's documents, in ascending order.
func (r *Replica) Words(part int) []uint32 {
	words := slices.Clone(r.blocks[part].words)
	slices.Sort(words)
	return slices.Compact(words)
}

// Part is the topics of a part's tokens, not to be changed, of which the first has that number.
func (r *Replica) Part(part int) (first int, topics []uint16) {
	return int(r.blocks[part].at), r.blocks[part].topic
}

// Change is what is to be added to the row of a word.
type Change struct {
	Word int
	distrib.Ints
}

// Sample samples each token of a part once, in a sweep of that number: by the rows of its words and
// the topic summary as they are known. It returns what that changes of the table, by word, and of
// the summary. A count that is less than nothing, as it may be where changes come by halves, counts
// as nothing.
func (r *Replica) Sample(part, sweep int, of func(word uint32) distrib.Ints,
	summary distrib.Ints) ([]Change, distrib.Ints) {
	b := r.blocks[part]
	for _, w := range r.Words(part) {
		r.read(w, of(w))
	}
	clear(r.sampler.all)
	for k, n := range summary.All() {
		r.sampler.all[k] = max(n, 0)
	}
	before := slices.Clone(b.topic)
	r.sampler.sample(b, &r.slice, r.Seed, sweep)
	return changes(b.moves(before), r.Options.Topics)
}

// read takes the row of a word.
func (r *Replica) read(word uint32, u distrib.Ints) {
	x := newRow(r.freq[word], r.Options.Topics)
	x.tokens = 0
	for k, n := range u.All() {
		if n > 0 {
			x.put(uint16(k), int(n))
			x.tokens += n
		}
	}
	r.slice.rows[word] = x
}

// move is a token of a word that a topic has lost, or got.
type move struct {
	word  uint32
	topic uint16
	n     int32
}

// moves are those since the tokens had other topics, by word and topic.
func (b *block) moves(before []uint16) (list []move) {
	for i, k := range b.topic {
		if was := before[i]; was != k {
			list = append(list, move{b.words[i], was, -1}, move{b.words[i], k, 1})
		}
	}
	slices.SortFunc(list, func(x, y move) int {
		return cmp.Or(cmp.Compare(x.word, y.word), cmp.Compare(x.topic, y.topic))
	})
	return list
}

// changes are what moves come to of the table and of the summary.
func changes(moves []move, topics int) (list []Change, all distrib.Ints) {
	sum := make([]int32, topics)
	for len(moves) > 0 {
		m := moves[0]
		for moves = moves[1:]; len(moves) > 0 && moves[0].word == m.word &&
			moves[0].topic == m.topic; moves = moves[1:] {
			m.n += moves[0].n
		}
		if m.n == 0 {
			continue
		}
		if len(list) == 0 || list[len(list)-1].Word != int(m.word) {
			list = append(list, Change{int(m.word), distrib.Ints{N: topics}})
		}
		list[len(list)-1].add(m.topic, m.n)
		sum[m.topic] += m.n
	}
	total := Change{Ints: distrib.Ints{N: topics}}
	for k, n := range sum {
		if n != 0 {
			total.add(uint16(k), n)
		}
	}
	return list, total.Ints
}

// add notes the next topic's tokens.
func (c *Change) add(topic uint16, n int32) {
	c.Idx, c.Val = append(c.Idx, uint32(topic)), append(c.Val, n)
}

// LogLikelihood is this worker's share of what [Model.LogLikelihood] is, of its own documents and
// of some rows of the table. The first worker's has the topic summary, too; nil: another's.
func (r *Replica) LogLikelihood(rows []distrib.Ints, summary *distrib.Ints) (sum float64) {
	ofDoc, long := newRising(r.Alpha), newRising(float64(float64(r.Options.Topics)*r.Alpha))
	for _, b := range r.blocks {
		sum += b.likelihood(r.sampler.doc, ofDoc, long)
	}
	ofWord := newRising(r.Beta)
	for _, row := range rows {
		for _, n := range row.All() {
			sum += ofWord.of(int(max(n, 0)))
		}
	}
	if summary != nil {
		all := newRising(r.wide)
		for _, n := range summary.All() {
			sum -= all.of(int(max(n, 0)))
		}
	}
	return sum
}
