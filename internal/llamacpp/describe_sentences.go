package llamacpp

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// ofByte is the form of tokens that are bytes.
var ofByte = regexp.MustCompile(`^<0x[0-9A-F]{2}>$`)

// characters adds the tokens of a vocabulary of SentencePiece, with scores in the order of the
// merges that make them. Another order than scores have is refused.
func (d *Description) characters(f *tokenizerFile) error {
	space, ok := f.space()
	if !ok {
		return errors.New("its tokenizer has characters and cuts texts in a way that a GGUF file " +
			"has no name for: want that of LLaMA 2")
	}
	t := &vocabulary{ids: f.Model.Vocab}
	t.names, t.kinds = f.names(max(int(d.config.Vocab), 0))
	unknown := slices.Index(t.names, f.Model.Stands)
	if unknown < 0 {
		return errors.New("its tokenizer has no unk_token: want one, which GGUF files have")
	}
	for id, name := range t.names {
		if t.kinds[id] == normalToken && ofByte.MatchString(name) {
			t.kinds[id] = byteToken
		}
	}
	t.kinds[unknown] = unknownToken
	merges := f.merges()
	scores := t.scores(merges)
	again, err := t.pairs(scores)
	if err != nil {
		return err
	}
	for i, pair := range again {
		if i >= len(merges) || merges[i] != pair[0]+" "+pair[1] {
			again = nil
			break
		}
	}
	if len(again) != len(merges) {
		return errors.New("its tokenizer merges characters in an order that no scores of tokens " +
			"give, which are all that a GGUF file has: want that of SentencePiece")
	}
	d.put("tokenizer.ggml.model", "llama")
	d.put("tokenizer.ggml.pre", "default")
	d.put("tokenizer.ggml.tokens", t.names)
	d.put("tokenizer.ggml.scores", scores)
	d.put("tokenizer.ggml.token_type", t.kinds)
	d.put("tokenizer.ggml.unknown_token_id", uint32(unknown))
	d.put("tokenizer.ggml.add_space_prefix", space)
	return nil
}

// space is whether texts begin with a space, if they are cut as SentencePiece does.
func (f *tokenizerFile) space() (before, ok bool) {
	for _, before := range []bool{true, false} {
		normalizer, decoder := spaces(before)
		if reflect.DeepEqual(f.Normalizer, normalizer) && reflect.DeepEqual(f.Decoder, decoder) {
			return before, f.Cut.Type == "" && f.Model.Fuse && !f.Model.Whole
		}
	}
	return false, false
}

// scores are the tokens', by the first merges that make them; the least are of those that none do.
func (t *vocabulary) scores(merges []string) []float32 {
	scores := make([]float32, len(t.names))
	for i := range scores {
		scores[i] = -float32(len(merges))
	}
	for i, merge := range slices.Backward(merges) {
		if id, ok := t.ids[strings.Replace(merge, " ", "", 1)]; ok {
			scores[id] = -float32(i)
		}
	}
	return scores
}
