package train

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
)

// TextScorer makes scorers of models that map a text to another, whose output
// is the likeliest id at every position, i32[pairs length 1], given the target
// before it. In the last evaluation they write, token by token, the target that
// the model thinks likeliest, and score it by [data.BLEU] as "bleu". That takes
// an execution a token, so no more than the given number of batches is scored; in the
// other evaluations three texts are written, to be looked at. With no batches nothing is.
func TextScorer(t *data.Tokenizer, batches int) func(step int, last bool) Scorer {
	return func(_ int, last bool) Scorer {
		switch {
		case batches == 0:
			return nil
		case last:
			return &textScorer{tokenizer: t, batches: batches, rows: maxRows}
		}
		return &textScorer{tokenizer: t, batches: 1, rows: shownTexts}
	}
}

// shownTexts is how many texts an evaluation shows, maxRows more than a batch has.
const shownTexts, maxRows = 3, 1 << 30

type textScorer struct {
	tokenizer                         *data.Tokenizer
	batches                           int // still to score
	rows                              int // of a batch that are written, at most
	sources, translations, references []string
}

// Score translates the batch's sources.
func (s *textScorer) Score(b data.Batch, _ []gomem.Tensor,
	again func([]gomem.Tensor) ([]gomem.Tensor, error)) error {
	if s.batches == 0 {
		return nil
	}
	s.batches--
	source, target := b.Inputs[0], b.Inputs[1]
	rows, length := min(s.rows, target.Type.Size(0)), target.Type.Size(1)
	written, err := write(source, target, rows, again)
	if err != nil {
		return err
	}
	for row := range rows {
		ids := target.I32()[row*length:][:length]
		if ids[0] == data.PAD {
			continue // behind the last pair
		}
		s.sources = append(s.sources,
			s.tokenizer.Decode(source.I32()[row*source.Type.Size(1):][:source.Type.Size(1)]))
		s.references = append(s.references, s.tokenizer.Decode(ids))
		s.translations = append(s.translations,
			s.tokenizer.Decode(written.I32()[row*length:][:length]))
	}
	return nil
}

// Skip passes over a batch.
func (s *textScorer) Skip() { s.batches = max(0, s.batches-1) }

// texts is a part of what was written.
type texts struct { // as bytes, which need be no UTF-8
	Sources      [][]byte `json:"sources"`
	Translations [][]byte `json:"translations"`
	References   [][]byte `json:"references"`
}

// Part is the texts that were written.
func (s *textScorer) Part() ([]byte, error) {
	part := texts{bytesOf(s.sources), bytesOf(s.translations), bytesOf(s.references)}
	s.sources, s.translations, s.references = nil, nil, nil
	return json.Marshal(part)
}

// Add adds the texts of a batch.
func (s *textScorer) Add(part []byte) error {
	var t texts
	if err := json.Unmarshal(part, &t); err != nil || len(t.Translations) != len(t.Sources) ||
		len(t.References) != len(t.Sources) {
		return errUnscored
	}
	for i := range t.Sources {
		s.sources = append(s.sources, string(t.Sources[i]))
		s.translations = append(s.translations, string(t.Translations[i]))
		s.references = append(s.references, string(t.References[i]))
	}
	return nil
}

func bytesOf(texts []string) (out [][]byte) {
	for _, t := range texts {
		out = append(out, []byte(t))
	}
	return out
}

// write is the likeliest target of the first rows, token by token.
func write(source, target gomem.Tensor, rows int,
	again func([]gomem.Tensor) ([]gomem.Tensor, error)) (gomem.Tensor, error) {
	length := target.Type.Size(1)
	written := gomem.NewTensor(target.Type)
	ended := make([]bool, rows)
	for i, left := 0, rows; i < length && left > 0; i++ {
		out, err := again([]gomem.Tensor{source, written})
		if err != nil {
			return written, err
		}
		for row := range rows {
			if at := row*length + i; !ended[row] {
				id := out[0].I32()[at]
				written.I32()[at] = id
				if ended[row] = id == data.EOS || id == data.PAD; ended[row] {
					left--
				}
			}
		}
	}
	return written, nil
}

// Metrics is the BLEU of all translations, of the last evaluation.
func (s *textScorer) Metrics() (map[string]float64, error) {
	if s.rows == shownTexts {
		return nil, nil
	}
	return map[string]float64{"bleu": data.BLEU(s.translations, s.references)}, nil
}

// Samples are a few texts with what was made of them.
func (s *textScorer) Samples() []string {
	var out []string
	for i := range min(shownTexts, len(s.translations)) {
		out = append(out, plainly(s.sources[i])+" -> "+plainly(s.translations[i]))
	}
	return out
}

// plainly is a text on a line, without what would move a cursor.
func plainly(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// vocabulary is a tokenizer as text, "" for none.
func vocabulary(t *data.Tokenizer) (string, error) {
	if t == nil {
		return "", nil
	}
	text, err := t.MarshalText()
	return string(text), err
}
