package lda

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gomem/gomem/distrib"
)

// Model is a corpus with a topic for each token, and the tables that follow from them. One of
// several workers has some of the parts, and of the slices those that its parts visit.
type Model struct {
	Options
	prior
	corpus *Corpus
	group  distrib.Group // the workers; nil: this one alone
	own    span          // the parts that are here
	sweeps int           // so far

	documents []int      // where each part begins, and behind the last
	parts     [][]*block // the documents; of those that are here
	slices    []*slice   // the word-topic table; of those that are here
	all       []int32    // the topic summary: tokens by topic
	samplers  []*sampler // of the parts that are here
	postbox   postbox
}

// span is numbers [from, to).
type span struct{ from, to int }

// dealt is what the i-th of n has of a number of things.
func dealt(things, i, n int) span { return span{things * i / n, things * (i + 1) / n} }

// New is a model of a corpus whose topics are drawn. All workers of the group, nil for one alone,
// make it of the same corpus and options. There must be a part for each of them.
func New(c *Corpus, o Options, group distrib.Group) (*Model, error) {
	o = o.withDefaults()
	if err := o.Check(); err != nil {
		return nil, err
	}
	if c.Tokens() == 0 {
		return nil, fmt.Errorf("lda: no words in %d documents", c.Docs())
	}
	m := &Model{Options: o, prior: o.prior(c.Vocab), corpus: c, group: group,
		own: span{0, o.Parts}, parts: make([][]*block, o.Parts)}
	if group != nil {
		if group.Size() > o.Parts {
			return nil, fmt.Errorf("lda: %d workers and %d parts: want a part for each",
				group.Size(), o.Parts)
		}
		m.own = dealt(o.Parts, group.Rank(), group.Size())
	}
	m.documents = cuts(func(i int) int { return len(c.Doc(i)) }, c.Docs(), o.Parts)
	for p := m.own.from; p < m.own.to; p++ {
		m.parts[p] = c.blocks(m.documents[p], m.documents[p+1], o.BlockTokens)
		for _, b := range m.parts[p] {
			b.scatter(o.Seed, o.Topics)
		}
	}
	m.samplers = make([]*sampler, o.Parts)
	for p := m.own.from; p < m.own.to; p++ {
		m.samplers[p] = newSampler(m.prior, o.Cycles)
	}
	return m, nil
}

