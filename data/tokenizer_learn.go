package data

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/gomem/gomem/internal/regular"
)

// endOfText is the token that ends a text, as GPT-2 calls it.
const endOfText = "<|endoftext|>"

// LearnTokenizer learns a vocabulary of up to size ids from texts, as GPT-2 has
// it: text is cut by GPT-2's pattern, the 256 bytes come first, merges follow, and
// the last id is <|endoftext|>, the tokenizer's EOS. Where the texts have too few
// frequent pairs, there are fewer ids. The tokenizer can be saved as a
// tokenizer.json.
func LearnTokenizer(ctx context.Context, texts []string, size int) (*Tokenizer, error) {
	const least = 256 + 1
	if size < least || size > maxVocabulary {
		return nil, fmt.Errorf("vocabulary of %d ids: give %d to %d", size, least, maxVocabulary)
	}
	total := 0
	for _, text := range texts {
		total += len(text)
	}
	t := bytesAlone()
	frequencies := map[string]int{}
	stride := 1 + total/trainingBytes
	for i := 0; i < len(texts); i += stride {
		countChunks(frequencies, texts[i], byGPT2)
	}
	l := newTrainer(frequencies, &t.bytes)
	for len(t.tokens) < size-1 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		m, ok := l.mostFrequent()
		if !ok {
			break
		}
		t.learn(m, l)
	}
	t.finish()
	return t, nil
}

// bytesAlone is a tokenizer without merges, its bytes in GPT-2's order: that of
// the characters that stand for them, the visible first.
func bytesAlone() *Tokenizer {
	t := &Tokenizer{stages: []stage{{cut: byGPT2}}, rank: map[merge]int{},
		tokens: make([]string, 256)}
	id := int32(0)
	for _, hidden := range []bool{false, true} {
		for b := range 256 {
			if visible(rune(b)) != hidden {
				t.bytes[b], t.tokens[id] = id, string([]byte{byte(b)})
				id++
			}
		}
	}
	t.file = &tokenizerFile{Version: "1.0", Model: bpeModel{Type: "BPE", Vocab: vocabulary{}}}
	for b, id := range t.bytes {
		t.file.Model.Vocab[string(letterOf(byte(b)))] = id
	}
	return t
}

// learn enters a merge. Two merges may make the same token, which has one id; so
// a pair that was merged can appear again, and is merged again.
func (t *Tokenizer) learn(m merge, l *trainer) {
	if rank, again := t.rank[m]; again {
		l.apply(m, t.made[rank])
		return
	}
	vocab := t.file.Model.Vocab
	left, right := mapped(t.tokens[m.left]), mapped(t.tokens[m.right])
	id, known := vocab[left+right]
	if !known {
		id = int32(len(t.tokens))
		vocab[left+right] = id
		t.tokens = append(t.tokens, t.tokens[m.left]+t.tokens[m.right])
	}
	l.apply(m, id)
	t.join(m, id)
	t.file.Model.Merges = append(t.file.Model.Merges, [2]string{left, right})
}

// mapped is bytes as the characters that stand for them.
func mapped(token string) string {
	var out []rune
	for i := range len(token) {
		out = append(out, letterOf(token[i]))
	}
	return string(out)
}

// finish enters the token that ends a text, and what a file says beside the
// vocabulary.
func (t *Tokenizer) finish() {
	id := int32(len(t.tokens))
	t.tokens = append(t.tokens, endOfText)
	t.size = len(t.tokens)
	f := t.file
	f.Added = []addedToken{{ID: id, Content: endOfText, Special: true}}
	f.Model.Vocab[endOfText] = id
	level := json.RawMessage(
		`{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}`)
	f.PreTokenizer, f.Decoder, f.PostProcessor = level, level, level
	t.index()
}

// countChunks counts the chunks of text, long ones in pieces.
func countChunks(frequencies map[string]int, text string, c cut) {
	for text != "" {
		n := min(c.next(text), maxChunkBytes)
		frequencies[text[:n]]++
		text = text[n:]
	}
}

// LoadTokenizer reads a tokenizer from a file: a tokenizer.json, or what MarshalText
// wrote. A file that is neither gives an *[Error].
func LoadTokenizer(path string) (*Tokenizer, error) {
	text, err := regular.ReadFile(path)
	if err != nil {
		return nil, FileError("tokenizer", path, err)
	}
	t := &Tokenizer{}
	if err := t.UnmarshalText(text); err != nil {
		return nil, &Error{Spec: "tokenizer", Path: path, Err: err}
	}
	return t, nil
}

// Save writes the tokenizer to a file, as a tokenizer.json if it has that format.
func (t *Tokenizer) Save(path string) error {
	write := t.MarshalText
	if t.file != nil {
		write = t.MarshalJSON
	}
	text, err := write()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o666); err != nil {
		return FileError("tokenizer", path, err)
	}
	return nil
}
