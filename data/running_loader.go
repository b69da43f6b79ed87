package data

import (
	"context"
	"fmt"
	"math"

	"github.com/gomem/gomem/graph/tensor"
)

// NoTarget is the target of a position that has none: nothing is to be predicted
// there.
const NoTarget = -1

// RunningOptions shape batches of running text.
type RunningOptions struct {
	Rows   int    // windows of text a batch
	Length int    // tokens of a window
	Seed   uint64 // selects the order of windows
}

// Validate reports the first field that no loader can use.
func (o RunningOptions) Validate() error {
	switch {
	case o.Rows < 1:
		return fmt.Errorf("batch of %d rows: give at least 1", o.Rows)
	case o.Length < 1:
		return fmt.Errorf("rows of %d tokens: give at least 1", o.Length)
	case o.Length > maxPositions || o.Rows > maxPositions/o.Length:
		return fmt.Errorf("batch of %d rows of %d tokens: give at most %d tokens in all",
			o.Rows, o.Length, maxPositions)
	}
	return nil
}

// RunningLoader makes batches of running text: windows of the tokens of all
// documents, one behind the other with EOS between. A batch has two inputs, i32[rows
// length]: the tokens, and at each position the token after it, or [NoTarget]. Its
// methods keep no state and any number of goroutines may call them.
type RunningLoader struct {
	spec    string
	whole   bool // there is nothing to train on, and that is meant
	opts    RunningOptions
	train   []int32
	heldOut []int32
	order   Order
}

// NewRunningLoader encodes a text, on all cores, and prepares batches of it. A text
// that does not fill one batch gives an *[Error], a done ctx its cause.
func NewRunningLoader(ctx context.Context, r *Running, tok *Tokenizer,
	o RunningOptions) (*RunningLoader, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	l := &RunningLoader{spec: r.Info.Spec, whole: r.whole}
	var err error
	encode := encodeGroup
	if r.documents {
		encode = encodeDocuments
	}
	if l.train, err = encodeAll(ctx, r.Train, tok, encode); err != nil {
		return nil, err
	}
	if l.heldOut, err = encodeAll(ctx, r.HeldOut, tok, encode); err != nil {
		return nil, err
	}
	if n := len(l.heldOut); r.documents && n > 0 && len(tok.after) == 0 &&
		l.heldOut[n-1] == tok.EOS() {
		l.heldOut = l.heldOut[:n-1] // it is between documents
	}
	return l.Shaped(o)
}

// Shaped makes other batches of the same text. Where it does not fill one the error is an
// *[Error].
func (l *RunningLoader) Shaped(o RunningOptions) (*RunningLoader, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := *l
	s.opts = o
	// one window less than there are, so that epochs can begin at different tokens
	s.order = Order{Items: max(0, len(l.train)-o.Length) / o.Length, Batch: o.Rows, Seed: o.Seed}
	if s.order.Steps() == 0 && !l.whole {
		otherwise := "more text"
		if length := len(l.train) / (o.Rows + 1); length > 0 {
			otherwise = fmt.Sprintf("rows of up to %d tokens, or more text", length)
		}
		err := fmt.Errorf("%d tokens do not fill one batch of %d rows of %d tokens, and another "+
			"row: %s", len(l.train), o.Rows, o.Length, Instead(s.order.Items, otherwise))
		return nil, &Error{Spec: l.spec, Err: err}
	}
	return &s, nil
}

// groupBytes is how much text is encoded at a time. Chunks repeat within it.
const groupBytes = 1 << 20

// encodeAll is the tokens of all sections, by groups.
func encodeAll(ctx context.Context, all []Section, tok *Tokenizer,
	group func([]Section, *Tokenizer, place) []int32) ([]int32, error) {
	var starts []int
	room := 0
	for i, s := range all {
		if i == 0 || room > groupBytes {
			starts, room = append(starts, i), 0
		}
		room += len(s.Text)
	}
	encode := func(i int) ([]int32, error) {
		end := len(all)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		return group(all[starts[i]:end], tok, behind(all[:starts[i]])), nil
	}
	var out []int32
	err := inOrder(ctx, len(starts), encode, func(_ int, ids []int32) bool {
		out = append(out, ids...)
		return true
	})
	return out, err
}

