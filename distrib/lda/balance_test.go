package lda

import (
	"context"
	"math"
	"testing"
)

// A tiny corpus is three tokens.
type tiny struct {
	docs  [][]uint32
	heavy bool // all rows are
}

func tinies() (all []tiny) {
	for _, docs := range [][][]uint32{{{0, 0, 0}}, {{0, 0, 1}}, {{0, 1, 2}}, {{0, 1}, {0}},
		{{0, 0}, {1}}, {{0, 0}, {0}}, {{0}, {0}, {1}}} {
		all = append(all, tiny{docs, false}, tiny{docs, true})
	}
	return all
}

// at is the model of a tiny corpus whose tokens have these topics.
func (c tiny) at(t *testing.T, topics int, z []uint16) *Model {
	corpus := &Corpus{Vocab: 3}
	for _, d := range c.docs {
		if err := corpus.Add(d); err != nil {
			t.Fatal(err)
		}
	}
	m := started(t, corpus, Options{Topics: topics, Alpha: .3, Beta: .2, Parts: 1})
	copy(m.parts[0][0].topic, z)
	if err := m.tabulate(context.Background()); err != nil {
		t.Fatal(err)
	}
	if c.heavy {
		for _, s := range m.slices {
			for i, r := range s.rows {
				s.rows[i] = newRow(4*topics, topics)
				s.rows[i].tokens = r.tokens
			}
			s.count(m.parts[0][0])
		}
	}
	return m
}

// states are all topics of three tokens.
func states(topics int) (all [][]uint16) {
	for i := range topics * topics * topics {
		all = append(all, []uint16{uint16(i % topics), uint16(i / topics % topics),
			uint16(i / topics / topics)})
	}
	return all
}

// moves has how likely a token's proposals go from one topic to another.
type moves struct{ word, doc, printed, blind func(s, t uint16) float64 }

// movesOf is what becomes of token i of a model, whose topic it had when its word's proposals were
// made.
func movesOf(m *Model, i int) moves {
	b, s := m.parts[0][0], m.samplers[0]
	word, d := int(b.words[i]), 0
	for int(b.start[d+1]) <= i {
		d++
	}
	_, topics := b.doc(d)
	at := i - int(b.start[d])
	r := m.row(word)
	s.proposals = newProposals(room{3, 64, 64}, m.Options.Topics)
	s.reset(3)
	s.make(word, r)
	own := topics[at]
	clear(s.doc)
	for _, k := range topics {
		s.doc[k]++
	}
	copy(s.all, m.all)
	c := r.find(own)
	c.count, c.stale = c.count-1, c.stale-1
	s.doc[own]--
	s.all[own]--
	standing := func(k uint16) standing { return s.standing(k, r.find(k)) }
	ratio := func(a, b float64) float64 { return min(1, a/b) }
	proposed := func(t uint16) float64 {
		all := float64(r.tokens) + float64(m.Options.Topics)*m.Beta
		return (s.listed(word, r, t) + m.Beta) / all
	}
	inDoc := func(s_, t uint16) float64 {
		n := m.Alpha
		for j, k := range topics {
			if j != at && k == t || j == at && s_ == t {
				n++
			}
		}
		return n / (float64(len(topics)) + float64(m.Options.Topics)*m.Alpha)
	}
	return moves{
		word: func(s_, t uint16) float64 {
			p := proposed(t) * ratio(s.byWord(standing(s_), standing(t)))
			if t == own {
				p *= s.others(r.find(t))
			}
			return p
		},
		blind: func(s_, t uint16) float64 { // with the token in what is proposed by
			c.stale++
			defer func() { c.stale-- }()
			return proposed(t) * ratio(s.byWord(standing(s_), standing(t)))
		},
		doc: func(s_, t uint16) float64 {
			return inDoc(s_, t) * ratio(s.byDoc(standing(s_), standing(t)))
		},
		printed: func(s_, t uint16) float64 { // with the token in the document's counts
			x, y := standing(s_), standing(t)
			up, down := s.byDoc(x, y)
			up *= (float64(y.doc) + m.Alpha) * (float64(x.doc) + 1 + m.Alpha)
			down *= (float64(x.doc) + m.Alpha) * (float64(y.doc) + m.Alpha)
			return inDoc(s_, t) * ratio(up, down)
		},
	}
}

// listed is how much of what a word's topics are drawn from is a topic's, of as many as its tokens.
func (p *proposals) listed(word int, r *row, t uint16) (n float64) {
	if !r.heavy {
		for _, k := range p.lists[p.at[word]:][:r.tokens] {
			if k == t {
				n++
			}
		}
		return n
	}
	columns := p.columns[p.at[word]:][:len(r.cells)]
	for k, c := range columns {
		if k == int(t) {
			n += float64(c.cut)
		}
		if c.other == t {
			n += float64(uint32(r.tokens) - c.cut)
		}
	}
	return n / float64(len(columns))
}

