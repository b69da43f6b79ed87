package data

import (
	"errors"
	"fmt"
	"math"

	"github.com/gomem/gomem/graph/tensor"
)

// ExamplesOptions shapes the batches of examples. The zero value, but for Batch, holds a
// tenth of the examples out and drops the few that fill no batch.
type ExamplesOptions struct {
	Batch int    // examples a batch
	Seed  uint64 // selects the order of training and which examples are held out

	// HeldOut is how many examples are kept for evaluation; 0 means a tenth of them, a
	// negative number none. InOrder holds out the last ones; else they are drawn.
	HeldOut int
	InOrder bool

	// Pad keeps the examples that fill no batch: the last batch of an epoch, and of an
	// evaluation, is filled up with rows of zeros. Each batch has one more input then, the
	// last: weights f32[Batch], 1 for an example and 0 for a row without one, over which
	// a model has to take its means. Without Pad these examples are left out of
	// evaluations; of training, each epoch leaves out others.
	Pad bool
}

// Examples are examples of one shape, in memory or made when they are asked for. They
// are [Batches]: any number of goroutines may ask for any batch.
type Examples struct {
	opts           ExamplesOptions
	types          []tensor.Type // of an example
	row            func(i int, row []tensor.View)
	train, heldOut int // examples
}

var _ Batches = (*Examples)(nil)

// FromTensors batches examples that are in memory: every tensor has one row for each
// example, such as images f32[n 28 28] and labels i32[n], and a batch has the chosen
// rows of each, f32[Batch 28 28] and i32[Batch]. The tensors are not copied.
func FromTensors(o ExamplesOptions, columns ...tensor.View) (*Examples, error) {
	if len(columns) == 0 {
		return nil, errors.New("examples: no tensors: give one with a row for each example")
	}
	n := 0
	types := make([]tensor.Type, len(columns))
	for i, c := range columns {
		if c.Type.Rank() == 0 {
			return nil, fmt.Errorf("examples: tensor %d is %s: give one with a row for each "+
				"example", i, c.Type)
		}
		if i > 0 && c.Type.Size(0) != n {
			return nil, fmt.Errorf("examples: tensor %d is %s, tensor 0 has %d rows: give both a "+
				"row for each example", i, c.Type, n)
		}
		n = c.Type.Size(0)
		types[i] = tensor.Type{DType: c.Type.DType, Shape: c.Type.Shape[1:]}
	}
	return FromFunc(o, n, func(i int, row []tensor.View) {
		for k, c := range columns {
			bytes := len(row[k].Data)
			copy(row[k].Data, c.Data[i*bytes:])
		}
	}, types...)
}

// FromFunc batches n examples that a function makes: it writes example i, 0 ≤ i < n, into
// a row of zeros of the given types. The function must be pure, and any number of
// goroutines may call it.
func FromFunc(o ExamplesOptions, n int, example func(i int, row []tensor.View),
	types ...tensor.Type) (*Examples, error) {
	e := &Examples{opts: o, types: types, row: example}
	if err := e.split(n); err != nil {
		return nil, fmt.Errorf("examples: %w", err)
	}
	return e, nil
}

// split decides which examples are held out, or why there are no batches.
func (e *Examples) split(n int) error {
	o := e.opts
	switch {
	case e.row == nil || len(e.types) == 0:
		return errors.New("nothing makes them: give a function and the types of a row")
	case o.Batch < 1:
		return fmt.Errorf("batches of %d: give at least 1", o.Batch)
	case n < 1:
		return fmt.Errorf("there are %d: give at least 1", n)
	}
	for i, t := range e.types {
		if err := e.batched(t).Check(); err != nil {
			return fmt.Errorf("input %d of a batch: %w", i, err)
		}
	}
	switch e.heldOut = max(0, o.HeldOut); {
	case o.HeldOut == 0:
		e.heldOut = n / 10
	case o.HeldOut >= n:
		return fmt.Errorf("%d of %d are held out: leave some to train on", o.HeldOut, n)
	}
	e.train = n - e.heldOut
	switch {
	case e.train < o.Batch && !o.Pad:
		return fmt.Errorf("%d to train on do not fill one batch of %d: %s", e.train, o.Batch,
			Instead(e.train, "more examples, or Pad"))
	case o.HeldOut > 0 && e.heldOut < o.Batch && !o.Pad:
		return fmt.Errorf("%d held out do not fill one batch of %d: hold out more, or Pad",
			e.heldOut, o.Batch)
	}
	return nil
}

