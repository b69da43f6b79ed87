package data

import (
	"encoding/json"
	"fmt"

	"golang.org/x/text/unicode/norm"
)

// preStep is a part of a pre_tokenizer.
type preStep struct {
	Type       string    `json:"type"`
	Space      bool      `json:"add_prefix_space"`
	UseRegex   *bool     `json:"use_regex"`
	Behavior   string    `json:"behavior"`
	Invert     bool      `json:"invert"`
	Individual bool      `json:"individual_digits"`
	Parts      []preStep `json:"pretokenizers"`
	Pattern    struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
}

// stages are those of the pre_tokenizer: splits, and ByteLevel as the last.
func (f *tokenizerFile) stages() ([]stage, error) {
	var p preStep
	if !absent(f.PreTokenizer) {
		if err := json.Unmarshal(f.PreTokenizer, &p); err != nil {
			return nil, fmt.Errorf("pre_tokenizer: %w", err)
		}
	}
	var out []stage
	all := p.flat()
	for i, step := range all {
		s, ok := step.stage()
		if !ok || (step.Type == "ByteLevel") != (i == len(all)-1) {
			out = nil
			break
		}
		out = append(out, s)
	}
	if out == nil {
		return nil, fmt.Errorf("pre_tokenizer %s: want ByteLevel, and before it Digits or an "+
			"Isolated Split by the pattern of GPT-2, GPT-4 or Qwen 2", oneRow(f.PreTokenizer))
	}
	return out, nil
}

// flat is a pre_tokenizer without sequences.
func (p preStep) flat() []preStep {
	if p.Type != "Sequence" {
		return []preStep{p}
	}
	var out []preStep
	for _, part := range p.Parts {
		out = append(out, part.flat()...)
	}
	return out
}

// stage is how a part cuts text, if that is known.
func (p preStep) stage() (s stage, ok bool) {
	switch p.Type {
	case "ByteLevel":
		if p.UseRegex != nil && !*p.UseRegex {
			return stage{p.Space, uncut}, true
		}
		return stage{p.Space, byGPT2}, true
	case "Digits":
		if p.Individual {
			return stage{cut: digits}, true
		}
		return stage{cut: numerals}, true
	case "Split":
		for c := range patterns {
			if patterns[c] != "" && patterns[c] == p.Pattern.Regex {
				return stage{cut: cut(c)}, p.Behavior == "Isolated" && !p.Invert
			}
		}
	}
	return stage{}, false
}

// normStep is a part of a normalizer.
type normStep struct {
	Type  string     `json:"type"`
	Parts []normStep `json:"normalizers"`
}

// normalizer finds out what form text is brought into.
func (f *tokenizerFile) normalizer() error {
	if absent(f.Normalizer) {
		return nil
	}
	var n normStep
	if err := json.Unmarshal(f.Normalizer, &n); err != nil {
		return fmt.Errorf("normalizer: %w", err)
	}
	if !f.enterForms(n) {
		return fmt.Errorf("normalizer %s: want none, or NFC, NFD, NFKC or NFKD",
			oneRow(f.Normalizer))
	}
	return nil
}

// enterForms notes the forms of a normalizer, if they are known.
func (f *tokenizerFile) enterForms(n normStep) bool {
	forms := map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC,
		"NFKD": norm.NFKD}
	if n.Type == "Sequence" {
		for _, part := range n.Parts {
			if !f.enterForms(part) {
				return false
			}
		}
		return true
	}
	form, ok := forms[n.Type]
	f.forms = append(f.forms, form)
	return ok
}

// formed is text in its form.
func (f *tokenizerFile) formed(text string) string {
	for _, form := range f.forms {
		text = form.String(text)
	}
	return text
}

// decodeStep is a part of a decoder.
type decodeStep struct {
	Type  string       `json:"type"`
	Parts []decodeStep `json:"decoders"`
}

// decoder refuses what would make other text of ids than their bytes.
func (f *tokenizerFile) decoder() error {
	if absent(f.Decoder) {
		return nil
	}
	var d decodeStep
	if err := json.Unmarshal(f.Decoder, &d); err != nil {
		return fmt.Errorf("decoder: %w", err)
	}
	if d.Type == "Sequence" && len(d.Parts) == 1 {
		d = d.Parts[0]
	}
	if d.Type != "ByteLevel" {
		return fmt.Errorf("decoder %s: want ByteLevel", oneRow(f.Decoder))
	}
	return nil
}