// TestDetailedBalance enumerates the states of corpora of three tokens. Of each proposal of each
// token, what goes from one state to another is what comes back, both if the word's proposals are
// made of each of the two and if they are of any time before. With counts that the token is in, as
// acceptances are printed for LightLDA, it is not.
func TestDetailedBalance(t *testing.T) {
	worst := map[string]float64{}
	for _, c := range tinies() {
		for topics := 2; topics <= 3; topics++ {
			for _, z := range states(topics) {
				for i := range z {
					if z[i] == 0 { // else it is another's token i
						c.balance(t, topics, z, i, worst)
					}
				}
			}
		}
	}
	t.Logf("what goes is off what comes back by %v of it", worst)
	for _, name := range []string{"word", "doc", "word, stale", "doc, stale"} {
		if off, ok := worst[name]; !ok || off > 1e-12 {
			t.Errorf("out of balance: %v", worst)
		}
	}
	if worst["printed"] < 1e-3 || worst["blind"] < 1e-3 {
		t.Errorf("counts with the token make no difference, they should: %v", worst)
	}
}

// balance notes how far off balance token i is.
func (c tiny) balance(t *testing.T, topics int, z []uint16, i int, worst map[string]float64) {
	var pi []float64
	var of []moves
	for k := range topics {
		to := append([]uint16(nil), z...)
		to[i] = uint16(k)
		m := c.at(t, topics, to)
		pi, of = append(pi, math.Exp(likelihood(m))), append(of, movesOf(m, i))
	}
	note := func(name string, there, back float64) {
		worst[name] = max(worst[name], math.Abs(there-back)/max(there, back))
	}
	for s := range uint16(topics) {
		for k := range s {
			a, b := of[s], of[k]
			note("word", pi[s]*a.word(s, k), pi[k]*b.word(k, s))
			note("doc", pi[s]*a.doc(s, k), pi[k]*b.doc(k, s))
			note("printed", pi[s]*a.printed(s, k), pi[k]*b.printed(k, s))
			note("blind", pi[s]*a.blind(s, k), pi[k]*b.blind(k, s))
			for _, x := range of {
				note("word, stale", pi[s]*x.word(s, k), pi[k]*x.word(k, s))
				note("doc, stale", pi[s]*x.doc(s, k), pi[k]*x.doc(k, s))
			}
		}
	}
}

// TestStationary: states come as often as is their probability.
func TestStationary(t *testing.T) {
	for _, c := range tinies() {
		const topics, sweeps = 2, 80_000
		var left [8]float64 // of each state's probability
		sum := 0.0
		for i, z := range states(topics) {
			left[i] = math.Exp(likelihood(c.at(t, topics, z)))
			sum += left[i]
		}
		m := c.at(t, topics, []uint16{0, 0, 0})
		z := m.parts[0][0].topic
		for range sweeps {
			if err := m.Sweep(context.Background()); err != nil {
				t.Fatal(err)
			}
			left[z[0]+2*z[1]+4*z[2]] -= sum / sweeps
		}
		for i, x := range left {
			if math.Abs(x)/sum > .02 {
				t.Errorf("%v: state %d comes %.4f too seldom", c, i, x/sum)
			}
		}
	}
}

func TestAliasesAreExact(t *testing.T) {
	rng := sourceOf(1)
	for topics := 1; topics < 40; topics++ {
		cells, sum := make([]cell, topics), uint32(0)
		for k := range cells {
			if rng.below(3) > 0 {
				cells[k].stale = uint32(rng.below(1 << (k % 20)))
				sum += cells[k].stale
			}
		}
		have := make([]uint64, topics)
		for k, c := range newProposals(room{}, topics).aliases(nil, cells, sum) {
			have[k] += uint64(c.cut)
			have[c.other] += uint64(sum - c.cut)
		}
		for k, c := range cells {
			if want := uint64(c.stale) * uint64(topics); have[k] != want {
				t.Fatalf("%d topics: topic %d has %d of the columns, want %d", topics, k, have[k],
					want)
			}
		}
	}
}

func TestLnGamma(t *testing.T) {
	for _, x := range []float64{1e-9, .01, .1, .5, 1, 1.5, 2, 3, 9.99, 10, 57.3, 1e4, 1e9} {
		want, _ := math.Lgamma(x)
		if got := lnGamma(x); math.Abs(got-want) > 1e-14*max(10, math.Abs(want)) {
			t.Errorf("lnGamma(%v) = %v, want %v", x, got, want)
		}
	}
}
