package lda

import (
	"context"
	"encoding/binary"
	"errors"
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
	*division
	*store               // the documents
	group  distrib.Group // the workers; nil: this one alone
	own    span          // the parts that are here
	sweeps int           // so far

	slices    []*slice     // the word-topic table; of those that are here
	all       []int32      // the topic summary: tokens by topic
	samplers  []*sampler   // of the parts that are here
	proposals []*proposals // of the threads
}

// span is numbers [from, to).
type span struct{ from, to int }

// dealt is what the i-th of n has of a number of things.
func dealt(things, i, n int) span { return span{things * i / n, things * (i + 1) / n} }

// New is a model of a corpus whose topics are drawn. All workers of the group, nil for one alone,
// make it of the same corpus and options. There must be a part for each of them. Close it.
func New(c *Corpus, o Options, group distrib.Group) (*Model, error) {
	o = o.WithDefaults()
	if err := o.Check(); err != nil {
		return nil, err
	}
	if c.Tokens() == 0 {
		return nil, fmt.Errorf("lda: no words in %d documents", c.Docs())
	}
	m := &Model{Options: o, prior: o.prior(c.Vocab), group: group, own: span{0, o.Parts},
		division: c.divide(o)}
	if group != nil {
		if group.Size() > o.Parts {
			return nil, fmt.Errorf("lda: %d workers and %d parts: want a part for each",
				group.Size(), o.Parts)
		}
		m.own = dealt(o.Parts, group.Rank(), group.Size())
	}
	here := make([][]extent, o.Parts)
	copy(here[m.own.from:], m.blocks[m.own.from:m.own.to])
	var err error
	if m.store, err = newStore(c, here); err != nil {
		return nil, err
	}
	m.samplers = make([]*sampler, o.Parts)
	for p := m.own.from; p < m.own.to; p++ {
		m.samplers[p] = newSampler(m.prior, o.Cycles)
	}
	for range m.threads() {
		m.proposals = append(m.proposals, newProposals(m.room(), o.Topics))
	}
	err = m.each(func(_, part int) error {
		return m.fill(part, func(b *block) { b.scatter(o.Seed, o.Topics) })
	})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// threads are how many sample at the same time.
func (m *Model) threads() int { return min(m.Threads, m.own.to-m.own.from) }

// each has the model's threads, by number, do something for each part that is here.
func (m *Model) each(do func(thread, part int) error) error {
	var next atomic.Int64
	next.Store(int64(m.own.from))
	var threads sync.WaitGroup
	failed := make([]error, m.Parts)
	for thread := range m.threads() {
		threads.Go(func() {
			for i := int(next.Add(1)) - 1; i < m.own.to; i = int(next.Add(1)) - 1 {
				failed[i] = do(thread, i)
			}
		})
	}
	threads.Wait()
	return errors.Join(failed...)
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
	m.slices, m.all = make([]*slice, perPart*m.Parts), make([]int32, m.Topics)
	for i := m.home().from; i < m.home().to; i++ {
		m.slices[i] = newSlice(m.words[i], m.freq[m.words[i]:m.words[i+1]], m.Topics)
	}
	if err := m.rotate(ctx, func(r *rotation) error {
		for range m.slices {
			err := r.next(func(_, part int, s *slice) error { return m.visit(part, s.count) })
			if err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return m.total(ctx)
}

// total makes the topic summary of the table.
func (m *Model) total(ctx context.Context) error {
	for i := m.home().from; i < m.home().to; i++ {
		m.slices[i].sum(m.all)
	}
	if m.alone() {
		return nil
	}
	return m.around(ctx, tagSummary, appendSummary(nil, m.all), m.add)
}

// Sweep samples each token once.
func (m *Model) Sweep(ctx context.Context) error {
	if err := m.ready(ctx); err != nil {
		return err
	}
	m.sweeps++
	rounds := m.rounds()
	err := m.rotate(ctx, func(r *rotation) error {
		for round := range rounds {
			now, err := m.turn(round)
			if err != nil {
				return err
			}
			for range m.Parts {
				if err := r.sample(now); err != nil {
					return err
				}
			}
		}
		return r.settle()
	})
	if err != nil {
		return err
	}
	if _, err := m.turn(rounds); err != nil {
		return err
	}
	return m.wait()
}

// sample is a leg of a sweep, of a block of each part.
func (r *rotation) sample(now []*block) error {
	if err := r.begin(); err != nil {
		return err
	}
	for range perPart {
		err := r.next(func(thread, part int, v *slice) error {
			s := r.samplers[part]
			if b := now[part]; b != nil {
				s.proposals = r.proposals[thread]
				s.sample(b, v, r.Seed, r.sweeps)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return r.tell()
}

// Tokens is how many there are.
func (m *Model) Tokens() int { return m.corpus.Tokens() }

// Table is the word-topic table, of all words, on every worker.
func (m *Model) Table(ctx context.Context) (*Table, error) {
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	words := make([][]Entry, m.corpus.Vocab)
	for i := range m.slices {
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
func (m *Model) Assignments() (first int, topics []uint16, err error) {
	first = int(m.corpus.before(m.documents[m.own.from]))
	for part := m.own.from; part < m.own.to && err == nil; part++ {
		err = m.visit(part, func(b *block) { topics = append(topics, b.topic...) })
	}
	return first, topics, err
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
	m.sweeps, m.slices = sweeps, nil
	return m.each(func(_, part int) error {
		return m.fill(part, func(b *block) { copy(b.topic, topics[b.at:]) })
	})
}

// Words are the topics of the words of the slices that are here, of which the first has that
// number, in ascending order of topics.
func (m *Model) Words() (first int, words [][]Entry) {
	here := m.slices[m.home().from:m.home().to]
	for _, s := range here {
		for w := range s.rows {
			words = append(words, s.rows[w].entries())
		}
	}
	return here[0].from, words
}

// Gather is the topics of all tokens, on every worker.
func (m *Model) Gather(ctx context.Context) ([]uint16, error) {
	first, own, err := m.Assignments()
	if err != nil {
		return nil, err
	}
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
