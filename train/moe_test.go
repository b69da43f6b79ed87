package train

import (
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
)

// moe are the options of a short run of the smallest Transformer with experts.
func moe(t *testing.T, sparse bool) Options {
	t.Helper()
	config, err := models.NewMoEConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	config.Sparse = sparse
	m, err := models.MoE(config)
	if err != nil {
		t.Fatal(err)
	}
	c, tok := corpus(t, config.Vocab)
	return Options{
		Model: &m.Model, Loader: loader(t, c, tok, &m.Model), Tokenizer: tok,
		Session: gomem.Options{Threads: 1},
		Steps:   20, Seed: 7, EvalBatches: 1,
	}
}

// TestTransformerResumes: a resumed run of the mixture of experts is the
// uninterrupted one, bit for bit, dropout and optimizer included.
func TestTransformerResumes(t *testing.T) {
	longtest.Skip(t)
	for name, sparse := range map[string]bool{"dense": false, "sparse": true} {
		t.Run(name, func(t *testing.T) { resumes(t, moe(t, sparse)) })
	}
}
