package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
)

// minute is a tokenizer.json with the bytes, and some members more that take the places of
// those that it has.
func minute(f *testing.F, more map[string]any) []byte {
	f.Helper()
	vocab := vocabulary{}
	for b := range 256 {
		vocab[string(letterOf(byte(b)))] = int32(b)
	}
	vocab["th"], vocab["the"] = 256, 257
	model := map[string]any{"type": "BPE", "vocab": vocab,
		"merges": [][]string{{"t", "h"}, {"th", "e"}}}
	all := map[string]any{"pre_tokenizer": map[string]any{"type": "ByteLevel"}, "model": model}
	for key, value := range more {
		if in, ok := value.(map[string]any); ok && key == "model" {
			for k, v := range in {
				model[k] = v
			}
			continue
		}
		all[key] = value
	}
	text, err := json.Marshal(all)
	if err != nil {
		f.Fatal(err)
	}
	return text
}

// FuzzTokenizer: a vocabulary that is read has ids for every text and the text for these, has
// no more ids than the file has room for, and is written as what reads as the same; of any
// other the error is an *Error of one line, of no great length.
func FuzzTokenizer(f *testing.F) {
	type object = map[string]any
	added := func(a ...object) object { return object{"added_tokens": a} }
	for _, more := range []object{nil, added(object{"id": 258, "content": "</s>"}),
		added(object{"id": 1<<22 - 1, "content": "far"}), {"more": 1},
		{"normalizer": object{"type": "NFC"}, "decoder": object{"type": "ByteLevel"}},
		added(object{"id": 258, "content": "a\nb", "normalized": true}),
		added(object{"id": 0, "content": "again"}), added(object{"id": -1, "content": "x"}),
		{"model": object{"merges": [][]string{{"t", "h", "e"}}}},
		{"model": object{"merges": []string{"t h"}, "ignore_merges": true}},
		{"model": object{"type": "Unigram\u2028"}}, {"model": object{"dropout": "\u2028"}},
		{"ends": []int{257, 3, -1}}, {"decoder": object{"type": "a\u0085b"}},
		{"model": object{"vocab": object{"": 0}}},
		{"post_processor": object{"type": "TemplateProcessing"}},
		{"pre_tokenizer": nil, "decoder": object{"type": "Sequence", "decoders": []object{
			{"type": "ByteFallback"}, {"type": "Fuse"},
			{"type": "Strip", "content": " ", "start": 1 << 60}}},
			"normalizer": object{"type": "Prepend", "prepend": "▁"},
			"model":      object{"byte_fallback": true, "unk_token": "the"}},
		{"pre_tokenizer": object{"type": "Metaspace", "replacement": "▁"},
			"decoder": object{"type": "Metaspace", "replacement": "▁"}},
		{"pre_tokenizer": object{"type": "Sequence", "pretokenizers": []object{
			{"type": "Split", "behavior": "Isolated",
				"pattern": object{"Regex": `[^\s\d]+|\s+(?!\S)|\s+`}}, {"type": "ByteLevel"}}}},
		added(object{"id": 258, "content": "th", "lstrip": true, "rstrip": true,
			"single_word": true})} {
		f.Add(minute(f, more))
	}
	f.Add([]byte(`{"added_tokens":[{"id":` + strings.Repeat("9", 5000) + `}]}`))
	f.Add([]byte(`{"model":{"vocab":{"a":1.5}}}`))
	f.Add([]byte("gomem-bpe 1 260\n3 4\n260 5\n"))
	f.Add([]byte("gomem-bpe 1 4194304\n3 4\n258 258\n"))
	f.Add([]byte("gomem-bpe 1 300\n3 4\n3 4\n"))
	f.Add([]byte("gomem-bpe 1 300\n+3 4 5\r\n\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		tok := &Tokenizer{}
		if err := tok.UnmarshalText(text); err != nil {
			odd := func(r rune) bool { return !unicode.IsPrint(r) }
			if _, ok := errors.AsType[*Error](err); !ok || len(err.Error()) > 1000 ||
				strings.ContainsFunc(err.Error(), odd) {
				t.Errorf("%q", err)
			}
			return
		}
		if most := mostIDs(len(text)); tok.Used() > most {
			t.Errorf("%d ids of %d bytes", tok.Used(), len(text))
		}
		first, err := tok.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		again := &Tokenizer{}
		if err := again.UnmarshalText(first); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, err := again.MarshalText(); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s is read and written as %s, %v", first, second, err)
		}
		const said = "then the\nother \xff"
		ids := tok.Encode(said)
		if got := tok.Decode(ids); got != said && plainly(tok) {
			t.Errorf("%v is %q, want %q", ids, got, said)
		}
	})
}

// plainly reports whether a tokenizer gives every text back: it has no other form for it, adds
// no space, and no token that ends a text has a name that text may hold.
func plainly(t *Tokenizer) bool {
	if t.file == nil {
		return true
	}
	for _, s := range t.stages {
		if s.prefix != "" || s.spaces != "" {
			return false
		}
	}
	return len(t.file.changes)+len(t.file.Added) == 0 && len(t.ends) == 0 && t.chars == nil
}
