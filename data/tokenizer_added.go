package data

import "strings"

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
		in.add(f.text(a), a.ID)
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
	all   []name
	first [256]bool // bytes that they begin with
}

type name struct {
	text string
	id   int32
}

func (n *names) add(text string, id int32) {
	n.all = append(n.all, name{text, id})
	n.first[text[0]] = true
}

// find is the first name in text, the longest of several that begin there: its place, its
// length and its id. The place is the text's length if there is none.
func (n *names) find(text string) (at, length int, id int32) {
	for i := range len(text) {
		if !n.first[text[i]] {
			continue
		}
		for _, a := range n.all {
			if len(a.text) > length && strings.HasPrefix(text[i:], a.text) {
				length, id = len(a.text), a.id
			}
		}
		if length > 0 {
			return i, length, id
		}
	}
	return len(text), 0, 0
}

// around encodes text with names in it, and what is between these by piece.
func (n *names) around(ids []int32, text string, limit int, where place,
	piece func(ids []int32, text string, where place) []int32) []int32 {
	for text != "" && len(ids) < limit {
		at, length, id := n.find(text)
		if at > 0 {
			ids = piece(ids, text[:at], where)
		}
		if length > 0 && len(ids) < limit {
			ids = append(ids, id)
		}
		text, where = text[at+length:], within
	}
	return ids
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
