package data

import (
	"encoding/json"
	"fmt"
	"slices"
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

// begin finds the ids that a post_processor puts before a text, and behind it.
func (t *Tokenizer) begin() error {
	if absent(t.file.PostProcessor) {
		return nil
	}
	var p postStep
	if err := json.Unmarshal(t.file.PostProcessor, &p); err != nil {
		return fmt.Errorf("post_processor: %w", err)
	}
	if !t.process(p) {
		return fmt.Errorf("post_processor %s: want ByteLevel or TemplateProcessing",
			oneRow(t.file.PostProcessor))
	}
	for _, id := range slices.Concat(t.start, t.after) {
		if id < 0 || int(id) >= t.size {
			return fmt.Errorf("post_processor puts the id %d beside texts: want 0 to %d", id,
				t.size-1)
		}
	}
	return nil
}

// process notes what a part of a post_processor does, if that is known.
func (t *Tokenizer) process(p postStep) bool {
	switch p.Type {
	case "Sequence":
		for _, part := range p.Parts {
			if !t.process(part) {
				return false
			}
		}
	case "TemplateProcessing":
		into := &t.start
		for _, piece := range p.Single {
			if piece.Special == nil {
				into = &t.after // the text itself
				continue
			}
			*into = append(*into, p.Specials[piece.Special.ID].IDs...)
		}
	default:
		return p.Type == "ByteLevel" // which moves offsets alone
	}
	return true
}

// Prompt is the ids of a text that a model is to continue: those of Encode, after what a
// tokenizer.json says that texts begin with, such as LLaMA's <|begin_of_text|>.
func (t *Tokenizer) Prompt(text string) []int32 {
	return append(append([]int32(nil), t.start...), t.Encode(text)...)
}
