package data

import (
	"fmt"
	"runtime"
	"slices"
	"sort"
	"sync"

	"github.com/gomem/gomem/graph/tensor"
)

// Loader makes batches. Its methods are pure functions: they keep no state and
// any number of goroutines may call them.
type Loader struct {
	tok     *Tokenizer
	opts    LoaderOptions
	buckets []Bucket
	train   split
	heldOut split
	dropped int
}

// split is one part of the corpus, sorted into buckets.
type split struct {
	pairs []Pair
	rows  [][]int32 // by bucket: places in pairs
	first []int     // by bucket: number of its first batch; then the number of batches
}

// NewLoader prepares batches of the corpus c. Bucketed mode encodes the corpus
// once to measure it. A corpus with less than one batch of training pairs
// gives an *Error.
func NewLoader(c *Corpus, tok *Tokenizer, o LoaderOptions) (*Loader, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	l := &Loader{tok: tok, opts: o, buckets: o.buckets()}
	l.train = l.split(c.Train)
	l.heldOut = l.split(c.HeldOut)
	l.train.number(l.buckets, func(rows, pairs int) int { return rows / pairs })
	l.heldOut.number(l.buckets, func(rows, pairs int) int { return (rows + pairs - 1) / pairs })
	if l.StepsPerEpoch() == 0 && !c.whole {
		n := len(l.train.rows[len(l.buckets)-1])
		err := fmt.Errorf("%d training pairs of up to %d tokens do not fill one batch of %d: %s",
			n, o.Length, o.Pairs, Instead(n, "a larger corpus"))
		return nil, &Error{Spec: c.Info.Spec, Err: err}
	}
	return l, nil
}

// Buckets lists the shapes of batches, the shortest rows first. Padded mode
// has one.
func (l *Loader) Buckets() []Bucket { return slices.Clone(l.buckets) }

// StepsPerEpoch is the number of full batches of training pairs. The few pairs
// that an epoch leaves over differ from epoch to epoch.
func (l *Loader) StepsPerEpoch() int { return l.train.batches() }

// HeldOutBatches is the number of batches that hold every held-out pair once.
// It is 0 for a corpus without held-out pairs.
func (l *Loader) HeldOutBatches() int { return l.heldOut.batches() }

// Dropped is the number of pairs, training and held out, that are longer than
// the longest bucket.
func (l *Loader) Dropped() int { return l.dropped }

// Train makes the batch of a step, from 0. It depends on nothing but the
// corpus, the tokenizer, the options and the step; epochs follow each other,
// each in its own order.
func (l *Loader) Train(step int) Batch {
	epoch, slot := step/l.StepsPerEpoch(), step%l.StepsPerEpoch()
	key := mix(l.opts.Seed + mix(uint64(epoch)))
	slot = permute(slot, l.StepsPerEpoch(), key)
	bucket, begin := l.train.locate(slot, l.buckets)
	rows := l.train.rows[bucket]
	key = mix(key + uint64(bucket) + 1)
	return l.batch(bucket, func(row int) (Pair, bool) {
		return l.train.pairs[rows[permute(begin+row, len(rows), key)]], true
	})
}

// Uncounted is the batch of a step with empty targets: see [Maskable].
func (l *Loader) Uncounted(step int) (b Batch, ok bool) {
	b = l.Train(step)
	clear(b.Inputs[1].I32())
	b.Units = 0
	return b, true
}

// HeldOut makes held-out batch i, 0 ≤ i < HeldOutBatches, in the order of the
// corpus. Rows behind a bucket's last pair have a source of EOS alone and an
// empty target, which adds nothing to a loss over target tokens.
func (l *Loader) HeldOut(i int) Batch {
	bucket, begin := l.heldOut.locate(i, l.buckets)
	rows := l.heldOut.rows[bucket]
	return l.batch(bucket, func(row int) (Pair, bool) {
		if begin+row >= len(rows) {
			return Pair{}, false
		}
		return l.heldOut.pairs[rows[begin+row]], true
	})
}

