package lda

// Drawing is a corpus that is drawn by known topics.
type Drawing struct {
	Docs, Length  int // documents, and the mean number of words of each
	Vocab, Topics int
	Seed          uint64
}

// perDoc is the most topics that a drawn document has.
const perDoc = 3

// word draws a word of a topic. Words go round the topics, and the further behind a word is among
// those of its topic, the rarer, somewhat as in running text. One word in ten is of any topic.
func (d Drawing) word(topic int, s *source) uint32 {
	words := (d.Vocab - topic + d.Topics - 1) / d.Topics
	if s.below(10) == 0 {
		return uint32(s.below(d.Vocab))
	}
	u := s.unit()
	i := int(float64(words) * float64(float64(u*u)*u))
	return uint32(topic + min(i, words-1)*d.Topics)
}

// Doc is the words of document i, a function of its number.
func (d Drawing) Doc(i int) []uint32 {
	s := sourceOf(d.Seed, ^uint64(i))
	topics := make([]int, 1+s.below(perDoc))
	for k := range topics {
		topics[k] = s.below(d.Topics)
	}
	words := make([]uint32, 1+s.below(2*d.Length-1))
	for k := range words {
		words[k] = d.word(topics[s.below(len(topics))], &s)
	}
	return words
}

// Corpus is the documents from a number on.
func (d Drawing) Corpus(from int) (*Corpus, error) {
	c := &Corpus{}
	return c, d.Fill(c, from)
}

// Fill adds the documents from a number on to a corpus that has none.
func (d Drawing) Fill(c *Corpus, from int) error {
	c.Vocab = d.Vocab
	for i := range d.Docs {
		if err := c.Add(d.Doc(from + i)); err != nil {
			return err
		}
	}
	return nil
}
