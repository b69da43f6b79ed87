package data

import (
	"slices"
	"strings"
)

// Whole is the corpus with every pair held out, in the order of the corpus: for the
// evaluation of what was trained on other data. Nothing can be trained on it.
func (c *Corpus) Whole() *Corpus {
	w := &Corpus{Info: c.Info, HeldOut: slices.Concat(c.HeldOut, c.Train), whole: true}
	w.Info.HeldOut = len(w.HeldOut)
	return w
}

// Whole is [Corpus.Whole] of running text, in the order of the text.
func (r *Running) Whole() *Running {
	all := r.inOrder
	if all == nil { // it was not read, but made
		all = slices.Concat(r.HeldOut, r.Train)
	}
	w := &Running{Info: r.Info, HeldOut: all, inOrder: all, whole: true, packed: r.packed}
	w.Info.HeldOut = len(w.HeldOut)
	return w
}

// Documents is [Running.Whole] as others evaluate a text: documents are not cut, each begins
// and ends with what a tokenizer.json puts around texts, and the last does not end with EOS.
func (r *Running) Documents() *Running {
	w := r.Whole()
	w.HeldOut, w.documents = nil, true
	var text strings.Builder
	for _, s := range w.inOrder {
		text.WriteString(s.Text)
		if s.Last {
			w.HeldOut = append(w.HeldOut, Section{Text: text.String(), Last: true})
			text.Reset()
		}
	}
	w.Info.Noun, w.Info.Pairs, w.Info.HeldOut = "document", len(w.HeldOut), len(w.HeldOut)
	return w
}
