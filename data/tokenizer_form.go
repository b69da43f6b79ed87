package data

import (
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// place says where a piece of text is, for what is put before some pieces.
type place uint8

const (
	opening    place = iota // a text begins with it
	continuing              // it begins with what continues a text
	within                  // it is behind other pieces
)

// change is a step of bringing text into its form.
type change func(text string, at place) string

// normStep is a part of a normalizer.
type normStep struct {
	Type    string     `json:"type"`
	Parts   []normStep `json:"normalizers"`
	Prepend string     `json:"prepend"`
	Pattern pattern    `json:"pattern"`
	Content string     `json:"content"`
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
	changes, ok := n.changes()
	if !ok {
		return fmt.Errorf("normalizer %s: want none, or NFC, NFD, NFKC, NFKD, Prepend and Replace "+
			"of a String", oneRow(f.Normalizer))
	}
	if n.growth() > maxGrowth {
		return fmt.Errorf("normalizer %s: makes texts more than %d times as long: want less",
			oneRow(f.Normalizer), maxGrowth)
	}
	f.changes = changes
	return nil
}

// maxGrowth is how many times as long replacements may make a text: a list of them that each double
// it would take all memory.
const maxGrowth = 64

// growth is how many times as long a text may be in which the pattern is replaced.
func (p pattern) growth(by string) float64 {
	from, ok := p.is()
	if !ok {
		return 1
	}
	return max(1, float64(len(by))/float64(len(from)))
}

// growth is how many times as long replacements can make a text.
func (n normStep) growth() float64 {
	all := 1.0
	if n.Type == "Replace" {
		all = n.Pattern.growth(n.Content)
	}
	for _, part := range n.Parts {
		all *= part.growth()
	}
	return all
}

// changes are those of a normalizer, if they are known.
func (n normStep) changes() ([]change, bool) {
	form := func(f norm.Form) ([]change, bool) {
		return []change{func(text string, _ place) string { return f.String(text) }}, true
	}
	switch n.Type {
	case "Sequence":
		var all []change
		for _, part := range n.Parts {
			some, ok := part.changes()
			if !ok {
				return nil, false
			}
			all = append(all, some...)
		}
		return all, true
	case "NFC":
		return form(norm.NFC)
	case "NFD":
		return form(norm.NFD)
	case "NFKC":
		return form(norm.NFKC)
	case "NFKD":
		return form(norm.NFKD)
	case "Prepend":
		return []change{func(text string, at place) string {
			if text == "" || at == continuing {
				return text
			}
			return n.Prepend + text
		}}, true
	case "Replace":
		from, ok := n.Pattern.is()
		return []change{func(text string, _ place) string {
			return strings.ReplaceAll(text, from, n.Content)
		}}, ok
	}
	return nil, false
}

// formed is text in its form.
func (f *tokenizerFile) formed(text string, at place) string {
	for _, c := range f.changes {
		text = c(text, at)
	}
	return text
}
