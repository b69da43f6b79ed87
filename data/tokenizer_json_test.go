package data

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// prose is text with what the patterns tell apart.
const prose = "Don't stop: it's the 2nd time they've said we'll see 1234567 of them.\n\n" +
	"func (b *Buffer) Read(p []byte) (n int, err error) {\n\treturn 0, io.EOF\n}\r\n" +
	"größer  als   Ⅷ ½ 漢字かな — “naïve” I'LL\u00a0be \u2003x  \n  y "

// learnt is a tokenizer of some texts, and of prose.
func learnt(t interface{ Fatal(...any) }, size int, texts ...string) *Tokenizer {
	tok, err := LearnTokenizer(context.Background(), append(texts, prose, prose), size)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// words draws text that has contractions, runs of space and several scripts.
func words() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		part := rapid.OneOf(
			rapid.StringMatching(`( ?(low|lower|it's|WE'LL|'ve|é|漢|Ⅷ|12345|--|\n|\r\n|\t| ))*`),
			rapid.SampledFrom([]string{"\u00a0", "\u2003", "'", "  ", "ſ", "'ſ", "½", "\x85"}),
			rapid.StringN(0, 8, 32),
		)
		return strings.Join(rapid.SliceOfN(part, 0, 6).Draw(t, "parts"), "")
	})
}

func TestLearntRoundTrip(t *testing.T) {
	tok := learnt(t, 320)
	if tok.Size() != tok.Used() || tok.EOS() != int32(tok.Size()-1) {
		t.Errorf("%d ids, %d used, the last ends a text: %d", tok.Size(), tok.Used(), tok.EOS())
	}
	rapid.Check(t, func(t *rapid.T) {
		text := bytesString().Draw(t, "text") + words().Draw(t, "more")
		ids := tok.Encode(text)
		if got := tok.Decode(ids); got != text {
			t.Fatalf("decoded %q, want %q", got, text)
		}
		limit := rapid.IntRange(0, len(ids)).Draw(t, "limit")
		if cut := tok.encode(nil, text, limit, opening); len(cut) < limit ||
			!slices.Equal(cut, ids[:len(cut)]) {
			t.Fatalf("limit %d gives %v, not a prefix of %v", limit, cut, ids)
		}
	})
}

// TestLongChunks: the algorithm for long chunks gives what the plain one does.
func TestLongChunks(t *testing.T) {
	tok := learnt(t, 330, strings.Repeat("aaaa aaabaab abab bababa ", 9))
	rapid.Check(t, func(t *rapid.T) {
		chunk := rapid.StringMatching(`[abelow ]{1,64}`).Draw(t, "chunk")
		if got, want := tok.encodeLong(nil, chunk), tok.encodeChunk(nil, chunk); !slices.Equal(got,
			want) {
			t.Fatalf("%q: %v, want %v", chunk, got, want)
		}
	})
	text := strings.Repeat("a", 1<<20)
	if got := tok.Decode(tok.Encode(text)); got != text {
		t.Error("a long run does not come back")
	}
}

// TestTokenizerJSON: what is written is read, says the same, and is written the
// same again.
func TestTokenizerJSON(t *testing.T) {
	tok := learnt(t, 320)
	file := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := tok.Save(file); err != nil {
		t.Fatal(err)
	}
	again, err := LoadTokenizer(file)
	if err != nil {
		t.Fatal(err)
	}
	first, err := tok.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := again.MarshalText(); err != nil || !bytes.Equal(first, second) {
		t.Errorf("written again it differs: %v", err)
	}
	if again.EOS() != tok.EOS() || again.Size() != tok.Size() {
		t.Errorf("%d ids ending with %d, want %d and %d", again.Size(), again.EOS(), tok.Size(),
			tok.EOS())
	}
	rapid.Check(t, func(t *rapid.T) {
		text := words().Draw(t, "text")
		if got, want := again.Encode(text), tok.Encode(text); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
	})
}

