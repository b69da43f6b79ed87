package train

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/data/speech"
)

// SpeechScorer makes scorers of models of speech of these letters, whose output is logits
// f32[frames utterances symbols]: the character error rate of greedy decoding, as
// "cer". They show the recording that was heard worst.
func SpeechScorer(letters speech.Letters) func(step int, last bool) Scorer {
	return func(int, bool) Scorer { return &speechScorer{letters: letters} }
}

type speechScorer struct {
	letters     speech.Letters
	heard, said []string
}

// Score decodes a batch of [speech.Loader].
func (s *speechScorer) Score(b data.Batch, outputs []gomem.Tensor,
	_ func([]gomem.Tensor) ([]gomem.Tensor, error)) error {
	labels, lengths, frames := b.Inputs[1], b.Inputs[2].I32(), b.Inputs[3].I32()
	texts, err := s.letters.Decode(outputs[0], frames)
	if err != nil {
		return err
	}
	width := labels.Type.Size(1)
	for i, text := range texts {
		if frames[i] > 0 { // not behind the last utterance
			s.heard = append(s.heard, text)
			s.said = append(s.said, s.letters.Text(labels.I32()[i*width:][:lengths[i]]))
		}
	}
	return nil
}

// Skip passes over a batch.
func (s *speechScorer) Skip() {}

// transcripts is a part of what was heard.
type transcripts struct {
	Heard []string `json:"heard"`
	Said  []string `json:"said"`
}

// Part is what was heard.
func (s *speechScorer) Part() ([]byte, error) {
	part := transcripts{s.heard, s.said}
	s.heard, s.said = nil, nil
	return json.Marshal(part)
}

// Add adds a batch.
func (s *speechScorer) Add(part []byte) error {
	var t transcripts
	if err := json.Unmarshal(part, &t); err != nil || len(t.Heard) != len(t.Said) {
		return errUnscored
	}
	s.heard, s.said = append(s.heard, t.Heard...), append(s.said, t.Said...)
	return nil
}

// Metrics is the error rate over all letters.
func (s *speechScorer) Metrics() (map[string]float64, error) {
	return map[string]float64{"cer": speech.CER(slices.Clone(s.heard), s.said)}, nil
}

// Samples is the utterance with the most errors for its length, the first of several.
func (s *speechScorer) Samples() []string {
	worst, most := -1, 0.0
	for i, said := range s.said {
		if e := speech.CER(s.heard[i:i+1], []string{said}); e > most {
			worst, most = i, e
		}
	}
	if worst < 0 {
		return nil
	}
	return []string{fmt.Sprintf("worst: said %q, heard %q", s.said[worst], s.heard[worst])}
}
