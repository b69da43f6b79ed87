package main

import (
	"context"
	"fmt"
	"io"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// loadTexts reads pairs of texts and learns the sub-words. What takes long says
// so.
func loadTexts(ctx context.Context, w io.Writer, c *trainCmd, m *models.Model) (dataset, error) {
	spec := c.spec("go:doc")
	corpus, err := data.Open(ctx, spec, reading(w, spec))
	if err != nil {
		return dataset{}, asSpec(err)
	}
	done := notice(w, fmt.Sprintf("gomem: learning up to %d sub-words from %s", m.Classes,
		counted(corpus.Info.Pairs, "pair")))
	defer done()
	tokenizer, err := data.TrainTokenizer(ctx, corpus, m.Classes)
	if err != nil {
		return dataset{}, err
	}
	source := m.Data[0].Type()
	loader, err := data.NewLoader(corpus, tokenizer,
		data.LoaderOptions{Pairs: source.Size(0), Length: source.Size(1), Seed: c.Seed})
	return dataset{
		batches: loader, tokenizer: tokenizer, about: corpus.Info.String(), id: corpus.Info.SHA256,
		facts:  []field{{"vocabulary", grouped(int64(tokenizer.Used())) + " sub-words"}},
		scorer: train.TextScorer(tokenizer, c.translations(m)),
	}, err
}

// translations is the number of held-out batches that are translated for BLEU.
// At full size that takes hours on a processor, so there it has to be asked for.
func (c *trainCmd) translations(m *models.Model) int {
	switch {
	case c.BLEU != nil:
		return int(*c.BLEU)
	case m.Size == "base":
		return 0
	}
	return 2
}