// small is a tokenizer.json with a few merges, and changes to it.
func small(changes ...string) []byte {
	vocab := vocabulary{}
	for b := range 256 {
		vocab[string(letterOf(byte(b)))] = int32(b)
	}
	vocab["lo"], vocab["low"], vocab["Ġlow"], vocab["<|endoftext|>"] = 256, 257, 258, 259
	names, _ := json.Marshal(vocab)
	text := `{"version":"1.0","truncation":null,"padding":null,
"added_tokens":[{"id":259,"special":true,"content":"<|endoftext|>","single_word":false,
"lstrip":false,"rstrip":false},{"id":261,"content":"<|end","special":true}],
"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,
"trim_offsets":true},"post_processor":{"type":"ByteLevel","add_prefix_space":true,
"trim_offsets":false},"decoder":{"type":"ByteLevel","add_prefix_space":true,
"trim_offsets":true},"model":{"dropout":null,"unk_token":null,"continuing_subword_prefix":"",
"end_of_word_suffix":"","fuse_unk":false,"vocab":` + string(names) +
		`,"merges":["l o","lo w","Ġ low"]}}`
	for i := 0; i < len(changes); i += 2 {
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	return []byte(text)
}

// TestPublicTokenizer: a file as GPT-2's is, in old and new form.
func TestPublicTokenizer(t *testing.T) {
	lists := `"merges":[["l","o"],["lo","w"],["Ġ","low"]]`
	for name, text := range map[string][]byte{
		"old": small(),
		"new": small(`"merges":["l o","lo w","Ġ low"]`, lists, `"dropout":null`,
			`"type":"BPE","ignore_merges":true,"dropout":null`),
		"split": small(`{"type":"ByteLevel","add_prefix_space":false,
"trim_offsets":true}`, `{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":`+
			string(quotedJSON(patterns[byTriple]))+`},"behavior":"Isolated","invert":false},
{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]}`),
	} {
		var tok Tokenizer
		if err := json.Unmarshal(text, &tok); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := tok.Encode("low low<|endoftext|><|end low")
		if want := []int32{257, 258, 259, 261, 258}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if text := tok.Decode([]int32{258, 261, 260, 257, 259, 258}); text != " low<|endlow" {
			t.Errorf("%s: decoded %q", name, text)
		}
		if tok.Size() != 262 || tok.EOS() != 259 {
			t.Errorf("%s: %d ids ending with %d", name, tok.Size(), tok.EOS())
		}
	}
}

// TestAddedTokenOfVocabulary: an added token that the vocabulary has, too, has its id there.
func TestAddedTokenOfVocabulary(t *testing.T) {
	var tok Tokenizer
	err := tok.UnmarshalJSON(small(`"id":261,"content":"<|end"`, `"id":261,"content":"low"`))
	if got := tok.Encode("low low"); err != nil || !slices.Equal(got, []int32{257, 32, 257}) ||
		tok.Size() != 260 {
		t.Errorf("%v of %d ids: %v", got, tok.Size(), err)
	}
}

func quotedJSON(s string) []byte {
	b, _ := plainJSON(s)
	return b
}

// TestPrefixSpace: a space before what has none, if the file asks for it.
func TestPrefixSpace(t *testing.T) {
	var tok Tokenizer
	err := tok.UnmarshalJSON(small(`"add_prefix_space":false`, `"add_prefix_space":true`))
	if got := tok.Encode("low low"); err != nil || !slices.Equal(got, []int32{258, 258}) {
		t.Errorf("%v, %v", got, err)
	}
	sections := []Section{{Text: "low"}, {Text: "low", Last: true}, {Text: "low", Last: true}}
	if got := encodeGroup(sections, &tok, opening); !slices.Equal(got,
		[]int32{258, 257, 259, 258, 259}) {
		t.Errorf("a document's second section begins with a space, or another not: %v", got)
	}
	long := strings.Repeat(" low", groupBytes/4+1)
	sections = []Section{{Text: long}, {Text: "low", Last: true}, {Text: long, Last: true},
		{Text: "low", Last: true}}
	got, err := encodeAll(t.Context(), sections, &tok, encodeGroup)
	if want := encodeGroup(sections, &tok, opening); err != nil || !slices.Equal(got, want) {
		t.Errorf("in two groups %d ids, in one %d: %v", len(got), len(want), err)
	}
}

// TestPrompt: what a file puts before texts is before prompts, and before nothing else.
func TestPrompt(t *testing.T) {
	template := `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},
{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],
"special_tokens":{"<s>":{"id":"<s>","ids":[259],"tokens":["<s>"]},
"</s>":{"id":"</s>","ids":[261],"tokens":["</s>"]}}}`
	plain := `{"type":"ByteLevel","add_prefix_space":true,
"trim_offsets":false}`
	sequence := `{"type":"Sequence","processors":[` + plain + `,` + template + `]}`
	for post, want := range map[string][]int32{
		plain: {257}, "null": {257}, template: {259, 257}, sequence: {259, 257},
	} {
		var tok Tokenizer
		if err := tok.UnmarshalJSON(small(plain, post)); err != nil {
			t.Fatal(err)
		}
		if got := tok.Prompt("low"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", post, got, want)
		}
		if got := tok.Encode("low"); !slices.Equal(got, []int32{257}) {
			t.Errorf("%s: the text alone is %v", post, got)
		}
		var kept Tokenizer // as in a checkpoint, with what ends texts
		text, err := tok.Ending(260).MarshalText()
		if err == nil {
			err = kept.UnmarshalText(text)
		}
		if got := kept.Prompt("low"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s, kept: %v, want %v: %v", post, got, want, err)
		}
	}
	var tok Tokenizer
	err := tok.UnmarshalJSON(small(plain, strings.Replace(template, "259", "999", 1)))
	if err == nil || !strings.Contains(err.Error(), "the id 999 beside texts") {
		t.Error(err)
	}
}

// TestTokenizerJSONRefuses: what would give other ids is refused on one line.
func TestTokenizerJSONRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`{"version"`, `{"version`, "damaged"},
		{`"dropout":null`, `"type":"Unigram","dropout":null`, `model of type "Unigram"`},
		{`"dropout":null`, `"dropout":0.1`, "dropout 0.1"},
		{`"normalizer":null`, `"normalizer":{"type":"Lowercase"}`, `normalizer {"type":"Lower`},
		{`"normalizer":null`, `"normalizer":{"type":"Sequence","normalizers":[{"type":"Strip"}]}`,
			`normalizer {"type":"Sequence"`},
		{`"normalizer":null`, `"normalizer":{"type":"Replace","pattern":{"Regex":" +"}}`,
			`normalizer {"type":"Replace"`},
		{`"normalizer":null`, `"normalizer":{"type":"Sequence","normalizers":[` +
			strings.Repeat(`{"type":"Replace","pattern":{"String":"a"},"content":"aa"},`, 7) +
			`{"type":"NFC"}]}`, "more than 64 times as long"},
		{`"normalizer":null`, `"normalizer":{"type":"Replace","pattern":{"String":""}}`,
			`normalizer {"type":"Replace"`},
		{`"normalizer":null`, `"normalizer":7`, "normalizer: "},
		{`"end_of_word_suffix":""`, `"end_of_word_suffix":"</w>"`, "end_of_word_suffix"},
		{`"type":"ByteLevel"`, `"type":"Metaspace"`, "pre_tokenizer"},
		{`{"type":"ByteLevel","add_prefix_space":false,
"trim_offsets":true}`, `{"type":"Sequence","pretokenizers":[]}`, "pre_tokenizer"},
		{`{"type":"ByteLevel","add_prefix_space":false,
"trim_offsets":true}`, `{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},
{"type":"ByteLevel"}]}`, "pre_tokenizer"},
		{`{"type":"ByteLevel","add_prefix_space":false,
"trim_offsets":true}`, `{"type":"Split","pattern":{"String":" "},"behavior":"Isolated"}`,
			"pre_tokenizer"},
		{`"decoder":{"type":"ByteLevel"`, `"decoder":{"type":"WordPiece"`, "decoder "},
		{`"post_processor":{"type":"ByteLevel"`, `"post_processor":{"type":"RobertaProcessing"`,
			"post_processor "},
		{`"special":true,"content":"<|endoftext|>"`, `"content":""`, "is empty"},
		{`"l o"`, `"l o x"`, `merge 0 is "l o x"`},
		{`"l o"`, `"l w"`, "merge 0"},
		{`"lo w"`, `"l o"`, "merge 1"},
		{`"merges":["l o","lo w","Ġ low"]`, `"merges":7`, "no list of pairs"},
		{`"a":97`, `"aaa":97`, "no token for the byte 97"},
		{`"a":97`, `"a":98`, "have the id 98"},
		{`"a":97`, `"a":-97`, "has the id -97"},
		{`"a":97`, `"a":97000000`, "ids up to 97000000"},
	} {
		tok := Tokenizer{size: 7}
		err := tok.UnmarshalText(small(c.from, c.to))
		if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") || tok.size != 7 {
			t.Errorf("%s: %v does not say %q", c.to, err, c.want)
		}
	}
	old := train(t, 300, "low lower")
	if _, err := old.MarshalJSON(); err == nil {
		t.Error("a tokenizer of pairs was written as a tokenizer.json")
	}
	for _, size := range []int{-1, 256, maxVocabulary + 1} {
		if _, err := LearnTokenizer(context.Background(), nil, size); err == nil {
			t.Errorf("%d ids were accepted", size)
		}
	}
	if _, err := LoadTokenizer(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
	if err := old.Save(filepath.Join(t.TempDir(), "no", "where")); err == nil {
		t.Error("saved nowhere")
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if _, err := LearnTokenizer(stopped, []string{prose}, 300); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

// TestCharactersRefuse: what would give other ids or texts where a vocabulary is of characters is
// refused on one line.
func TestCharactersRefuse(t *testing.T) {
	file := func(changes ...string) []byte {
		text := `{"normalizer":{"type":"Prepend","prepend":"▁"},"pre_tokenizer":null,
"decoder":{"type":"Sequence","decoders":[{"type":"Fuse"},
{"type":"Strip","content":" ","start":1,"stop":0}]},
"model":{"type":"BPE","unk_token":"u","byte_fallback":true,"vocab":{"u":0,"a":1,"▁":2,"▁a":3},
"merges":["▁ a"]}}`
		for i := 0; i < len(changes); i += 2 {
			text = strings.Replace(text, changes[i], changes[i+1], 1)
		}
		return []byte(text)
	}
	var tok Tokenizer
	if err := tok.UnmarshalText(file()); err != nil {
		t.Fatal(err)
	}
	const said = "BPE of characters, 4 ids (1 merges)"
	if got := tok.Encode("ab"); !slices.Equal(got, []int32{3, 0}) || tok.String() != said {
		t.Errorf("%s: %v", &tok, got)
	}
	meta := `{"type":"Metaspace","replacement":"▁"}`
	for _, c := range []struct{ from, to, want string }{
		{`"pre_tokenizer":null`, `"pre_tokenizer":{"type":"ByteLevel"}`, "want ByteLevel"},
		{`"pre_tokenizer":null`, `"pre_tokenizer":` + strings.Replace(meta, "▁", "▁▁", 1),
			"pre_tokenizer {"},
		{`"pre_tokenizer":null`, `"pre_tokenizer":` + strings.Replace(meta, "}",
			`,"prepend_scheme":"last"}`, 1), "pre_tokenizer {"},
		{`"pre_tokenizer":null`, `"pre_tokenizer":` + strings.Replace(meta, "}",
			`,"add_prefix_space":false}`, 1), "pre_tokenizer {"},
		{`"pre_tokenizer":null`, `"pre_tokenizer":{"type":"Split","pattern":{"String":" "},
"behavior":"Removed"}`, "pre_tokenizer {"},
		{`"pre_tokenizer":null`, `"pre_tokenizer":{"type":"Split","pattern":{"String":""},
"behavior":"Isolated"}`, "pre_tokenizer {"},
		{`"unk_token":"u"`, `"unk_token":"<unk>"`, `unk_token "<unk>"`},
		{`"stop":0`, `"stop":1`, "decoder {"},
		{`"content":" "`, `"content":"  "`, "decoder {"},
		{`{"type":"Fuse"}`, `{"type":"ByteFallback"}`, "decoder {"},
		{`{"type":"Fuse"}`, `{"type":"WordPiece"}`, "decoder {"},
		{`{"type":"Fuse"}`, `{"type":"Metaspace"},{"type":"Fuse"}`, "decoder {"},
		{`{"type":"Fuse"}`, `{"type":"Replace","pattern":{"Regex":"a"}},{"type":"Fuse"}`,
			"decoder {"},
		{`{"type":"Fuse"}`, `{"type":"Replace","pattern":{"String":"a"},"content":"` +
			strings.Repeat("a", 65) + `"},{"type":"Fuse"}`, "more than 64 times as long"},
		{`"decoder":`, `"decoder":null,"d":`, "decoder null"},
		{`"decoder":{"type":"Sequence"`, `"decoder":{"type":"ByteLevel"`, "decoder {"},
		{`"decoder":{`, `"decoder":7,"d":{`, "decoder: "},
	} {
		tok := Tokenizer{size: 7}
		err := tok.UnmarshalText(file(c.from, c.to))
		if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") || tok.size != 7 {
			t.Errorf("%s: %v does not say %q", c.to, err, c.want)
		}
	}
}

// answer is what the peer says of texts.
type answer struct {
	IDs    [][]int32  `json:"ids"`
	Chunks [][]string `json:"chunks"`
}

// TestAgainstPublishedEncoder: chunks and ids are those of GPT-2's own encoder,
// rewritten to read a tokenizer.json.
func TestAgainstPublishedEncoder(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs Python: ", err)
	}
	tok := learnt(t, 340)
	file := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := tok.Save(file); err != nil {
		t.Fatal(err)
	}
	texts := []string{prose, "", " ", "a'sb 'S's  x", "\n\n  \n x\r\n", "12345 ½Ⅷ"}
	for i := range 200 {
		texts = append(texts, words().Example(i))
	}
	texts = slices.DeleteFunc(texts, func(s string) bool {
		return strings.ToValidUTF8(s, "") != s || !stable(s)
	})
	for c, name := range []string{byGPT2: "gpt2", byTriple: "triple", byDigit: "digit"} {
		if name == "" {
			continue
		}
		t.Run(name, func(t *testing.T) { compareEncoders(t, python, file, cut(c), name, texts) })
	}
}

