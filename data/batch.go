package data

import "github.com/gomem/gomem/graph/tensor"

// Batch is one step's input.
type Batch struct {
	Inputs []tensor.View // in the order of the inputs of the model that it is for
	Units  int           // what losses are averaged over: target tokens, images, utterances
	Bucket int           // of texts, place of the shape in Loader.Buckets
}

// Batches are what a model is trained on and evaluated with: a [Loader] of
// texts, or the loader of another kind of data. Its methods are pure functions
// that any number of goroutines may call, so that a run that is resumed sees
// what one that never stopped would have.
type Batches interface {
	StepsPerEpoch() int
	HeldOutBatches() int
	Train(step int) Batch // step counts from 0, through epochs in orders of their own
	HeldOut(i int) Batch  // 0 ≤ i < HeldOutBatches
}

// Maskable are batches of which any can be made to count for nothing: so that all workers may
// make a last step together for which there are fewer batches than workers.
type Maskable interface {
	// Uncounted is the batch of a step with nothing to be learnt from: its targets, labels or
	// weights are those of rows that are not there, and it has no units. ok says whether the
	// batches have such rows.
	Uncounted(step int) (b Batch, ok bool)
}

// Fallible are batches of files that may fail to be read again long after they
// were found.
type Fallible interface {
	Err() error // the first failure: batches since have nothing in its place
}
