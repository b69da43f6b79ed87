package bags

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomem/gomem/data"
)

// How many documents are drawn, and how many of them are held out unless a share is given.
const (
	drawnAll  = 51_000
	drawnHeld = 1_000
)

// Noise is the standard deviation of what is added to each word of a drawn document. No model
// explains it: a loss of Vocab·Noise²/2 is left.
const Noise = 0.01

// Dictionary is the topics that documents are drawn by, f32[vocab topics] row by row: each word is
// of one topic in turn, and less of another one, and each topic's squares add up to one.
func Dictionary(seed uint64, vocab, topics int) []float32 {
	d := make([]float32, vocab*topics)
	dictionaryOf(seed, vocab, topics).each(func(word, topic int, weight float32) {
		d[word*topics+topic] += weight
	})
	return d
}

// dictionary is topics by the words that they have.
type dictionary struct {
	topics int
	first  []float32 // of each word in its topic, the word's number modulo that of topics
	other  []int32   // and another topic that it is of,
	second []float32 // so much
	lists  [][]int32 // of each topic, its words
}

func dictionaryOf(seed uint64, vocab, topics int) *dictionary {
	rng := rand.New(rand.NewPCG(seed, 0))
	d := &dictionary{topics: topics, lists: make([][]int32, topics)}
	for word := range vocab {
		d.first = append(d.first, float32(rng.Float32())+0.5)
		d.other = append(d.other, rng.Int32N(int32(topics)))
		d.second = append(d.second, float32(rng.Float32())/2)
		d.list(word%topics, word)
		if at := int(d.other[word]); at != word%topics {
			d.list(at, word)
		}
	}
	d.normalise()
	return d
}

func (d *dictionary) list(topic, word int) {
	d.lists[topic] = append(d.lists[topic], int32(word))
}

// each visits what words are of topics.
func (d *dictionary) each(visit func(word, topic int, weight float32)) {
	for word, w := range d.first {
		visit(word, word%d.topics, w)
		visit(word, int(d.other[word]), d.second[word])
	}
}

// weight is how much a word is of a topic.
func (d *dictionary) weight(word, topic int) (w float32) {
	if word%d.topics == topic {
		w = d.first[word]
	}
	if int(d.other[word]) == topic {
		w += d.second[word]
	}
	return w
}

// normalise has the squares of each topic add up to one.
func (d *dictionary) normalise() {
	scale := make([]float32, d.topics)
	for topic, list := range d.lists {
		var sum float64
		for _, word := range list {
			w := float64(d.weight(int(word), topic))
			sum += float64(w * w)
		}
		scale[topic] = float32(1 / math.Sqrt(max(sum, 1e-12)))
	}
	for word := range d.first {
		d.first[word] *= scale[word%d.topics]
		d.second[word] *= scale[d.other[word]]
	}
}

// drawing is documents that are drawn.
type drawing struct {
	*dictionary
	seed     uint64
	first, n int
}

func (d drawing) size() int { return d.n }

// fill draws a document of one topic or two, and noise.
func (d drawing) fill(i int, words []float32) {
	rng := rand.New(rand.NewPCG(d.seed, uint64(d.first+i)+1))
	for range 1 + rng.IntN(2) {
		topic := rng.IntN(d.topics)
		share := 0.3 + float32(0.7*rng.Float32())
		for _, word := range d.lists[topic] {
			words[word] += float32(share * d.weight(int(word), topic))
		}
	}
	for w := range words {
		words[w] += float32(Noise * noise(rng))
	}
}

// noise is of mean 0 and variance 1, with the same bits everywhere: four uniform numbers, whose
// sum has a variance of a third.
func noise(rng *rand.Rand) float32 {
	const root3 = 1.7320508
	u := func() float32 { return float32(rng.Float32()) }
	sum := u() + u() - u() - u()
	return float32(root3 * sum)
}

// drawn prepares documents of known topics.
func drawn(spec string, o Options) (*Set, error) {
	fail := func(err error) (*Set, error) { return nil, &data.Error{Spec: spec, Err: err} }
	if err := checkVocab(o.Vocab); err != nil {
		return fail(err)
	}
	if o.Topics < 1 || o.Topics > o.Vocab {
		return fail(fmt.Errorf("%d topics of %d words: want 1 or more, and no more than words",
			o.Topics, o.Vocab))
	}
	held := drawnHeld
	if o.EvalShare > 0 {
		held = int(math.Round(float64(o.EvalShare * drawnAll)))
	}
	d := dictionaryOf(o.Seed, o.Vocab, o.Topics)
	s := &Set{Vocab: o.Vocab, train: drawing{d, o.Seed, 0, drawnAll - held},
		heldOut: drawing{d, o.Seed, drawnAll - held, held}}
	s.Info = data.Info{Spec: spec, Noun: "document", Pairs: drawnAll, HeldOut: held,
		Path: "known topics"}
	s.Info.Summarize([]data.File{data.FileOf("drawn", fmt.Appendf(nil, "%d words, %d topics, "+
		"seed %d", o.Vocab, o.Topics, o.Seed))})
	return s.checked()
}
