package bags

import (
	"fmt"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
)

// LoaderOptions of [NewLoader].
type LoaderOptions struct {
	Documents, Vocab int // of a batch
	Seed             uint64
}

// Loader makes batches of documents: words f32[documents vocab], and counts f32[documents], 1 or,
// of a row without a document, 0. Its methods keep no state and any number of goroutines may call
// them.
type Loader struct {
	set   *Set
	opts  LoaderOptions
	order data.Order
}

// NewLoader prepares batches. The error is a *[data.Error]: there are too few documents, or they
// have more words than the model.
func NewLoader(s *Set, o LoaderOptions) (*Loader, error) {
	l := &Loader{s, o, data.Order{Items: s.train.size(), Batch: o.Documents, Seed: o.Seed}}
	var err error
	_, whole := s.train.(none)
	switch {
	case o.Documents < 1:
		err = fmt.Errorf("batch of %d documents: give at least 1", o.Documents)
	case s.Vocab > o.Vocab:
		err = fmt.Errorf("documents of %d words, the model has %d", s.Vocab, o.Vocab)
	case l.order.Steps() == 0 && !whole:
		err = fmt.Errorf("%d documents do not fill one batch of %d: %s", s.train.size(),
			o.Documents, data.Instead(s.train.size(), "more documents"))
	default:
		return l, nil
	}
	return nil, &data.Error{Spec: s.Info.Spec, Err: err}
}

// StepsPerEpoch is the number of batches that go through the documents once.
func (l *Loader) StepsPerEpoch() int { return l.order.Steps() }

// HeldOutBatches is the number of batches that hold every held-out document once.
func (l *Loader) HeldOutBatches() int {
	return (l.set.heldOut.size() + l.opts.Documents - 1) / l.opts.Documents
}

// Train makes the batch of a step, from 0.
func (l *Loader) Train(step int) data.Batch {
	return l.batch(l.set.train, func(row int) int { return l.order.Item(step, row) })
}

// Uncounted is the batch of a step whose documents count for nothing: see [data.Maskable].
func (l *Loader) Uncounted(step int) (b data.Batch, ok bool) {
	b = l.Train(step)
	clear(b.Inputs[1].F32())
	b.Units = 0
	return b, true
}

// HeldOut makes held-out batch i, 0 ≤ i < HeldOutBatches. Behind the last document there is none.
func (l *Loader) HeldOut(i int) data.Batch {
	return l.batch(l.set.heldOut, func(row int) int { return i*l.opts.Documents + row })
}

func (l *Loader) batch(from source, at func(row int) int) (b data.Batch) {
	words := make([]float32, l.opts.Documents*l.opts.Vocab)
	counts := make([]float32, l.opts.Documents)
	for row := range counts {
		if i := at(row); i < from.size() {
			from.fill(i, words[row*l.opts.Vocab:][:l.set.Vocab])
			counts[row] = 1
			b.Units++
		}
	}
	b.Inputs = []tensor.View{tensor.FromF32(words, l.opts.Documents, l.opts.Vocab),
		tensor.FromF32(counts, l.opts.Documents)}
	return b
}
