package data

import (
	"encoding/json"
	"fmt"
)

// postStep is a part of a post_processor.
type postStep struct {
	Type   string     `json:"type"`
	Parts  []postStep `json:"processors"`
	Single []struct {
		Special *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
	} `json:"single"`
	Specials map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
}

// begin finds the ids that a post_processor puts before a text.
func (t *Tokenizer) begin() error {
	if absent(t.file.PostProcessor) {
		return nil
	}
	var p postStep
	if err := json.Unmarshal(t.file.PostProcessor, &p); err != nil {
		return fmt.Errorf("post_processor: %w", err)
	}
	for _, step := range append(p.Parts, p) {
		for _, piece := range step.Single {
			if piece.Special == nil {
				break // the text itself: what follows ends it
			}
			t.start = append(t.start, step.Specials[piece.Special.ID].IDs...)
		}
	}
	for _, id := range t.start {
		if id < 0 || int(id) >= t.size {
			return fmt.Errorf("post_processor puts the id %d before texts: want 0 to %d", id,
				t.size-1)
		}
	}
	return nil
}

// Prompt is the ids of a text that a model is to continue: those of Encode, after what a
// tokenizer.json says that texts begin with, such as LLaMA's <|begin_of_text|>.
func (t *Tokenizer) Prompt(text string) []int32 {
	return append(append([]int32(nil), t.start...), t.Encode(text)...)
}
