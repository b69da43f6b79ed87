package lda

// standing is what a topic has for a token, which is left out of all counts.
type standing struct {
	doc   int32 // tokens of the document,
	word  uint32
	stale uint32 // of the word, and when its proposals were made,
	all   int32  // and in all
}

// byWord is the two sides of the acceptance of a word proposal from s to t: it is accepted with
// the ratio of the first to the second. What is proposed does not depend on s, so each side has
// what the other topic is proposed with.
func (p *prior) byWord(s, t standing) (for_, against float64) {
	side := func(a, b standing) float64 {
		return float64((float64(a.doc)+p.alpha)*(float64(a.word)+p.beta)) *
			float64((float64(b.all)+p.wide)*(float64(b.stale)+p.beta))
	}
	return side(t, s), side(s, t)
}

// byDoc is the same of a document proposal. That t is proposed to who has s is as likely as t's
// count plus alpha, in the document without the token, and the other way round: both cancel what
// the topics have of the document.
func (p *prior) byDoc(s, t standing) (for_, against float64) {
	side := func(a, b standing) float64 {
		return float64((float64(a.word) + p.beta) * (float64(b.all) + p.wide))
	}
	return side(t, s), side(s, t)
}

// sampler is who samples the tokens of a part in a slice.
type sampler struct {
	prior
	cycles int
	*proposals
	doc  []int32 // tokens of the document by topic
	all  []int32 // tokens of all documents by topic, as known here
	last []int32 // what the part has changed of them, in the last leg
	rng  source
}

func newSampler(p prior, cycles int) *sampler {
	return &sampler{prior: p, cycles: cycles, doc: make([]int32, p.topics),
		all: make([]int32, p.topics), last: make([]int32, p.topics)}
}

// begin begins a leg, with what is known of all parts up to the leg before the last.
func (s *sampler) begin(all []int32, first bool) {
	if first {
		clear(s.last)
	}
	for k, n := range all {
		s.all[k] = n + s.last[k]
	}
}

// end ends a leg, and adds what the part has changed in it.
func (s *sampler) end(all, sum []int32) {
	for k, n := range all {
		s.last[k] = s.all[k] - n - s.last[k]
		sum[k] += s.last[k]
	}
}

// sample samples the tokens of a block whose words are of a slice. sweep numbers the visit, with
// the slice and the document, for whom random numbers are drawn.
func (s *sampler) sample(b *block, v *slice, seed uint64, sweep int) {
	s.reset(len(v.rows))
	for d := range b.docs {
		words, topics := b.doc(d)
		from, to := v.within(words)
		if from == to {
			continue
		}
		for _, k := range topics {
			s.doc[k]++
		}
		s.rng = sourceOf(seed, uint64(sweep), uint64(v.from), uint64(b.first+d))
		for i := from; i < to; i++ {
			s.token(int(words[i])-v.from, &v.rows[int(words[i])-v.from], topics, i)
		}
		for _, k := range topics {
			s.doc[k] = 0
		}
	}
}

// token samples the topic of a document's token i. All counts are without it meanwhile, those that
// the word's proposals were made of too: else what is proposed would depend on where the token is,
// which acceptances know nothing of.
func (s *sampler) token(word int, r *row, topics []uint16, i int) {
	if s.at[word] < 0 {
		s.make(word, r)
	}
	k := topics[i]
	c := r.find(k)
	own, ownTopic := c, k
	c.count--
	c.stale--
	s.doc[k]--
	s.all[k]--
	for range s.cycles {
		if t := s.draw(word, r, &s.prior, &s.rng); t != k {
			x := r.find(t)
			if (t != ownTopic || s.rng.unit() < s.others(x)) &&
				s.accepts(s.byWord(s.standing(k, c), s.standing(t, x))) {
				k, c, topics[i] = t, x, t
			}
		}
		if t := drawOf(topics, &s.prior, &s.rng); t != k {
			x := r.find(t)
			if s.accepts(s.byDoc(s.standing(k, c), s.standing(t, x))) {
				k, c, topics[i] = t, x, t
			}
		}
	}
	own.stale++
	s.doc[k]++
	s.all[k]++
	r.add(k, c)
}

// others is how likely a proposal of the topic that the token came with, of whose tokens it is one
// in lists and tables, is on behalf of the others.
func (p *prior) others(own *cell) float64 {
	others := float64(own.stale) + p.beta
	return others / (others + 1)
}

func (s *sampler) standing(k uint16, c *cell) standing {
	return standing{s.doc[k], c.count, c.stale, s.all[k]}
}

func (s *sampler) accepts(for_, against float64) bool {
	return for_ >= against || float64(s.rng.unit()*against) < for_
}
