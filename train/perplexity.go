package train

import (
	"encoding/binary"
	"math"

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
	losses, total := outputs[0].F32(), 0.0
	for i, id := range b.Inputs[1].I32() {
		if id != data.NoTarget {
			total += float64(losses[i])
			p.tokens++
		}
	}
	p.total += total
	return nil
}

// Skip passes over a batch.
func (p *perplexity) Skip() {}

// Part is the sum of the losses, and their number.
func (p *perplexity) Part() ([]byte, error) {
	b := binary.LittleEndian.AppendUint64(nil, math.Float64bits(p.total))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.tokens))
	*p = perplexity{}
	return b, nil
}

// Add adds a batch's.
func (p *perplexity) Add(part []byte) error {
	if len(part) != 16 {
		return errUnscored
	}
	p.total += math.Float64frombits(binary.LittleEndian.Uint64(part))
	p.tokens += int(binary.LittleEndian.Uint64(part[8:]))
	return nil
}

// Metrics is the perplexity of all batches.
func (p *perplexity) Metrics() (map[string]float64, error) {
	return map[string]float64{"perplexity": libm.Exp(p.total / float64(max(1, p.tokens)))}, nil
}
