package data

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// endings are the names of tokens that end a text, by what comes first.
var endings = [...]string{"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>",
	"<|eot_id|>", "<|eom_id|>"}

// namedEnds are the ids of tokens whose names say that they end a text.
func (f *tokenizerFile) namedEnds() (ids []int32) {
	for _, name := range endings {
		for _, a := range f.Added {
			if a.Content == name {
				ids = append(ids, a.ID)
			}
		}
	}
	return ids
}

// index prepares encoding, and finds the tokens that end a text.
func (t *Tokenizer) index() {
	f := t.file
	t.ends = f.namedEnds()
	for _, a := range f.Added {
		in := &f.asTyped
		if a.Normalized {
			in = &f.inFormed
		}
		in.add(f.text(a), a)
	}
	if f.Model.IgnoreMerges {
		f.whole = map[string]int32{}
		for name, id := range f.Model.Vocab {
			f.whole[t.spelling(name)] = id
		}
	}
}

// names are those of added tokens, as they stand in text.
type names struct {
	by      map[string]addedToken
	lengths []int     // that there are, the longest first
	first   [256]bool // bytes that they begin with
}

// add enters a name, the first of several that are the same.
func (n *names) add(text string, a addedToken) {
	if n.by == nil {
		n.by = map[string]addedToken{}
	}
	if _, again := n.by[text]; again {
		return
	}
	n.by[text], n.first[text[0]] = a, true
	if !slices.Contains(n.lengths, len(text)) {
		n.lengths = append(n.lengths, len(text))
		slices.SortFunc(n.lengths, func(a, b int) int { return b - a })
	}
}

// find is the first name in text, the longest of several that begin there: its place, its
// length and its token. The place is the text's length if there is none.
func (n *names) find(text string) (at, length int, found addedToken) {
	for at := range len(text) {
		if !n.first[text[at]] {
			continue
		}
		for _, length := range n.lengths {
			if length > len(text)-at {
				continue
			}
			if a, ok := n.by[text[at:at+length]]; ok {
				return at, length, a
			}
		}
	}
	return len(text), 0, found
}

// around encodes text with names in it, and what is between these by piece.
func (n *names) around(ids []int32, text string, limit int, where place,
	piece func(ids []int32, text string, where place) []int32) []int32 {
	done, read := 0, 0 // before which text is encoded, and has no further names
	for done < len(text) && len(ids) < limit {
		at, length, a := n.find(text[read:])
		from, to := read+at, read+at+length
		read = to
		if a.SingleWord && (endsInWord(text[:from]) || beginsWord(text[to:])) {
			continue
		}
		if a.LStrip {
			from = max(done, len(strings.TrimRightFunc(text[:from], unicode.IsSpace)))
		}
		if a.RStrip {
			to = len(text) - len(strings.TrimLeftFunc(text[to:], unicode.IsSpace))
		}
		if done < from {
			ids = piece(ids, text[done:from], where)
		}
		if length > 0 && len(ids) < limit {
			ids = append(ids, a.ID)
		}
		done, where = to, within
	}
	return ids
}

// endsInWord reports whether a word may go on behind text.
func endsInWord(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return inWord(r)
}

// beginsWord reports whether a word may have begun before text.
func beginsWord(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return inWord(r)
}

// inWord reports whether a character is one of a word's.
func inWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc,
		unicode.Other_Alphabetic, unicode.Join_Control)
}

// encodeFile is encode for tokenizers of a tokenizer.json: names of added tokens are found
// in the text as it is, then it is brought into its form, and others are found in that.
func (t *Tokenizer) encodeFile(ids []int32, text string, limit int, at place) []int32 {
	cut := func(ids []int32, text string, at place) []int32 {
		return t.divide(ids, text, limit, at, t.stages)
	}
	form := func(ids []int32, text string, at place) []int32 {
		return t.file.inFormed.around(ids, t.file.formed(text, at), limit, at, cut)
	}
	return t.file.asTyped.around(ids, text, limit, at, form)
}
