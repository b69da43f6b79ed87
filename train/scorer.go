package train

import (
	"errors"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
)

// Scorer computes metrics of an evaluation's outputs that a graph does not: of
// texts decoded token by token, of edit distances. It also may keep outputs, such
// as images.
type Scorer interface {
	// Score adds a held-out batch with the model's outputs of it. again evaluates
	// other inputs of the same types, and returns the outputs.
	Score(b data.Batch, outputs []gomem.Tensor,
		again func(inputs []gomem.Tensor) ([]gomem.Tensor, error)) error
	// Metrics are the result over all batches, by name.
	Metrics() (map[string]float64, error)
}

// Divisible is a scorer whose batches several workers may score. One that is not has worker 0
// evaluate alone.
type Divisible interface {
	Scorer
	// Skip passes over a batch that another worker scores.
	Skip()
	// Part takes out what Score has added since the last Part, to be handed to another
	// worker's Add.
	Part() ([]byte, error)
	// Add adds what Part gave, of all batches in their order; nothing, of a worker without a
	// scorer, may be an error.
	Add(part []byte) error
}

// errUnscored is what a scorer says of a part that is none of its kind.
var errUnscored = errors.New("a worker has not scored its batches as worker 0 does: give all " +
	"the same scorer")

// Sampler is a scorer that shows some of what it has scored.
type Sampler interface {
	Samples() []string // lines of text, after Metrics
}
