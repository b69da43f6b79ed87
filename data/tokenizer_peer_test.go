package data

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// peers are what the library tokenizers makes of texts, and of ids: see testdata/tokenizers.py and
// testdata/characters.py.
type peers struct {
	Texts  []string
	Bytes  [][]int32 // to be decoded, too
	Vocab  map[string]int
	Merges json.RawMessage
	Cases  []struct {
		Name        string
		File, Model map[string]json.RawMessage
		Without     []string // tokens
		IDs         [][]int32
		Decoded     []string
	}
}

// readPeers reads a file of testdata.
func readPeers(t *testing.T, file string) (p peers) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tokenizers reads the tokenizer of each case, and what it is kept as.
func (p peers) tokenizers(t *testing.T, vocab map[string]int, each func(i int, tok *Tokenizer)) {
	t.Helper()
	for i, c := range p.Cases {
		own := maps.Clone(vocab)
		for _, token := range c.Without {
			delete(own, token)
		}
		model := map[string]any{"type": "BPE", "vocab": own, "merges": p.Merges}
		for name, value := range c.Model {
			model[name] = value
		}
		file := map[string]any{"model": model}
		for name, value := range c.File {
			file[name] = value
		}
		whole, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		var tok, kept Tokenizer
		if err := tok.UnmarshalText(whole); err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		text, err := tok.MarshalText()
		if err == nil {
			err = kept.UnmarshalText(text)
		}
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		each(i, &kept)
	}
}

// TestAgainstTokenizers: ids are those of the library that the format is of, whatever a
// file says of cutting, forms and added tokens.
func TestAgainstTokenizers(t *testing.T) {
	p := readPeers(t, "testdata/tokenizers.json")
	vocab := map[string]int{}
	for b := range 256 {
		vocab[string(letterOf(byte(b)))] = b
	}
	var merges []string
	if err := json.Unmarshal(p.Merges, &merges); err != nil {
		t.Fatal(err)
	}
	for _, m := range merges {
		if made := strings.ReplaceAll(m, " ", ""); vocab[made] == 0 {
			vocab[made] = len(vocab)
		}
	}
	p.tokenizers(t, vocab, func(i int, tok *Tokenizer) {
		c := p.Cases[i]
		for i, text := range p.Texts {
			if got := tok.Encode(text); !slices.Equal(got, c.IDs[i]) {
				t.Errorf("%s: %q is %v, want %v", c.Name, text, got, c.IDs[i])
			}
		}
	})
}

// TestCharactersAgainstTokenizers: the same where a vocabulary is of characters, and ids are the
// texts that they are there. Of each beginning of them, what is settled is the beginning of all.
func TestCharactersAgainstTokenizers(t *testing.T) {
	p := readPeers(t, "testdata/characters.json")
	p.tokenizers(t, p.Vocab, func(i int, tok *Tokenizer) {
		c := p.Cases[i]
		tok.ends = nil
		for i, text := range p.Texts {
			if got := tok.Encode(text); !slices.Equal(got, c.IDs[i]) {
				t.Errorf("%s: %q is %v, want %v", c.Name, text, got, c.IDs[i])
			}
		}
		for i, ids := range slices.Concat(c.IDs, p.Bytes)[:len(c.Decoded)] {
			got := tok.Decode(ids)
			if got != c.Decoded[i] {
				t.Errorf("%s: %v is %q, want %q", c.Name, ids, got, c.Decoded[i])
			}
			for n := range ids {
				so := tok.Decode(tok.Settled(ids[:n]))
				if !strings.HasPrefix(got, so) {
					t.Errorf("%s: of %v %d are %q, all %q", c.Name, ids, n, so, got)
				}
			}
		}
	})
}

// TestLongCharacters: a text that is cut nowhere is encoded in parts, and long parts by another
// algorithm, with the ids of merges in their order, one at a time.
func TestLongCharacters(t *testing.T) {
	p := readPeers(t, "testdata/characters.json")
	p.Cases = p.Cases[:1]
	var tok *Tokenizer
	p.tokenizers(t, p.Vocab, func(_ int, one *Tokenizer) { tok = one })
	rapid.Check(t, func(t *rapid.T) {
		text := "▁" + rapid.StringMatching(`(the▁|low|▁|a|=|é|é漢|\n|aaaa|▁▁▁▁){1,40}`).Draw(t, "x")
		want := tok.chars.start(nil, text)
		for rank := 0; rank < len(tok.merges); {
			at := 0
			for at+1 < len(want) && tok.merges[rank] != (merge{want[at], want[at+1]}) {
				at++
			}
			if at+1 >= len(want) {
				rank++
				continue
			}
			want = slices.Replace(want, at, at+2, tok.made[rank])
			rank = 0
		}
		if got := tok.Encode(text[len("▁"):]); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
		if got := tok.encodeLong(nil, text); !slices.Equal(got, want) {
			t.Fatalf("%q in one part: %v, want %v", text, got, want)
		}
	})
	if got := tok.encodeLong(nil, ""); got != nil {
		t.Errorf("nothing is %v", got)
	}
}

// TestEndsOfTexts: what ends a text is what a file's names say, or who knows better.
func TestEndsOfTexts(t *testing.T) {
	named := func(names ...string) *Tokenizer {
		var added []string
		for i, name := range names {
			added = append(added, fmt.Sprintf(`{"id":%d,"content":%q,"special":true}`, 300+i, name))
		}
		tok := &Tokenizer{}
		file := small(`"added_tokens":[`, `"added_tokens":[`+strings.Join(append(added, ""), ","))
		if err := tok.UnmarshalJSON(file); err != nil {
			t.Fatal(err)
		}
		return tok
	}
	tok := named("<|im_start|>", "<|im_end|>", "<|eot_id|>")
	if got := tok.Ends(); !slices.Equal(got, []int32{259, 301, 302}) || tok.EOS() != 259 {
		t.Errorf("ends %v, first %d", got, tok.EOS())
	}
	told := tok.Ending(302, -1, 302, 9999, 97)
	if got := told.Ends(); !slices.Equal(got, []int32{302, 97}) || told.EOS() != 302 {
		t.Errorf("ends %v, first %d", got, told.EOS())
	}
	if got := told.Decode([]int32{257, 259, 97, 257}); got != "low<|endoftext|>" {
		t.Errorf("decoded %q", got)
	}
	if same := tok.Ending(9999); same != tok {
		t.Errorf("without an id of its own it ends with %v", same.Ends())
	}
	kept, err := told.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var again Tokenizer
	if err := again.UnmarshalText(kept); err != nil || !slices.Equal(again.Ends(), told.Ends()) {
		t.Errorf("kept, it ends with %v: %v", again.Ends(), err)
	}
	members := func(write func() ([]byte, error)) []string {
		text, err := write()
		var all map[string]json.RawMessage
		if err != nil || json.Unmarshal(text, &all) != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Keys(all))
	}
	if all := members(again.MarshalJSON); slices.Contains(all, "ends") {
		t.Errorf("for other programs it has %v", all)
	}
	if all := members(tok.MarshalText); slices.Contains(all, "ends") {
		t.Errorf("what names say is written: %v", all)
	}
}
