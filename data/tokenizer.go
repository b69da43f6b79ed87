package data

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The fixed ids. Every byte has an id, so every string has an encoding; merges
// follow.
const (
	PAD = 0 // fills a row behind its end
	EOS = 1 // ends every row

	firstByte  = 2
	firstMerge = firstByte + 256
)

// maxChunkBytes bounds a chunk of text, and so a token.
const maxChunkBytes = 64

// maxVocabulary bounds the number of ids; it is far above any in use and
// keeps a mistyped size from exhausting memory.
const maxVocabulary = 1 << 22

// Tokenizer maps text to sub-word ids and back. It does not change once
// trained or read, so any number of goroutines may use it.
type Tokenizer struct {
	size   int
	merges []merge       // in the order learned
	made   []int32       // by place in merges: the id that it gives
	rank   map[merge]int // place in merges
	tokens []string      // bytes of an id, by id; empty for PAD and EOS
	bytes  [256]int32    // id of every byte, if text is made of these
	chars  *characters   // that it is made of otherwise
	ends   []int32       // end a text; the first is between documents
	start  []int32       // before a text that is to be continued
	after  []int32       // behind a text that is not
	stages []stage       // in which text is cut, one after the other
	decode decoder
	file   *tokenizerFile // of tokenizers in the format of tokenizer.json

	known map[string][]int32 // ids of chunks that were met, of a copy for one goroutine
}

// merge says that two adjacent ids make one.
type merge struct {
	left, right int32
}

// newTokenizer makes the vocabulary of bytes, with room for size ids in all.
func newTokenizer(size int) (*Tokenizer, error) {
	if size < firstMerge || size > maxVocabulary {
		return nil, fmt.Errorf("vocabulary of %d ids: give %d to %d", size, firstMerge,
			maxVocabulary)
	}
	t := &Tokenizer{size: size, ends: []int32{EOS}, rank: map[merge]int{},
		stages: []stage{{cut: byClass}}, tokens: make([]string, firstMerge)}
	for b := range 256 {
		t.bytes[b] = firstByte + int32(b)
		t.tokens[firstByte+b] = string([]byte{byte(b)})
	}
	return t, nil
}

// add enters the next merge. It must join ids that exist, be new, and make a
// token that fits in a chunk.
func (t *Tokenizer) add(m merge) error {
	known := func(id int32) bool { return id >= firstByte && int(id) < len(t.tokens) }
	switch _, repeated := t.rank[m]; {
	case len(t.tokens) == t.size:
		return fmt.Errorf("more merges than %d ids have room for", t.size)
	case !known(m.left) || !known(m.right):
		return fmt.Errorf("merge of %d and %d, of which one is not an id yet", m.left, m.right)
	case repeated:
		return fmt.Errorf("merge of %d and %d for a second time", m.left, m.right)
	}
	token := t.tokens[m.left] + t.tokens[m.right]
	if len(token) > maxChunkBytes {
		return fmt.Errorf("token of %d bytes, which is more than %d", len(token), maxChunkBytes)
	}
	t.join(m, int32(len(t.tokens)))
	t.tokens = append(t.tokens, token)
	return nil
}

// join enters the next merge with the id that it gives.
func (t *Tokenizer) join(m merge, id int32) {
	t.rank[m] = len(t.merges)
	t.merges = append(t.merges, m)
	t.made = append(t.made, id)
}

// Size is the number of ids a model must provide for: ids are in [0, Size).
func (t *Tokenizer) Size() int { return t.size }

// Used is the number of ids in use. Ids in [Used, Size) never occur: the text
// had fewer pairs of symbols to merge than were asked for.
func (t *Tokenizer) Used() int { return len(t.tokens) }

// EOS is the id that ends a text: the constant of that name but for tokenizers
// of a tokenizer.json, which have their own, or −1 if they have none.
func (t *Tokenizer) EOS() int32 {
	if len(t.ends) == 0 {
		return -1
	}
	return t.ends[0]
}

// Ends are all ids that end a text. The first is EOS, which is between documents. The
// caller may not change them.
func (t *Tokenizer) Ends() []int32 { return t.ends }

