package data

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// peers are what the library tokenizers makes of texts: see testdata/tokenizers.py.
type peers struct {
	Texts, Merges []string
	Cases         []struct {
		Name        string
		File, Model map[string]json.RawMessage
		IDs         [][]int32
	}
}

// TestAgainstTokenizers: ids are those of the library that the format is of, whatever a
// file says of cutting, forms and added tokens.
func TestAgainstTokenizers(t *testing.T) {
	text, err := os.ReadFile("testdata/tokenizers.json")
	if err != nil {
		t.Fatal(err)
	}
	var p peers
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	vocab := map[string]int{}
	for b := range 256 {
		vocab[string(letterOf(byte(b)))] = b
	}
	for _, m := range p.Merges {
		if made := strings.ReplaceAll(m, " ", ""); vocab[made] == 0 {
			vocab[made] = len(vocab)
		}
	}
	for _, c := range p.Cases {
		model := map[string]any{"type": "BPE", "vocab": vocab, "merges": p.Merges}
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
		var tok Tokenizer
		if err := tok.UnmarshalText(whole); err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		for i, text := range p.Texts {
			if got := tok.Encode(text); !slices.Equal(got, c.IDs[i]) {
				t.Errorf("%s: %q is %v, want %v", c.Name, text, got, c.IDs[i])
			}
		}
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