// each has the model's threads do something for each part that is here.
func (m *Model) each(do func(part int)) {
	var next atomic.Int64
	next.Store(int64(m.own.from))
	var threads sync.WaitGroup
	for range min(m.Threads, m.own.to-m.own.from) {
		threads.Go(func() {
			for i := int(next.Add(1)) - 1; i < m.own.to; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	threads.Wait()
}

// ready makes the tables, unless they are there.
func (m *Model) ready(ctx context.Context) error {
	if m.slices != nil {
		return nil
	}
	return m.tabulate(ctx)
}

// tabulate makes the tables of the tokens' topics. Each slice goes round the parts, which count
// what they have of it.
func (m *Model) tabulate(ctx context.Context) error {
	freq := m.corpus.frequencies()
	words := cuts(func(i int) int { return freq[i] }, len(freq), m.Parts)
	m.slices, m.all = make([]*slice, m.Parts), make([]int32, m.Topics)
	for i := m.own.from; i < m.own.to; i++ {
		m.slices[i] = newSlice(words[i], freq[words[i]:words[i+1]], m.Topics)
	}
	for step := range m.Parts {
		m.each(func(part int) {
			s := m.slices[m.visited(part, step)]
			for _, b := range m.parts[part] {
				s.count(b)
			}
		})
		if err := m.rotate(ctx, step); err != nil {
			return err
		}
	}
	before := make([]int32, m.Topics)
	for i := m.own.from; i < m.own.to; i++ {
		m.slices[i].sum(m.all)
	}
	return m.addUp(ctx, before)
}

// visited is the slice that a part visits in a step.
func (m *Model) visited(part, step int) int { return (part + step) % m.Parts }

// Sweep samples each token once.
func (m *Model) Sweep(ctx context.Context) error {
	if err := m.ready(ctx); err != nil {
		return err
	}
	m.sweeps++
	for round := range m.rounds() {
		for step := range m.Parts {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := m.step(ctx, round, step); err != nil {
				return err
			}
		}
	}
	return nil
}

// rounds is how many blocks the part has that has most of them.
func (m *Model) rounds() (n int) {
	for p := range m.Parts {
		n = max(n, m.corpus.rounds(m.documents[p], m.documents[p+1], m.BlockTokens))
	}
	return n
}

// step has each part visit a slice of its own. What the topic summary becomes, they see after it.
func (m *Model) step(ctx context.Context, round, step int) error {
	m.each(func(part int) {
		s := m.samplers[part]
		copy(s.all, m.all)
		if round < len(m.parts[part]) {
			s.visit(m.parts[part][round], m.slices[m.visited(part, step)], m.Seed, m.sweeps)
		}
	})
	before := append([]int32(nil), m.all...)
	for _, s := range m.samplers[m.own.from:m.own.to] {
		for k, n := range s.all {
			m.all[k] += n - before[k]
		}
	}
	if err := m.addUp(ctx, before); err != nil {
		return err
	}
	return m.rotate(ctx, step)
}

// Tokens is how many there are.
func (m *Model) Tokens() int { return m.corpus.Tokens() }

// Table is the word-topic table, of all words, on every worker.
func (m *Model) Table(ctx context.Context) (*Table, error) {
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	words := make([][]Entry, m.corpus.Vocab)
	for i := range m.Parts {
		s, err := m.borrow(ctx, i)
		if err != nil {
			return nil, err
		}
		for w := range s.rows {
			words[s.from+w] = s.rows[w].entries()
		}
	}
	return NewTable(words, m.Options), nil
}

// Assignments are the topics of the tokens that are here, of which the first has that number.
func (m *Model) Assignments() (first int, topics []uint16) {
	for p := range m.own.from {
		for d := m.documents[p]; d < m.documents[p+1]; d++ {
			first += len(m.corpus.Doc(d))
		}
	}
	for _, blocks := range m.parts {
		for _, b := range blocks {
			topics = append(topics, b.topic...)
		}
	}
	return first, topics
}

// Resume has the model go on from the topics of all tokens after so many sweeps.
func (m *Model) Resume(sweeps int, topics []uint16) error {
	if len(topics) != m.Tokens() {
		return fmt.Errorf("lda: topics of %d tokens, there are %d", len(topics), m.Tokens())
	}
	for i, k := range topics {
		if int(k) >= m.Options.Topics {
			return fmt.Errorf("lda: token %d has topic %d of %d", i, k, m.Options.Topics)
		}
	}
	first, own := m.Assignments()
	topics = topics[first:][:len(own)]
	for _, blocks := range m.parts {
		for _, b := range blocks {
			topics = topics[copy(b.topic, topics):]
		}
	}
	m.sweeps, m.slices = sweeps, nil
	return nil
}

// Words are the topics of the words of the slices that are here, of which the first has that
// number, in ascending order of topics.
func (m *Model) Words() (first int, words [][]Entry) {
	for i := m.own.from; i < m.own.to; i++ {
		for w := range m.slices[i].rows {
			words = append(words, m.slices[i].rows[w].entries())
		}
	}
	return m.slices[m.own.from].from, words
}

// Gather is the topics of all tokens, on every worker.
func (m *Model) Gather(ctx context.Context) ([]uint16, error) {
	first, own := m.Assignments()
	all := make([]uint16, m.Tokens())
	copy(all[first:], own)
	if m.alone() {
		return all, nil
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(first))
	for _, k := range own {
		out = binary.LittleEndian.AppendUint16(out, k)
	}
	return all, m.around(ctx, tagTopics, out, func(rank int, b []byte) error {
		if len(b) < 8 || binary.LittleEndian.Uint64(b)+uint64(len(b)-8)/2 > uint64(len(all)) {
			return fmt.Errorf("lda: worker %d sends %d bytes of topics", rank, len(b))
		}
		to := all[binary.LittleEndian.Uint64(b):]
		for i := 8; i+1 < len(b); i += 2 {
			to[(i-8)/2] = binary.LittleEndian.Uint16(b[i:])
		}
		return nil
	})
}
