package train

import (
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

// Sampler is a scorer that shows some of what it has scored.
type Sampler interface {
	Samples() []string // lines of text, after Metrics
}
