package llamacpp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem/internal/gguf"
	"github.com/gomem/gomem/internal/legible"
)

// The kinds of tokens that tokenizer.ggml.token_type tells apart.
const (
	normalToken  = 1
	unknownToken = 2 // stands for what has no token
	controlToken = 3
	ownToken     = 4 // that the model's user has added
	unusedToken  = 5
	byteToken    = 6 // such as <0x0A>
)

// cutting is how texts are cut, by the name that tokenizer.ggml.pre gives it, as members of a
// tokenizer.json; and whether a text begins with a token if the file does not say.
type cutting struct {
	normalizer any
	steps      []any
	whole      bool // chunks that are tokens need no merges
	begins     bool
}

// The patterns of LLaMA 3 and of Qwen 2.
const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|`
	others       = ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	triples      = contractions + `\p{N}{1,3}|` + others
	singles      = contractions + `\p{N}|` + others
)

type object = map[string]any

// bytesAs is the last step of cutting, by GPT-2's pattern or none.
func bytesAs(pattern bool) any {
	return object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
		"use_regex": pattern}
}

// split is a step of cutting by a pattern.
func split(pattern string) any {
	return object{"type": "Split", "pattern": object{"Regex": pattern}, "behavior": "Isolated",
		"invert": false}
}

// cuttings are those that are known.
var cuttings = map[string]cutting{
	"gpt-2":     {steps: []any{bytesAs(true)}},
	"llama-bpe": {steps: []any{split(triples), bytesAs(false)}, whole: true, begins: true},
	"qwen2":     qwen2Cutting,
	"smollm": {steps: []any{object{"type": "Digits", "individual_digits": true},
		bytesAs(true)}},
	"deepseek-r1-qwen": qwen2Cutting,
	"dbrx":             {steps: []any{split(triples), bytesAs(false)}},
}

var qwen2Cutting = cutting{normalizer: object{"type": "NFC"},
	steps: []any{split(singles), bytesAs(false)}}

// Tokenizer is the tokenizer.json of what a file says of its tokens. It is nil if it says nothing.
func Tokenizer(values gguf.Metadata) ([]byte, error) {
	t := &vocabulary{values: values}
	model, said := t.get("model").(string)
	if !said {
		return nil, nil
	}
	var file object
	var err error
	begins := true
	switch model {
	case "gpt2":
		file, begins, err = t.ofBytes()
	case "llama":
		file, err = t.ofCharacters()
	default:
		err = fmt.Errorf("tokenizer.ggml.model is %s: want gpt2, which is byte-level BPE, or "+
			"llama, which is SentencePiece's", brief(model))
	}
	if err != nil {
		return nil, err
	}
	before, err := t.beside("bos", begins)
	if err != nil {
		return nil, err
	}
	behind, err := t.beside("eos", false)
	if err != nil {
		return nil, err
	}
	if len(before)+len(behind) > 0 {
		file["post_processor"] = t.template(before, behind)
	}
	return json.Marshal(file)
}

// ofBytes is the file of byte-level BPE, and whether texts usually begin with a token.
func (t *vocabulary) ofBytes() (file object, begins bool, err error) {
	pre, _ := t.get("pre").(string)
	c, known := cuttings[pre]
	if !known {
		return nil, false, fmt.Errorf("tokenizer.ggml.pre is %s: want gpt-2, llama-bpe, qwen2, "+
			"smollm, deepseek-r1-qwen or dbrx", brief(t.get("pre")))
	}
	if err := t.read(normalToken); err != nil {
		return nil, false, err
	}
	merges, ok := t.get("merges").([]string)
	if !ok {
		return nil, false, errors.New("tokenizer.ggml.merges is missing: want one for each token " +
			"of several bytes")
	}
	return object{"version": "1.0", "added_tokens": t.added, "normalizer": c.normalizer,
		"pre_tokenizer": object{"type": "Sequence", "pretokenizers": c.steps},
		"decoder":       bytesAs(true),
		"model": object{"type": "BPE", "ignore_merges": c.whole, "vocab": t.ids,
			"merges": merges}}, c.begins, nil
}

// vocabulary reads a file's tokens.
type vocabulary struct {
	values gguf.Metadata
	names  []string
	kinds  []int32 // of them; nil if all are normal
	ids    map[string]int
	added  []object
}

func (t *vocabulary) get(key string) any { return t.values.Get("tokenizer.ggml." + key) }

// read enters tokens, which are of some kinds, or are added to these.
func (t *vocabulary) read(own ...int32) error {
	t.names, _ = t.get("tokens").([]string)
	t.kinds, _ = t.get("token_type").([]int32)
	if len(t.names) == 0 || t.kinds != nil && len(t.kinds) != len(t.names) {
		return fmt.Errorf("tokenizer.ggml.tokens has %d tokens, and token_type %d: want one of "+
			"each", len(t.names), len(t.kinds))
	}
	t.ids, t.added = map[string]int{}, []object{}
	taken := map[string]int{}
	for id, name := range t.names {
		kind := t.kind(id)
		if kind == unusedToken {
			continue
		}
		if other, twice := taken[name]; twice {
			return fmt.Errorf("tokenizer.ggml.tokens has %s as %d and as %d: want one id for each",
				legible.Cut(name, 40), other, id)
		}
		taken[name] = id
		switch {
		case slices.Contains(own, kind):
			t.ids[name] = id
			if kind == unknownToken {
				t.add(id, kind)
			}
		case kind == controlToken || kind == ownToken:
			t.add(id, kind)
		default:
			return fmt.Errorf("tokenizer.ggml.token_type has %d for token %d: want one of %d",
				kind, id, slices.Concat(own, []int32{controlToken, ownToken, unusedToken}))
		}
	}
	return nil
}

// kind is a token's.
func (t *vocabulary) kind(id int) int32 {
	if t.kinds == nil {
		return normalToken
	}
	return t.kinds[id]
}

// add enters a token that text may hold by its name.
func (t *vocabulary) add(id int, kind int32) {
	t.added = append(t.added, object{"id": id, "content": t.names[id], "single_word": false,
		"lstrip": false, "rstrip": false, "normalized": false, "special": kind != ownToken})
}

// beside is the token that is put beside texts, if the file says so, or says nothing and it usually
// is.
func (t *vocabulary) beside(what string, usually bool) ([]int64, error) {
	put := usually
	if said, ok := t.get("add_" + what + "_token").(bool); ok {
		put = said
	}
	if !put {
		return nil, nil
	}
	id, ok := whole(t.get(what + "_token_id"))
	if !ok || id < 0 || id >= int64(len(t.names)) {
		return nil, fmt.Errorf("tokenizer.ggml.%s_token_id is %s: want the id of a token, which "+
			"add_%s_token has put beside texts", what, brief(t.get(what+"_token_id")), what)
	}
	return []int64{id}, nil
}

// template is a post_processor that puts tokens beside a text.
func (t *vocabulary) template(before, behind []int64) any {
	pieces, specials := []any{}, object{}
	put := func(ids []int64) {
		for _, id := range ids {
			name := t.names[id]
			pieces = append(pieces, object{"SpecialToken": object{"id": name, "type_id": 0}})
			specials[name] = object{"id": name, "ids": []int64{id}, "tokens": []string{name}}
		}
	}
	put(before)
	pieces = append(pieces, object{"Sequence": object{"id": "A", "type_id": 0}})
	put(behind)
	return object{"type": "TemplateProcessing", "single": pieces, "pair": pieces,
		"special_tokens": specials}
}