// batched is the type of a batch of rows.
func (e *Examples) batched(t tensor.Type) tensor.Type {
	shape := append([]tensor.Dim{{Name: "batch", Size: e.opts.Batch}}, t.Shape...)
	return tensor.Named(t.DType, shape...)
}

// Types are those of a batch's inputs, with the weights if there are any.
func (e *Examples) Types() []tensor.Type {
	var types []tensor.Type
	for _, t := range e.types {
		types = append(types, e.batched(t))
	}
	if e.opts.Pad {
		types = append(types, e.batched(tensor.Of(tensor.F32)))
	}
	return types
}

// count is how many batches hold so many examples.
func (e *Examples) count(examples int) int {
	if e.opts.Pad {
		return (examples + e.opts.Batch - 1) / e.opts.Batch
	}
	return examples / e.opts.Batch
}

// StepsPerEpoch is the number of batches that hold every training example once, less the
// few that are dropped.
func (e *Examples) StepsPerEpoch() int { return e.count(e.train) }

// HeldOutBatches is the number of batches that hold every held-out example once, less the
// few that are dropped.
func (e *Examples) HeldOutBatches() int { return e.count(e.heldOut) }

// Train makes the batch of a step, from 0. Every epoch has an order of its own.
func (e *Examples) Train(step int) Batch {
	epoch, batch := step/e.StepsPerEpoch(), step%e.StepsPerEpoch()
	key := mix(e.opts.Seed + mix(uint64(epoch)))
	return e.batch(batch, e.train, func(place int) int {
		return e.example(permute(place, e.train, key))
	})
}

// Uncounted is the batch of a step whose weights are 0: see [Maskable]. Only those with Pad have
// weights.
func (e *Examples) Uncounted(step int) (b Batch, ok bool) {
	if b = e.Train(step); e.opts.Pad {
		clear(b.Inputs[len(e.types)].F32())
		b.Units = 0
	}
	return b, e.opts.Pad
}

// HeldOut makes held-out batch i, 0 ≤ i < HeldOutBatches.
func (e *Examples) HeldOut(i int) Batch {
	return e.batch(i, e.heldOut, func(place int) int { return e.example(e.train + place) })
}

// example is the number of the example at a place: those that are trained on come first.
func (e *Examples) example(place int) int {
	if e.opts.InOrder {
		return place
	}
	return permute(place, e.train+e.heldOut, mix(e.opts.Seed^heldOutKey))
}

// heldOutKey tells the drawing of what is held out from that of the orders.
const heldOutKey = 0x68656c646f7574

// batch gathers the rows of a batch of a part with so many places.
func (e *Examples) batch(i, places int, at func(place int) int) Batch {
	first := i * e.opts.Batch
	b := Batch{Units: min(e.opts.Batch, places-first)}
	for _, t := range e.Types() {
		b.Inputs = append(b.Inputs, tensor.New(t))
	}
	row := make([]tensor.View, len(e.types))
	for k := range b.Units {
		for c, t := range e.types {
			bytes := int(t.Bytes())
			row[c] = tensor.View{Type: t, Data: b.Inputs[c].Data[k*bytes:][:bytes:bytes]}
		}
		e.row(at(first+k), row)
	}
	if e.opts.Pad {
		weights := b.Inputs[len(e.types)].F32()
		for k := range b.Units {
			weights[k] = 1
		}
	}
	return b
}

// Share is the number of examples that a share of them is, for ExamplesOptions.HeldOut:
// at least 1 of any share above 0, and negative for none.
func Share(n int, share float64) (int, error) {
	switch {
	case !(share >= 0 && share < 1):
		return 0, fmt.Errorf("a share of %v: give a number from 0, below 1", share)
	case share == 0:
		return -1, nil
	}
	return max(1, int(math.Round(share*float64(n)))), nil
}
