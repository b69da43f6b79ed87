package llamacpp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/internal/legible"
)

// tokenizerFile is what of a tokenizer.json is written as keys.
type tokenizerFile struct {
	Added []struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	} `json:"added_tokens"`
	Normalizer any  `json:"normalizer"`
	Decoder    any  `json:"decoder"`
	Cut        step `json:"pre_tokenizer"`
	Post       step `json:"post_processor"`
	Model      struct {
		Whole  bool              `json:"ignore_merges"`
		Bytes  bool              `json:"byte_fallback"`
		Fuse   bool              `json:"fuse_unk"`
		Stands string            `json:"unk_token"`
		Vocab  map[string]int    `json:"vocab"`
		Merges []json.RawMessage `json:"merges"`
	} `json:"model"`
}

// step is a part of cutting texts, or of what is put beside them.
type step struct {
	Type       string `json:"type"`
	Cuts       []step `json:"pretokenizers"`
	Processors []step `json:"processors"`
	Space      bool   `json:"add_prefix_space"`
	Regex      *bool  `json:"use_regex"`
	Individual bool   `json:"individual_digits"`
	Pattern    struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
	Single []struct {
		Special *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
	} `json:"single"`
	Specials map[string]struct {
		IDs []int64 `json:"ids"`
	} `json:"special_tokens"`
}

// flat is a step's parts, and theirs.
func (s step) flat() []step {
	if s.Type != "Sequence" {
		return []step{s}
	}
	var all []step
	for _, part := range append(s.Cuts, s.Processors...) {
		all = append(all, part.flat()...)
	}
	return all
}

// cutting is the name of how texts are cut; "" if it has none.
func (f *tokenizerFile) cutting() string {
	var cuts []string
	for _, s := range f.Cut.flat() {
		switch {
		case s.Type == "Split":
			cuts = append(cuts, s.Pattern.Regex)
		case s.Type == "Digits" && s.Individual:
			cuts = append(cuts, "digits")
		case s.Type == "ByteLevel" && !s.Space && (s.Regex == nil || *s.Regex):
			cuts = append(cuts, "pattern")
		case s.Type == "ByteLevel" && !s.Space:
			cuts = append(cuts, "bytes")
		default:
			return ""
		}
	}
	form := ""
	if n, ok := f.Normalizer.(object); ok {
		form, _ = n["type"].(string)
	}
	for _, way := range []struct {
		name, form string
		cuts       []string
		whole      bool
	}{
		{"gpt-2", "", []string{"pattern"}, false},
		{"smollm", "", []string{"digits", "pattern"}, false},
		{"llama-bpe", "", []string{triples, "bytes"}, true},
		{"dbrx", "", []string{triples, "bytes"}, false},
		{"qwen2", "NFC", []string{singles, "bytes"}, false},
	} {
		if way.form == form && way.whole == f.Model.Whole && slices.Equal(way.cuts, cuts) {
			return way.name
		}
	}
	return ""
}

// names are the tokens by their ids, and the kind of each, of size ids at least.
func (f *tokenizerFile) names(size int) (names []string, kinds []int32) {
	put := func(id int, name string, kind int32) {
		for id >= len(names) || len(names) < size {
			names = append(names, fmt.Sprintf("[PAD%d]", len(names)))
			kinds = append(kinds, unusedToken)
		}
		names[id], kinds[id] = name, kind
	}
	for name, id := range f.Model.Vocab {
		put(id, name, normalToken)
	}
	for _, a := range f.Added {
		kind := int32(ownToken)
		if a.Special {
			kind = controlToken
		}
		put(a.ID, a.Content, kind)
	}
	return names, kinds
}

// merges are pairs of tokens with a space between.
func (f *tokenizerFile) merges() []string {
	all := []string{}
	for _, raw := range f.Model.Merges {
		var pair []string
		var text string
		if json.Unmarshal(raw, &pair) == nil {
			text = strings.Join(pair, " ")
		} else if json.Unmarshal(raw, &text) != nil {
			continue // no tokenizer that was read has such
		}
		all = append(all, text)
	}
	return all
}

// beside adds what is put before texts, and behind them.
func (d *Description) beside(f tokenizerFile, ends []int32) error {
	var before, behind []int64
	for _, s := range f.Post.flat() {
		into := &before
		for _, piece := range s.Single {
			if piece.Special == nil {
				into = &behind
				continue
			}
			*into = append(*into, s.Specials[piece.Special.ID].IDs...)
		}
	}
	if len(before) > 1 || len(behind) > 1 ||
		len(behind) == 1 && (len(ends) == 0 || int64(ends[0]) != behind[0]) {
		return fmt.Errorf("its tokenizer puts the ids %s beside texts: a GGUF file has words for "+
			"one before them, and the first that ends texts behind",
			legible.Cut(fmt.Sprint(before, behind), 60))
	}
	d.put("tokenizer.ggml.add_bos_token", len(before) > 0)
	d.put("tokenizer.ggml.add_eos_token", len(behind) > 0)
	if len(before) > 0 {
		d.put("tokenizer.ggml.bos_token_id", uint32(before[0]))
	}
	return nil
}
