package train

import (
	"math"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
)

// TestPerplexity: e to the mean loss of all tokens, whatever batch they are in, and
// of nothing else.
func TestPerplexity(t *testing.T) {
	s := PerplexityScorer(3, true)
	for _, b := range []struct {
		targets []int32
		losses  []float32
	}{
		{[]int32{5, data.NoTarget, 0, 2}, []float32{1, 100, 2, 3}},
		{[]int32{7, data.NoTarget, data.NoTarget, data.NoTarget}, []float32{4, 1, 1, 1}},
	} {
		targets := tensor.FromI32(b.targets, len(b.targets))
		losses := tensor.FromF32(b.losses, len(b.losses))
		batch := data.Batch{Inputs: []gomem.Tensor{targets, targets}}
		if err := s.Score(batch, []gomem.Tensor{losses}, nil); err != nil {
			t.Fatal(err)
		}
	}
	m, err := s.Metrics()
	if want := math.Exp(10. / 4); err != nil || math.Abs(m["perplexity"]-want) > 1e-9 {
		t.Errorf("%v, %v, want %v", m, err, want)
	}
}
