package train

import (
	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
)

// TextScorer makes scorers of models that map a text to another, whose output
// is the likeliest id at every position, i32[pairs length 1], given the target
// before it. In the last evaluation they write, token by token, the target that
// the model thinks likeliest, and score it by [data.BLEU] as "bleu". That takes
// an execution a token, so no more than the given number of batches is scored.
func TextScorer(t *data.Tokenizer, batches int) func(step int, last bool) Scorer {
	return func(_ int, last bool) Scorer {
		if !last || batches == 0 {
			return nil
		}
		return &textScorer{tokenizer: t, batches: batches}
	}
}

type textScorer struct {
	tokenizer                *data.Tokenizer
	batches                  int // still to score
	translations, references []string
}

// Score translates the batch's sources.
func (s *textScorer) Score(b data.Batch, _ []gomem.Tensor,
	again func([]gomem.Tensor) ([]gomem.Tensor, error)) error {
	if s.batches == 0 {
		return nil
	}
	s.batches--
	source, target := b.Inputs[0], b.Inputs[1]
	pairs, length := target.Type.Size(0), target.Type.Size(1)
	written := gomem.NewTensor(target.Type)
	ended := make([]bool, pairs)
	for i, left := 0, pairs; i < length && left > 0; i++ {
		out, err := again([]gomem.Tensor{source, written})
		if err != nil {
			return err
		}
		for row := range pairs {
			if at := row*length + i; !ended[row] {
				id := out[0].I32()[at]
				written.I32()[at] = id
				if ended[row] = id == data.EOS || id == data.PAD; ended[row] {
					left--
				}
			}
		}
	}
	for row := range pairs {
		ids := target.I32()[row*length:][:length]
		if ids[0] == data.PAD {
			continue // behind the last pair
		}
		s.references = append(s.references, s.tokenizer.Decode(ids))
		s.translations = append(s.translations,
			s.tokenizer.Decode(written.I32()[row*length:][:length]))
	}
	return nil
}

// Metrics is the BLEU of all translations.
func (s *textScorer) Metrics() (map[string]float64, error) {
	return map[string]float64{"bleu": data.BLEU(s.translations, s.references)}, nil
}
