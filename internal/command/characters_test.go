package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// sentencePiece is a tokenizer.json as LLaMA 2's is: characters, merges, and bytes for the rest.
func sentencePiece() string {
	vocab := map[string]int{"<unk>": 0, "<s>": 1, "</s>": 2}
	for b := range 256 {
		vocab[fmt.Sprintf("<0x%02X>", b)] = 3 + b
	}
	merges := []string{"t h", "th e", "▁ the", "▁ n", "▁n u", "▁ i", "▁i s"}
	for _, token := range strings.Split("▁ t h e n u i s m b r", " ") {
		vocab[token] = len(vocab)
	}
	for _, m := range merges {
		vocab[strings.ReplaceAll(m, " ", "")] = len(vocab)
	}
	var added []map[string]any
	for id, name := range []string{"<unk>", "<s>", "</s>"} {
		added = append(added, map[string]any{"id": id, "content": name, "special": true})
	}
	model, _ := json.Marshal(map[string]any{"type": "BPE", "unk_token": "<unk>", "fuse_unk": true,
		"byte_fallback": true, "vocab": vocab, "merges": merges})
	names, _ := json.Marshal(added)
	return `{"version":"1.0","added_tokens":` + string(names) + `,
"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},"pre_tokenizer":null,
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},
{"Sequence":{"id":"A","type_id":0}}],"special_tokens":{"<s>":{"id":"<s>","ids":[1]}}},
"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},
"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},
{"type":"Strip","content":" ","start":1,"stop":0}]},"model":` + string(model) + `}`
}

// TestPredictCharacters: a run and a public checkpoint whose tokens are characters, and bytes
// where there are none, show what they write as it is in the end: with the space before a word,
// but at the beginning of a text, and with a character for its bytes.
func TestPredictCharacters(t *testing.T) {
	inDir(t)
	write(t, "tokenizer.json", sentencePiece())
	trained(t, "gpt", "--data", "text:pairs.tsv", "--steps", "20", "--blocks", "llama",
		"--tokenizer", "tokenizer.json", "--save", "run")
	succeed(t, "export", "--from", "run", "published")
	write(t, "a.txt", "the number")
	write(t, "empty.txt", "")
	bytes := false
	draw := []string{"--temperature", "3", "--seed"}
	for _, how := range [][]string{nil, append(draw, "1"), append(draw, "2")} {
		for file, prompt := range map[string]string{"a.txt": "the number", "empty.txt": ""} {
			args := append([]string{"--from", "run", "--tokens", "40", file}, how...)
			shown, _ := predicted(t, exitOK, args...)
			same, _ := predicted(t, exitOK, append(args, "--from", "published")...)
			told, _ := predicted(t, exitOK, append(args, "--json")...)
			text := predictions(t, told)["prediction"][0]["text"].(string)
			if want := prompt + harmless(text) + "\n"; shown != want || same != want {
				t.Errorf("shown %q, by the public checkpoint %q, want %q", shown, same, want)
			}
			bytes = bytes || strings.Contains(text, "\uFFFD")
			if how == nil && strings.HasPrefix(text, " ") != (prompt != "") {
				t.Errorf("%q continues %q", text, prompt)
			}
		}
	}
	if !bytes {
		t.Error("no bytes that are no character were written")
	}
}