// batch fills a batch of the shape of bucket with the pairs that at gives: two
// inputs, sources and targets, i32[Pairs Length]. A row is the ids of a text,
// EOS, then PAD.
func (l *Loader) batch(bucket int, at func(row int) (Pair, bool)) Batch {
	shape := l.buckets[bucket]
	n := shape.Pairs * shape.Length
	source, target := make([]int32, n), make([]int32, n)
	b := Batch{Bucket: bucket}
	var scratch []int32
	for row := range shape.Pairs {
		begin, end := row*shape.Length, (row+1)*shape.Length
		p, ok := at(row)
		scratch, _ = l.fill(source[begin:end], scratch, p.Source)
		if ok {
			var tokens int
			scratch, tokens = l.fill(target[begin:end], scratch, p.Target)
			b.Units += tokens
		}
	}
	b.Inputs = []tensor.View{tensor.FromI32(source, shape.Pairs, shape.Length),
		tensor.FromI32(target, shape.Pairs, shape.Length)}
	return b
}

// fill writes the ids of text and EOS to row, which is zero, cutting the text
// to fit. It returns the number of ids written, and scratch for the next call.
func (l *Loader) fill(row, scratch []int32, text string) ([]int32, int) {
	scratch = l.tok.encode(scratch[:0], text, len(row)-1, opening)
	n := copy(row[:len(row)-1], scratch)
	row[n] = EOS
	return scratch, n + 1
}

// split sorts pairs into buckets.
func (l *Loader) split(pairs []Pair) split {
	s := split{pairs: pairs, rows: make([][]int32, len(l.buckets))}
	if l.opts.Mode == Padded {
		s.rows[0] = make([]int32, len(pairs))
		for i := range pairs {
			s.rows[0][i] = int32(i)
		}
		return s
	}
	for i, bucket := range l.measure(pairs) {
		if int(bucket) == len(l.buckets) {
			l.dropped++
			continue
		}
		s.rows[bucket] = append(s.rows[bucket], int32(i))
	}
	s.passUp(l.buckets)
	return s
}

// passUp moves the pairs of a bucket that they do not fill once to the next
// longer bucket, so that a small corpus is used whole.
func (s *split) passUp(buckets []Bucket) {
	for b := range len(buckets) - 1 {
		if len(s.rows[b]) < buckets[b].Pairs {
			s.rows[b+1] = append(s.rows[b+1], s.rows[b]...)
			slices.Sort(s.rows[b+1])
			s.rows[b] = nil
		}
	}
}

// measure finds the shortest bucket that holds each pair, on all cores; it is
// the number of buckets where none does.
func (l *Loader) measure(pairs []Pair) []uint8 {
	bucket := make([]uint8, len(pairs))
	workers := runtime.GOMAXPROCS(0)
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			var scratch []int32
			for i := w; i < len(pairs); i += workers {
				length := 0
				for _, text := range []string{pairs[i].Source, pairs[i].Target} {
					scratch = l.tok.encode(scratch[:0], text, l.opts.Length, opening)
					length = max(length, len(scratch)+1)
				}
				bucket[i] = uint8(sort.Search(len(l.buckets), func(b int) bool {
					return length <= l.buckets[b].Length
				}))
			}
		})
	}
	running.Wait()
	return bucket
}

// number gives every bucket its batches, as many as count says for the number
// of its rows and the pairs a batch.
func (s *split) number(buckets []Bucket, count func(rows, pairs int) int) {
	s.first = make([]int, len(buckets)+1)
	for b, shape := range buckets {
		s.first[b+1] = s.first[b] + count(len(s.rows[b]), shape.Pairs)
	}
}

// batches is the number of batches in all buckets.
func (s *split) batches() int { return s.first[len(s.first)-1] }

// locate finds the bucket of a batch, and the first of its rows there.
func (s *split) locate(batch int, buckets []Bucket) (bucket, row int) {
	bucket = sort.Search(len(buckets), func(b int) bool { return batch < s.first[b+1] })
	return bucket, (batch - s.first[bucket]) * buckets[bucket].Pairs
}
