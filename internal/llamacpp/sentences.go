package llamacpp

import (
	"cmp"
	"fmt"
	"slices"
)

// mark is the character that stands for a space in tokens of SentencePiece.
const mark = "\u2581"

// mostBytes is how long a token of SentencePiece may be, so that finding its parts takes time in
// proportion to the file.
const mostBytes = 1024

// ofCharacters is the file of a vocabulary of SentencePiece, as transformers makes it: pairs that
// are a token together are merged by that token's score.
func (t *vocabulary) ofCharacters() (object, error) {
	if err := t.read(normalToken, unknownToken, byteToken); err != nil {
		return nil, err
	}
	scores, _ := t.get("scores").([]float32)
	if len(scores) != len(t.names) {
		return nil, fmt.Errorf("tokenizer.ggml.tokens has %d tokens, and scores %d: want one of "+
			"each", len(t.names), len(scores))
	}
	merges, err := t.pairs(scores)
	if err != nil {
		return nil, err
	}
	unknown, err := t.unknown()
	if err != nil {
		return nil, err
	}
	space, said := t.get("add_space_prefix").(bool)
	normalizer, decoder := spaces(space || !said)
	return object{"version": "1.0", "added_tokens": t.added, "normalizer": normalizer,
		"decoder": decoder,
		"model": object{"type": "BPE", "unk_token": unknown, "fuse_unk": true,
			"byte_fallback": true, "vocab": t.ids, "merges": merges}}, nil
}

// spaces are the normalizer and the decoder that have a mark for a space, and before a text.
func spaces(before bool) (normalizer, decoder any) {
	changes := []any{replaced(" ", mark)}
	back := []any{replaced(mark, " "), object{"type": "ByteFallback"}, object{"type": "Fuse"}}
	if before {
		changes = slices.Insert(changes, 0, any(object{"type": "Prepend", "prepend": mark}))
		back = append(back, object{"type": "Strip", "content": " ", "start": 1.0, "stop": 0.0})
	}
	return object{"type": "Sequence", "normalizers": changes},
		object{"type": "Sequence", "decoders": back}
}

// replaced is a step that puts a text in another's place.
func replaced(from, to string) any {
	return object{"type": "Replace", "pattern": object{"String": from}, "content": to}
}

// pairs are the merges: all pairs of tokens that are one together. Those of the token with the
// highest score come first, of equal ones those of the least id, and then of the least ids.
func (t *vocabulary) pairs(scores []float32) ([][2]string, error) {
	type pair struct{ made, left, right int }
	var all []pair
	for made, name := range t.names {
		if !t.plain(name, made) {
			continue
		}
		if len(name) > mostBytes {
			return nil, fmt.Errorf("tokenizer.ggml.tokens has %d bytes for token %d: want %d at "+
				"most", len(name), made, mostBytes)
		}
		for at := 1; at < len(name); at++ {
			left, ok := t.ids[name[:at]]
			right, also := t.ids[name[at:]]
			if ok && also && t.plain(name[:at], left) && t.plain(name[at:], right) {
				all = append(all, pair{made, left, right})
			}
		}
	}
	slices.SortFunc(all, func(a, b pair) int {
		return cmp.Or(cmp.Compare(scores[b.made], scores[a.made]), cmp.Compare(a.made, b.made),
			cmp.Compare(a.left, b.left), cmp.Compare(a.right, b.right))
	})
	merges := make([][2]string, len(all))
	for i, p := range all {
		merges[i] = [2]string{t.names[p.left], t.names[p.right]}
	}
	return merges, nil
}

// plain reports whether an id is that of a token that merges make, or begin with.
func (t *vocabulary) plain(name string, id int) bool {
	own, ok := t.ids[name]
	return ok && own == id && t.kind(id) == normalToken
}

// unknown is the name of the token for what has none; nil without one. Text may hold it by that.
func (t *vocabulary) unknown() (any, error) {
	id := slices.IndexFunc(t.kinds, func(kind int32) bool { return kind == unknownToken })
	if said := t.get("unknown_token_id"); said != nil {
		n, ok := whole(said)
		if !ok || n < 0 || n >= int64(len(t.names)) || t.kind(int(n)) == unusedToken {
			return nil, fmt.Errorf("tokenizer.ggml.unknown_token_id is %s: want the id of a token",
				brief(said))
		}
		id = int(n)
	}
	if id < 0 {
		return nil, nil
	}
	name := t.names[id]
	t.ids[name] = id
	return name, nil
}
