package data

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// stage is a step of cutting text.
type stage struct {
	spaces string // what spaces become; "" if they stay
	prefix string // before what does not begin with it; "" for nothing
	once   bool   // that is only where a text begins
	cut    cutter
}

// cutter says how text is cut.
type cutter interface {
	// next is the length of the piece that text, which is not empty, begins with.
	next(text string) int
}

// prepared is a piece of text as it is cut.
func (s stage) prepared(text string, at place) string {
	if s.spaces != "" {
		text = strings.ReplaceAll(text, " ", s.spaces)
	}
	if at == continuing || at == within && s.once || text == "" ||
		strings.HasPrefix(text, s.prefix) {
		return text
	}
	return s.prefix + text
}

// preStep is a part of a pre_tokenizer.
type preStep struct {
	Type        string    `json:"type"`
	Space       *bool     `json:"add_prefix_space"`
	UseRegex    *bool     `json:"use_regex"`
	Behavior    string    `json:"behavior"`
	Invert      bool      `json:"invert"`
	Individual  bool      `json:"individual_digits"`
	Parts       []preStep `json:"pretokenizers"`
	Pattern     pattern   `json:"pattern"`
	Replacement string    `json:"replacement"`
	Scheme      string    `json:"prepend_scheme"`
	Split       *bool     `json:"split"`
}

// byteLevel is the type of the part that makes bytes of what is cut.
const byteLevel = "ByteLevel"

// cutting finds the stages of the pre_tokenizer. ByteLevel is the last, or there is none and
// the vocabulary is of characters.
func (f *tokenizerFile) cutting() (stages []stage, ofBytes bool, err error) {
	if absent(f.PreTokenizer) {
		return nil, false, nil
	}
	var p preStep
	if err := json.Unmarshal(f.PreTokenizer, &p); err != nil {
		return nil, false, fmt.Errorf("pre_tokenizer: %w", err)
	}
	all := p.flat()
	for i, step := range all {
		s, ok := step.stage()
		ofBytes = step.Type == byteLevel
		if !ok || ofBytes && i < len(all)-1 {
			return nil, false, fmt.Errorf("pre_tokenizer %s: want ByteLevel as the last or none, "+
				"and Digits, Metaspace, or a Split, Isolated or MergedWithNext or "+
				"MergedWithPrevious, by a String or a Regex that looks ahead at most as GPT-2's "+
				"does", oneRow(f.PreTokenizer))
		}
		stages = append(stages, s)
	}
	return stages, ofBytes, nil
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
	case byteLevel:
		s.cut = byGPT2
		if p.UseRegex != nil && !*p.UseRegex {
			s.cut = uncut
		}
		if p.Space != nil && *p.Space {
			s.prefix = " "
		}
		return s, true
	case "Digits":
		if p.Individual {
			return stage{cut: digits}, true
		}
		return stage{cut: numerals}, true
	case "Metaspace":
		return p.metaspace()
	case "Split":
		s.cut, ok = p.split()
	}
	return s, ok
}

// split is how a Split cuts text, if that is known.
func (p preStep) split() (cutter, bool) {
	for c := range patterns {
		if patterns[c] != "" && patterns[c] == p.Pattern.Regex && p.Behavior == "Isolated" {
			return cut(c), !p.Invert
		}
	}
	m := p.Pattern.matcher()
	c := map[string]cutter{"Isolated": isolated{m}, "MergedWithNext": cutBefore{m},
		"MergedWithPrevious": cutBehind{m}}[p.Behavior]
	return c, m != nil && c != nil && !p.Invert
}

// metaspace is what a Metaspace does, if that is known. Old files say add_prefix_space.
func (p preStep) metaspace() (s stage, ok bool) {
	scheme := cmp.Or(p.Scheme, "always")
	odd := p.Space != nil && !*p.Space && scheme != "never"
	if odd || utf8.RuneCountInString(p.Replacement) != 1 {
		return s, false
	}
	s = stage{spaces: p.Replacement, once: scheme == "first",
		cut: cutBefore{literal(p.Replacement)}}
	if scheme != "never" {
		s.prefix = p.Replacement
	}
	if p.Split != nil && !*p.Split {
		s.cut = uncut
	}
	return s, scheme == "never" || scheme == "first" || scheme == "always"
}
