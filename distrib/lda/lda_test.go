package lda

import (
	"context"
	"math"
	"slices"
	"testing"
)

func drawn(t *testing.T, d Drawing) *Corpus {
	t.Helper()
	c, err := d.Corpus(0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func started(t *testing.T, c *Corpus, o Options) *Model {
	t.Helper()
	m, err := New(c, o, nil)
	if err == nil {
		err = m.tabulate(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func swept(t *testing.T, m *Model, n int) float64 {
	t.Helper()
	for range n {
		if err := m.Sweep(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return likelihood(m)
}

// likelihood is that of a model of one worker, of which no error comes.
func likelihood(m *Model) float64 {
	x, err := m.LogLikelihood(context.Background())
	if err != nil {
		panic(err)
	}
	return x
}

var small = Drawing{Docs: 300, Length: 60, Vocab: 400, Topics: 8, Seed: 3}

// conserves compares the tables with what the tokens' topics make of them.
func conserves(t *testing.T, m *Model) {
	t.Helper()
	counts := map[[2]int]int{}
	all := make([]int32, m.Options.Topics)
	tokens := 0
	for _, blocks := range m.parts {
		for _, b := range blocks {
			for i, w := range b.words {
				counts[[2]int{int(w), int(b.topic[i])}]++
				all[b.topic[i]]++
				tokens++
			}
		}
	}
	if tokens != m.Tokens() {
		t.Fatalf("blocks have %d tokens, the corpus has %d", tokens, m.Tokens())
	}
	if !slices.Equal(all, m.all) {
		t.Fatalf("topics have %v tokens, the summary says %v", all, m.all)
	}
	for _, s := range m.slices {
		for i, r := range s.rows {
			for _, c := range r.cells {
				if n := counts[[2]int{s.from + i, int(c.topic)}]; int(c.count) != n {
					t.Fatalf("word %d has %d tokens of topic %d, its row says %d", s.from+i, n,
						c.topic, c.count)
				}
				delete(counts, [2]int{s.from + i, int(c.topic)})
			}
		}
	}
	if len(counts) > 0 {
		t.Fatalf("no row has %v", counts)
	}
}

func TestCountsConserve(t *testing.T) {
	for _, o := range []Options{{Topics: 8, Alpha: .1, Beta: .05},
		{Topics: 300, Alpha: .1, Beta: .1},
		{Topics: 1, Alpha: 1, Beta: 1},
		{Topics: 20, Alpha: .1, Beta: .01, Parts: 3, BlockTokens: 500},
		{Topics: 5, Alpha: .1, Beta: .01, Parts: 60, Threads: 2}} {
		m := started(t, drawn(t, small), o)
		for range 4 {
			conserves(t, m)
			swept(t, m, 1)
		}
		conserves(t, m)
	}
}

func topicsOf(m *Model) []uint16 {
	_, topics, _ := m.Assignments()
	return topics
}

func TestThreadsDoNotMatter(t *testing.T) {
	c := drawn(t, small)
	o := Options{Topics: 30, Alpha: .1, Beta: .05, Seed: 5, Parts: 6, BlockTokens: 1500}
	one := started(t, c, o)
	want := swept(t, one, 5)
	for _, o.Threads = range []int{2, 5, 17} {
		m := started(t, c, o)
		if got := swept(t, m, 5); got != want || !slices.Equal(topicsOf(m), topicsOf(one)) {
			t.Errorf("%d threads end at %v, one at %v", o.Threads, got, want)
		}
	}
	o.Seed++
	if m := started(t, c, o); swept(t, m, 5) == want {
		t.Error("another seed makes no difference")
	}
}

// gibbs samples all tokens by their exact conditional distributions, and returns the last log
// p(words, topics).
func gibbs(m *Model, sweeps int) float64 {
	rng := sourceOf(m.Seed, 77)
	p := make([]float64, m.Options.Topics)
	doc := make([]int32, m.Options.Topics)
	for range sweeps {
		for _, blocks := range m.parts {
			for _, b := range blocks {
				for d := range b.docs {
					words, topics := b.doc(d)
					clear(doc)
					for _, k := range topics {
						doc[k]++
					}
					for i, w := range words {
						r := m.row(int(w))
						k := topics[i]
						doc[k]--
						m.all[k]--
						r.find(k).count--
						sum := 0.0
						for k := range p {
							sum += (float64(doc[k]) + m.Alpha) * (float64(r.find(uint16(k)).count) +
								m.Beta) / (float64(m.all[k]) + m.wide)
							p[k] = sum
						}
						u := rng.unit() * sum
						k = uint16(slices.IndexFunc(p, func(x float64) bool { return u < x }))
						doc[k]++
						m.all[k]++
						r.add(k, r.find(k))
						topics[i] = k
					}
				}
			}
		}
	}
	return likelihood(m)
}

// row is a word's.
func (m *Model) row(word int) *row {
	for _, s := range m.slices {
		if word < s.from+len(s.rows) {
			return &s.rows[word-s.from]
		}
	}
	return nil
}

// TestLikelihoodOfGibbs: after equal sweeps, the likelihood is within half a per cent of that of
// exact Gibbs sampling, and the topics are those that the corpus was drawn by.
func TestLikelihoodOfGibbs(t *testing.T) {
	d := Drawing{Docs: 1500, Length: 30, Vocab: 300, Topics: 6, Seed: 4}
	o := Options{Topics: 6, Alpha: .1, Beta: .05, Seed: 1}
	const sweeps = 60
	c := drawn(t, d)
	exact := started(t, c, o)
	want := gibbs(exact, sweeps)
	m := started(t, c, o)
	begin := likelihood(m)
	got := swept(t, m, sweeps)
	t.Logf("from %.0f: %.0f, exact Gibbs %.0f, off by %.3f %%", begin, got, want,
		100*math.Abs(got/want-1))
	if math.Abs(got/want-1) > .005 {
		t.Errorf("log likelihood %.0f, of exact Gibbs sampling %.0f", got, want)
	}
	for name, m := range map[string]*Model{"exact": exact, "": m} {
		least := recovered(m, d)
		t.Logf("%s least cosine %.3f", name, least)
		if least < .9 {
			t.Errorf("%s: a topic that was drawn has cosine %.3f with the nearest", name, least)
		}
	}
}

// recovered is the cosine of the drawn topic that is recovered worst with the topic nearest to it,
// each of which is near one alone.
func recovered(m *Model, d Drawing) float64 {
	drawn, found := make([][]float64, d.Topics), make([][]float64, m.Options.Topics)
	for k := range drawn {
		drawn[k] = make([]float64, d.Vocab)
		rng := sourceOf(9, uint64(k))
		for range 200_000 / d.Topics {
			drawn[k][d.word(k, &rng)]++
		}
	}
	for k := range found {
		found[k] = make([]float64, d.Vocab)
		for w := range d.Vocab {
			found[k][w] = float64(m.row(w).find(uint16(k)).count)
		}
	}
	least, taken := 1.0, map[int]bool{}
	for _, x := range drawn {
		best, at := -1.0, 0
		for k, y := range found {
			if c := cosine(x, y); c > best && !taken[k] {
				best, at = c, k
			}
		}
		taken[at], least = true, min(least, best)
	}
	return least
}

func cosine(x, y []float64) float64 {
	var xy, xx, yy float64
	for i := range x {
		xy, xx, yy = xy+x[i]*y[i], xx+x[i]*x[i], yy+y[i]*y[i]
	}
	return xy / math.Sqrt(xx*yy+1e-300)
}