// stable reports whether a text has no character that is new to somebody's tables
// of Unicode.
func stable(text string) bool {
	for _, r := range text {
		if r > 0x2000 && !strings.ContainsRune("Ⅷ漢\u2003", r) || r == 0x1c || r == 0x1d ||
			r == 0x1e || r == 0x1f {
			return false
		}
	}
	return true
}

func compareEncoders(t *testing.T, python, file string, c cut, name string, texts []string) {
	ask, err := json.Marshal(map[string]any{"file": file, "pattern": name, "texts": texts})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/bpe.py")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(append(ask, '\n')), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want answer
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	tok, err := LoadTokenizer(file)
	if err != nil {
		t.Fatal(err)
	}
	tok.stages = []stage{{cut: c}}
	for i, text := range texts {
		var chunks []string
		for rest := text; rest != ""; {
			n := c.next(rest)
			chunks, rest = append(chunks, rest[:n]), rest[n:]
		}
		if !slices.Equal(chunks, want.Chunks[i]) {
			t.Errorf("%q\ncut  %q\nwant %q", text, chunks, want.Chunks[i])
		}
		if ids := tok.Encode(text); !slices.Equal(ids, want.IDs[i]) {
			t.Errorf("%q: %v, want %v", text, ids, want.IDs[i])
		}
	}
}

func ExampleLearnTokenizer() {
	texts := []string{strings.Repeat("the cat sat on the mat. ", 10)}
	tok, err := LearnTokenizer(context.Background(), texts, 270)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tok)
	for _, id := range tok.Encode("the cat sat") {
		fmt.Printf("%q ", tok.Decode([]int32{id}))
	}
	fmt.Println()
	// Output:
	// byte-level BPE, 269 ids (12 merges)
	// "the" " cat" " sat"
}
