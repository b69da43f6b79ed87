package command

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/train"
)

// heldOutFlags say what a run is evaluated with, and when.
type heldOutFlags struct {
	EvalEvery   count    `group:"training" placeholder:"N" default:"100"`
	EvalBatches count    `group:"data" placeholder:"N"`
	EvalData    location `group:"data" placeholder:"SPEC"`
	EvalShare   share    `group:"data" placeholder:"SHARE"`
	BLEU        *whole   `name:"bleu" group:"training" placeholder:"N"`
}

// check refuses flags that contradict each other, or do nothing for the data that are trained on.
func (f heldOutFlags) check(data string) error {
	switch {
	case f.EvalShare > 0 && f.EvalData != "":
		return usagef("--eval-share and --eval-data can't be used together: nothing that is " +
			"held out of --data is evaluated then")
	case f.EvalShare > 0 && strings.HasPrefix(data, "cifar10:"):
		return usagef("--eval-share does nothing for cifar10: its test set is what is held out")
	}
	return nil
}

// heldOutOf are batches to train on, and those of other data to evaluate with.
type heldOutOf struct {
	data.Batches
	other data.Batches
}

// HeldOutBatches are the other data's.
func (h heldOutOf) HeldOutBatches() int { return h.other.HeldOutBatches() }

// HeldOut is a batch of the other data.
func (h heldOutOf) HeldOut(i int) data.Batch { return h.other.HeldOut(i) }

// Uncounted is a batch to train on that counts for nothing: see [data.Maskable].
func (h heldOutOf) Uncounted(step int) (b data.Batch, ok bool) {
	if m, ok := h.Batches.(data.Maskable); ok {
		return m.Uncounted(step)
	}
	return b, false
}

// Err is the first failure to read either.
func (h heldOutOf) Err() error {
	var all []error
	for _, b := range []data.Batches{h.Batches, h.other} {
		if f, ok := b.(data.Fallible); ok {
			all = append(all, f.Err())
		}
	}
	return errors.Join(all...)
}

// evaluatedOn replaces what is held out of the data by all of the data of --eval-data, read
// as gomem eval reads it.
func (f heldOutFlags) evaluatedOn(ctx context.Context, w io.Writer, b *built, d dataset,
	seed uint64, strict bool) (dataset, error) {
	x := checkpointed{kind: b.kind, Checkpoint: train.Checkpoint{Seed: seed, Classes: d.classes,
		Config: map[string]string{"data": d.id}}}
	if d.tokenizer != nil {
		text, err := d.tokenizer.MarshalText()
		if err != nil {
			return d, err
		}
		x.Tokenizer = string(text)
	}
	eval := &evalCmd{Data: f.EvalData, BLEU: f.BLEU, Strict: strict}
	other, _, err := eval.load(ctx, w, x, b.model)
	if err != nil {
		return d, err
	}
	d.batches = heldOutOf{d.batches, other.batches}
	d.facts = append(d.facts, field{"evaluated on", other.about})
	return d, nil
}