// behind is the place of what is behind sections: it continues the last, unless a document ends
// there.
func behind(before []Section) place {
	if n := len(before); n > 0 && !before[n-1].Last {
		return continuing
	}
	return opening
}

// encodeGroup encodes sections, each chunk once, with EOS behind each document. at is the place
// of the first.
func encodeGroup(group []Section, tok *Tokenizer, at place) []int32 {
	own := *tok
	own.known = map[string][]int32{}
	var ids []int32
	for i, s := range group {
		if i > 0 {
			at = behind(group[:i])
		}
		ids = own.encode(ids, s.Text, math.MaxInt, at)
		if eos := own.EOS(); s.Last && eos >= 0 {
			ids = append(ids, eos)
		}
	}
	return ids
}

// encodeDocuments encodes documents, each as a text of its own, with EOS behind it if the
// tokenizer puts nothing else there.
func encodeDocuments(group []Section, tok *Tokenizer, _ place) []int32 {
	own := *tok
	own.known = map[string][]int32{}
	behind := own.after
	if eos := own.EOS(); len(behind) == 0 && eos >= 0 {
		behind = []int32{eos}
	}
	var ids []int32
	for _, s := range group {
		ids = own.encode(append(ids, own.start...), s.Text, math.MaxInt, opening)
		ids = append(ids, behind...)
	}
	return ids
}

// Tokens is how many tokens are trained on and held out.
func (l *RunningLoader) Tokens() (train, heldOut int) { return len(l.train), len(l.heldOut) }

// StepsPerEpoch is the number of batches that go through the text once.
func (l *RunningLoader) StepsPerEpoch() int { return l.order.Steps() }

// HeldOutBatches is the number of batches that hold every held-out token but the
// first once.
func (l *RunningLoader) HeldOutBatches() int {
	batch := l.opts.Rows * l.opts.Length
	return (max(0, len(l.heldOut)-1) + batch - 1) / batch
}

// Train makes the batch of a step, from 0. It depends on nothing but the text, the
// tokenizer, the options and the step. Every epoch has its own order, and windows
// that begin at other tokens.
func (l *RunningLoader) Train(step int) Batch {
	epoch := step / l.order.Steps()
	shift := int(mix(l.opts.Seed+mix(uint64(epoch)+1)) % uint64(l.opts.Length))
	return l.batch(l.train, func(row int) int {
		return shift + l.order.Item(step, row)*l.opts.Length
	})
}

// Uncounted is the batch of a step without targets: see [Maskable].
func (l *RunningLoader) Uncounted(step int) (b Batch, ok bool) {
	return untargeted(l.Train(step)), true
}

// untargeted is a batch without its targets.
func untargeted(b Batch) Batch {
	targets := b.Inputs[1].I32()
	for i := range targets {
		targets[i] = NoTarget
	}
	b.Units = 0
	return b
}

// HeldOut makes held-out batch i, 0 ≤ i < HeldOutBatches, in the order of the text.
// Behind its end there are no targets.
func (l *RunningLoader) HeldOut(i int) Batch {
	return l.batch(l.heldOut, func(row int) int {
		return (i*l.opts.Rows + row) * l.opts.Length
	})
}

// batch fills a batch with the windows that begin where at says.
func (l *RunningLoader) batch(ids []int32, at func(row int) int) Batch {
	rows, length := l.opts.Rows, l.opts.Length
	tokens, targets := make([]int32, rows*length), make([]int32, rows*length)
	b := Batch{}
	for row := range rows {
		window := ids[min(at(row), len(ids)):]
		out := targets[row*length:][:length]
		copy(tokens[row*length:][:length], window)
		n := copy(out, window[min(1, len(window)):])
		for i := n; i < length; i++ {
			out[i] = NoTarget
		}
		b.Units += n
	}
	b.Inputs = []tensor.View{tensor.FromI32(tokens, rows, length),
		tensor.FromI32(targets, rows, length)}
	return b
}
