package data

import (
	"fmt"
	"unicode/utf8"
)

// characters are the vocabulary that merges begin with where it is not one of bytes, as
// SentencePiece has it: a character is a token, or its UTF-8 is by a token for each byte, or
// it is unknown.
type characters struct {
	ids     map[rune]int32
	bytes   [256]int32       // tokens such as <0x0A>; none where there is none
	unknown int32            // stands for a character without tokens; none leaves it out
	fuse    bool             // several such in a row are one
	joined  map[[2]rune]bool // characters that are next to each other in what a merge makes
}

// none is no id.
const none = -1

// newCharacters finds the characters of a file's vocabulary.
func newCharacters(f *tokenizerFile) (*characters, error) {
	m := f.Model
	c := &characters{ids: map[rune]int32{}, unknown: none, fuse: m.FuseUnknown,
		joined: map[[2]rune]bool{}}
	for name, id := range m.Vocab {
		if r, size := utf8.DecodeRuneInString(name); size > 0 && size == len(name) {
			c.ids[r] = id
		}
	}
	for b := range 256 {
		id, ok := m.Vocab[fmt.Sprintf("<0x%02X>", b)]
		if !ok || !m.ByteFallback {
			id = none
		}
		c.bytes[b] = id
	}
	if m.Unknown != nil && *m.Unknown != "" {
		id, ok := m.Vocab[*m.Unknown]
		if !ok {
			return nil, fmt.Errorf("unk_token %.40q: it is no token", *m.Unknown)
		}
		c.unknown = id
	}
	for _, pair := range m.Merges {
		left, _ := utf8.DecodeLastRuneInString(pair[0])
		right, _ := utf8.DecodeRuneInString(pair[1])
		c.joined[[2]rune{left, right}] = true
	}
	return c, nil
}

// start appends the ids that text begins with, before there are merges. As the library
// tokenizers has it, what is unknown comes before the next token of a character, and so behind
// tokens of bytes that follow it.
func (c *characters) start(ids []int32, text string) []int32 {
	waits := false // for its place: the unknown token
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		id, known := c.ids[r]
		known = known && !broken(r, size)
		switch {
		case known:
			if waits {
				ids, waits = append(ids, c.unknown), false
			}
			ids = append(ids, id)
		case c.spelt(text[:size]):
			for i := range size {
				ids = append(ids, c.bytes[text[i]])
			}
		case c.unknown != none:
			if waits && !c.fuse {
				ids = append(ids, c.unknown)
			}
			waits = true
		}
		text = text[size:]
	}
	if waits {
		ids = append(ids, c.unknown)
	}
	return ids
}

// broken reports whether what was read is a byte that begins no character.
func broken(r rune, size int) bool { return r == utf8.RuneError && size < 2 }

// spelt reports whether every byte of text has a token.
func (c *characters) spelt(text string) bool {
	for i := range len(text) {
		if c.bytes[text[i]] == none {
			return false
		}
	}
	return true
}

// next is the length of what merges join of the beginning of text, which is not empty: it ends
// between two characters with tokens of their own that are together in nothing that a merge
// makes. So a text without spaces that divide it takes time in proportion to its length.
func (c *characters) next(text string) int {
	before, at := utf8.DecodeRuneInString(text)
	_, known := c.ids[before]
	known = known && !broken(before, at)
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		_, also := c.ids[r]
		also = also && !broken(r, size)
		if known && also && !c.joined[[2]rune{before, r}] {
			return at
		}
		before, known, at = r, also, at+size
	}
	return at
}