// Ending is the tokenizer with other ids that end a text: a tokenizer.json does not say
// which do, and its own are guessed by their names. Ids that stand for nothing are left
// out; if there is no other, the tokenizer is as it was.
func (t *Tokenizer) Ending(ids ...int32) *Tokenizer {
	own := *t
	own.ends = nil
	for _, id := range ids {
		if id >= 0 && int(id) < len(t.tokens) && !slices.Contains(own.ends, id) {
			own.ends = append(own.ends, id)
		}
	}
	if own.ends == nil {
		return t
	}
	return &own
}

// String describes the vocabulary on one line.
func (t *Tokenizer) String() string {
	kind := "byte-level BPE"
	if t.chars != nil {
		kind = "BPE of characters"
	}
	s := fmt.Sprintf("%s, %d ids (%d merges)", kind, t.size, len(t.merges))
	if unused := t.size - t.Used(); unused > 0 {
		s += fmt.Sprintf(", the last %d unused: the text gives no more", unused)
	}
	return s
}

// Encode returns the ids of text, without EOS. Decode gives the same text
// back, whatever its bytes, unless a tokenizer.json asks for other characters or
// a space before it, or has no tokens for some, or it holds the name of a special token,
// which stands for that token.
func (t *Tokenizer) Encode(text string) []int32 {
	return t.encode(nil, text, math.MaxInt, opening)
}

// encode appends the ids of text to ids, stopping at the first chunk that ends
// with limit ids or more in all.
func (t *Tokenizer) encode(ids []int32, text string, limit int, at place) []int32 {
	if t.file != nil {
		return t.encodeFile(ids, text, limit, at)
	}
	return t.divide(ids, text, limit, at, t.stages)
}

// divide encodes text that is cut in stages: each cuts the pieces of the one before it.
func (t *Tokenizer) divide(ids []int32, text string, limit int, at place,
	stages []stage) []int32 {
	if len(stages) == 0 {
		return t.encodeChunk(ids, text)
	}
	text = stages[0].prepared(text, at)
	for text != "" && len(ids) < limit {
		n := stages[0].cut.next(text)
		ids = t.divide(ids, text[:n], limit, at, stages[1:])
		text, at = text[n:], within
	}
	return ids
}

// encodeChunk appends the ids of a chunk: its bytes or characters, with the earliest merge
// applied until none is left, the leftmost of several. Time is quadratic in a
// short chunk's bytes; long ones have an algorithm of their own.
func (t *Tokenizer) encodeChunk(ids []int32, chunk string) []int32 {
	if t.file != nil {
		if id, ok := t.file.whole[chunk]; ok {
			return append(ids, id)
		}
	}
	if t.chars == nil {
		return t.encodePart(ids, chunk)
	}
	for chunk != "" {
		n := t.chars.next(chunk)
		ids = t.encodePart(ids, chunk[:n])
		chunk = chunk[n:]
	}
	return ids
}

// encodePart is encodeChunk for what merges may join.
func (t *Tokenizer) encodePart(ids []int32, chunk string) []int32 {
	if t.known == nil {
		return t.mergeChunk(ids, chunk)
	}
	made, met := t.known[chunk]
	if !met {
		made = t.mergeChunk(nil, chunk)
		t.known[chunk] = made
	}
	return append(ids, made...)
}

// mergeChunk is encodeChunk without a memory.
func (t *Tokenizer) mergeChunk(ids []int32, chunk string) []int32 {
	if len(chunk) > maxChunkBytes {
		return t.encodeLong(ids, chunk)
	}
	start := len(ids)
	ids = t.begun(ids, chunk)
	for {
		best, at := len(t.merges), 0
		for i := start; i+1 < len(ids); i++ {
			if rank, ok := t.rank[merge{ids[i], ids[i+1]}]; ok && rank < best {
				best, at = rank, i
			}
		}
		if best == len(t.merges) {
			return ids
		}
		ids[at] = t.made[best]
		ids = append(ids[:at+1], ids[at+2:]...)
	}
}

