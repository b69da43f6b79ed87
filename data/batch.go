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

// Fallible are batches of files that may fail to be read again long after they
// were found.
type Fallible interface {
	Err() error // the first failure: batches since have nothing in its place
}
