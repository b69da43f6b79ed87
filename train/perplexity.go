package train

import (
	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/internal/libm"
)

// PerplexityScorer makes scorers of language models of running text, whose first
// output is the loss of every position, f32[texts length], and whose batches are those
// of [data.RunningLoader]. In every evaluation they compute "perplexity", e to the mean
// loss of all tokens.
func PerplexityScorer(int, bool) Scorer { return &perplexity{} }

type perplexity struct {
	total  float64
	tokens int
}

// Score adds the losses of positions that have a target.
func (p *perplexity) Score(b data.Batch, outputs []gomem.Tensor,
	_ func([]gomem.Tensor) ([]gomem.Tensor, error)) error {
	losses := outputs[0].F32()
	for i, id := range b.Inputs[1].I32() {
		if id != data.NoTarget {
			p.total += float64(losses[i])
			p.tokens++
		}
	}
	return nil
}

// Metrics is the perplexity of all batches.
func (p *perplexity) Metrics() (map[string]float64, error) {
	return map[string]float64{"perplexity": libm.Exp(p.total / float64(max(1, p.tokens)))}, nil
}