// begun appends the ids that a chunk has before there are merges.
func (t *Tokenizer) begun(ids []int32, chunk string) []int32 {
	if t.chars != nil {
		return t.chars.start(ids, chunk)
	}
	for i := range len(chunk) {
		ids = append(ids, t.bytes[chunk[i]])
	}
	return ids
}

// Decode returns the text of ids up to the first that ends a text, without padding. An id
// that stands for nothing decodes to U+FFFD.
func (t *Tokenizer) Decode(ids []int32) string { return t.DecodeAfter("", ids) }

// DecodeAfter is the text that ids continue another text with: Decode for the empty text,
// while behind any other it keeps the space that a tokenizer.json takes from the beginning.
func (t *Tokenizer) DecodeAfter(text string, ids []int32) string {
	var tokens []string
	for _, id := range ids {
		if slices.Contains(t.ends, id) {
			break
		}
		token := "\uFFFD"
		if id >= 0 && int(id) < len(t.tokens) {
			token = t.tokens[id]
		}
		tokens = append(tokens, token)
	}
	return t.decode.text(tokens, text == "")
}

// Settled is the beginning of ids whose text none that follow can change: those before a run of
// tokens for single bytes, which are a text only when all are there.
func (t *Tokenizer) Settled(ids []int32) []int32 {
	for t.decode.bytes && len(ids) > 0 {
		id := ids[len(ids)-1]
		if id < 0 || int(id) >= len(t.tokens) {
			break
		}
		if _, ok := byteOf(t.tokens[id]); !ok {
			break
		}
		ids = ids[:len(ids)-1]
	}
	return ids
}

// textHeader names the format that MarshalText writes.
const textHeader = "gomem-bpe 1"

// MarshalText writes the vocabulary: a header with the number of ids, then a
// line "LEFT RIGHT" a merge, in the order learned. A tokenizer of the format of
// tokenizer.json is written in that, with a member "ends" that other programs do not
// read where the ids that end a text are not those that their names say.
func (t *Tokenizer) MarshalText() ([]byte, error) {
	if t.file != nil {
		f := *t.file
		if !slices.Equal(t.ends, f.namedEnds()) {
			f.Ends = t.ends
		}
		return f.marshal()
	}
	text := fmt.Appendf(nil, "%s %d\n", textHeader, t.size)
	for _, m := range t.merges {
		text = fmt.Appendf(text, "%d %d\n", m.left, m.right)
	}
	return text, nil
}

// UnmarshalText reads what MarshalText wrote. Text that is not a vocabulary
// gives an *Error with the line, and leaves t as it was.
func (t *Tokenizer) UnmarshalText(text []byte) error {
	if isJSON(text) {
		return t.UnmarshalJSON(text)
	}
	var read *Tokenizer
	n := 0
	for row := range strings.Lines(string(text)) {
		row = strings.TrimSuffix(row, "\n")
		n++
		var err error
		if n == 1 {
			read, err = parseHeader(row)
		} else {
			err = read.parseMerge(row)
		}
		if err != nil {
			return &Error{Spec: "tokenizer", Line: n,
				Err: fmt.Errorf("%w: the vocabulary is damaged", err)}
		}
	}
	if read == nil {
		return &Error{Spec: "tokenizer", Err: errors.New("empty text: the vocabulary is missing")}
	}
	*t = *read
	return nil
}

// parseHeader starts the vocabulary that the first line announces.
func parseHeader(row string) (*Tokenizer, error) {
	digits, ok := strings.CutPrefix(row, textHeader+" ")
	size, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return nil, fmt.Errorf("%.40q where %q and a size are due", row, textHeader)
	}
	return newTokenizer(size)
}

// parseMerge adds the merge in a line "LEFT RIGHT".
func (t *Tokenizer) parseMerge(row string) error {
	left, right, _ := strings.Cut(row, " ")
	l, lerr := strconv.ParseInt(left, 10, 32)
	r, rerr := strconv.ParseInt(right, 10, 32)
	if lerr != nil || rerr != nil {
		return fmt.Errorf("%.40q where two ids are due", row)
	}
	return t.add(merge{int32(l), int32(r)})
}
