package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph/tensor"
)

// PackedLoader makes batches of documents: rows have as many as there is room for, each whole
// unless it is longer than a row, and none knows of the others. A batch has three inputs, i32[rows
// length]: the tokens; at each position the token after it, or [NoTarget], also where that is
// given; and the position within the document, from 0, which behind the last document it is all
// along. Its methods keep no state and any number of goroutines may call them.
type PackedLoader struct {
	spec           string
	whole          bool
	opts           RunningOptions
	documents      [2][]piece // to train on, and held out
	train, heldOut [][]piece
	longer         int
	order          Order
}

// NewPackedLoader encodes documents, on all cores, and prepares batches of them. Those that do not
// fill one batch give an *[Error], a done ctx its cause.
func NewPackedLoader(ctx context.Context, r *Running, tok *Tokenizer,
	o RunningOptions) (*PackedLoader, error) {
	if !r.packed {
		return nil, errors.New("running text that is not of whole documents: give jsonl:FILE")
	}
	l := &PackedLoader{spec: r.Info.Spec, whole: r.whole}
	for i, s := range [][]Section{r.Train, r.HeldOut} {
		var err error
		if l.documents[i], err = encodePieces(ctx, s, tok); err != nil {
			return nil, err
		}
	}
	return l.Shaped(o)
}

// Shaped makes other batches of the same documents. Where they do not fill one the error is an
// *[Error].
func (l *PackedLoader) Shaped(o RunningOptions) (*PackedLoader, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := *l
	s.opts, s.longer = o, 0
	for i, to := range []*[][]piece{&s.train, &s.heldOut} {
		pieces, longer := cutPieces(l.documents[i], o.Length)
		*to = packPieces(pieces, o.Length)
		s.longer += longer
	}
	s.order = Order{Items: len(s.train), Batch: o.Rows, Seed: o.Seed}
	if s.order.Steps() == 0 && !l.whole {
		return nil, &Error{Spec: l.spec, Err: fmt.Errorf("documents fill %d rows of %d tokens, "+
			"and a batch has %d: %s", len(s.train), o.Length, o.Rows,
			Instead(s.order.Items, "shorter rows, or more documents"))}
	}
	return &s, nil
}

// Packing is what a packing comes to.
type Packing struct {
	Documents, Longer int // all of them, and those longer than a row, which are cut
	Rows, Length      int
	Filled            int   // positions of rows with a token of a document
	Lengths           []int // of all documents, in positions
}

// Packing is what the packing comes to, of what is trained on and what is held out.
func (l *PackedLoader) Packing() Packing {
	p := Packing{Longer: l.longer, Rows: len(l.train) + len(l.heldOut), Length: l.opts.Length}
	for _, all := range l.documents {
		p.Documents += len(all)
		for _, d := range all {
			p.Lengths = append(p.Lengths, d.positions())
		}
	}
	for _, rows := range [][][]piece{l.train, l.heldOut} {
		for _, row := range rows {
			for _, d := range row {
				p.Filled += d.positions()
			}
		}
	}
	return p
}

// StepsPerEpoch is the number of batches that go through the documents once.
func (l *PackedLoader) StepsPerEpoch() int { return l.order.Steps() }

// HeldOutBatches is the number of batches with every document that is held out once.
func (l *PackedLoader) HeldOutBatches() int {
	return (len(l.heldOut) + l.opts.Rows - 1) / l.opts.Rows
}

// Train makes the batch of a step, from 0. It depends on nothing but the documents, the tokenizer,
// the options and the step. Every epoch has its own order of rows.
func (l *PackedLoader) Train(step int) Batch {
	return l.batch(func(row int) []piece { return l.train[l.order.Item(step, row)] })
}

// Uncounted is the batch of a step without targets: see [Maskable].
func (l *PackedLoader) Uncounted(step int) (b Batch, ok bool) {
	return untargeted(l.Train(step)), true
}

// HeldOut makes held-out batch i, 0 ≤ i < HeldOutBatches. Rows behind the last are empty.
func (l *PackedLoader) HeldOut(i int) Batch {
	return l.batch(func(row int) []piece {
		if at := i*l.opts.Rows + row; at < len(l.heldOut) {
			return l.heldOut[at]
		}
		return nil
	})
}

// batch fills a batch with the documents of rows.
func (l *PackedLoader) batch(row func(i int) []piece) Batch {
	rows, length := l.opts.Rows, l.opts.Length
	tokens, targets := make([]int32, rows*length), make([]int32, rows*length)
	positions := make([]int32, rows*length)
	for i := range targets {
		targets[i] = NoTarget
	}
	b := Batch{}
	for i := range rows {
		at := i * length
		for _, p := range row(i) {
			for k := range p.positions() {
				tokens[at+k], positions[at+k] = p.ids[k], int32(k)
				if k+1 >= p.given {
					targets[at+k] = p.ids[k+1]
					b.Units++
				}
			}
			at += p.positions()
		}
	}
	for _, x := range [][]int32{tokens, targets, positions} {
		b.Inputs = append(b.Inputs, tensor.FromI32(x, rows, length))
	}
	return b
}
