package data

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// jsonLines writes a file of lines, and opens it.
func jsonLines(t *testing.T, lines ...string) (*Running, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "d.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return OpenRunning(t.Context(), "jsonl:"+path, nil)
}

// TestJSONLines: a line is a document, and of one with a prompt this is given.
func TestJSONLines(t *testing.T) {
	r, err := jsonLines(t, `{"text": "one\ntwo", "id": 7}`, "",
		`{"completion": " is blue", "prompt": "the sky"}`, `{"prompt": "", "completion": "x"}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Section{{Text: "one\ntwo", Last: true},
		{Text: "the sky is blue", Given: 7, Last: true}, {Text: "x", Last: true}}
	if !r.Packed() || !slices.Equal(r.inOrder, want) || len(r.HeldOut) != 1 ||
		len(r.Train) != 2 || !slices.Equal(r.Whole().HeldOut, want) || !r.Whole().Packed() {
		t.Errorf("%+v", r)
	}
	text, err := LearnTokenizer(t.Context(), r.Texts(), 300)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := (&Prepared{For: "x", Running: r, Tokenizer: text}).MarshalBinary()
	var again Prepared
	if err == nil {
		err = again.UnmarshalBinary(raw)
	}
	if err != nil || !again.Running.Packed() || !slices.Equal(again.Running.Train, r.Train) ||
		!slices.Equal(again.Running.HeldOut, r.HeldOut) {
		t.Errorf("another process has %+v of %+v: %v", again.Running, r, err)
	}
	for line, want := range map[string]string{
		`{"text": 7}`:                         "text is no string",
		`{"text": "a", "completion": "b"}`:    "a text, and a prompt or completion",
		`{"prompt": "a"}`:                     "no prompt with a completion",
		`{"prompt": "a", "completion": ""}`:   "empty completion",
		`{"text": ""}`:                        "empty text",
		`{"messages": [{"role": "user"}]}`:    "a template",
		`["text"]`:                            "cannot unmarshal array",
		`{"text": "a"} {"text": "b"}`:         "after top-level value",
		`{"text": "a`:                         "unexpected end",
		`{"conversations": [], "text": "a"}`:  "a template",
		`{"instruction": "a", "output": "b"}`: "no text",
		`{"Text": "a"}`:                       "no text",
		`{"text": null, "prompt": "a"}`:       "no text",
	} {
		_, err := jsonLines(t, `{"text": "fine"}`, line)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "d.jsonl:2: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v does not say %q of line 2", line, err, want)
		}
	}
	long := strings.Repeat("word ", 1<<18) // more than a line of other texts may have
	if r, err := jsonLines(t, `{"text": "`+long+`"}`); err != nil || r.Train[0].Text != long {
		t.Errorf("a long document: %v", err)
	}
	if _, err := jsonLines(t, ""); err == nil || !strings.Contains(err.Error(), "no text in") {
		t.Errorf("an empty file: %v", err)
	}
}

// TestPacking: rows have every token that is to be predicted once, none of what is given, and
// nothing of a document is beside what another's is; what is within a row is one document's
// neighbours, at positions that begin at 0.
func TestPacking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length, rows := rapid.IntRange(1, 9).Draw(t, "length"), rapid.IntRange(1, 3).Draw(t, "rows")
		var all []piece
		next := int32(0)
		want := map[[2]int32]int{}
		for range rapid.IntRange(1, 12).Draw(t, "documents") {
			var p piece
			for range rapid.IntRange(1, 20).Draw(t, "tokens") {
				next++
				p.ids = append(p.ids, next)
			}
			p.given = rapid.IntRange(1, len(p.ids)).Draw(t, "given")
			for i := p.given; i < len(p.ids); i++ {
				want[[2]int32{p.ids[i-1], p.ids[i]}]++
			}
			all = append(all, p)
		}
		l := &PackedLoader{documents: [2][]piece{nil, all}, whole: true}
		l, err := l.Shaped(RunningOptions{Rows: rows, Length: length})
		if err != nil {
			t.Fatal(err)
		}
		units := 0
		for i := range l.HeldOutBatches() {
			b := l.HeldOut(i)
			tokens, targets, positions := b.Inputs[0].I32(), b.Inputs[1].I32(), b.Inputs[2].I32()
			units += b.Units
			for at := range tokens {
				if p := positions[at]; p > 0 && (at%length == 0 || positions[at-1] != p-1 ||
					tokens[at] != tokens[at-1]+1) {
					t.Fatalf("position %d of token %d follows nothing", p, tokens[at])
				}
				if targets[at] == NoTarget {
					continue
				}
				pair := [2]int32{tokens[at], targets[at]}
				if want[pair]--; want[pair] < 0 {
					t.Fatalf("%v is predicted once more", pair)
				}
				units--
			}
		}
		for pair, n := range want {
			if n != 0 {
				t.Fatalf("%v is not predicted", pair)
			}
		}
		if units != 0 {
			t.Fatalf("%d units too many", units)
		}
	})
}

// TestPackedBatches: a step's batch is its own, epochs go through all rows, and a batch that does
// not count has the shape of others.
func TestPackedBatches(t *testing.T) {
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf(`{"prompt": "what is %d", "completion": " %s"}`, i,
			strings.Repeat("so ", 1+i%7)))
	}
	r, err := jsonLines(t, lines...)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := LearnTokenizer(t.Context(), r.Texts(), 270)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewPackedLoader(t.Context(), r, tok, RunningOptions{Rows: 2, Length: 48, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	p := l.Packing()
	if p.Documents != 40 || p.Longer != 0 || len(p.Lengths) != 40 ||
		float64(p.Filled) < 0.8*float64(p.Rows*p.Length) {
		t.Errorf("%+v", p)
	}
	seen := map[string]int{}
	for step := range l.StepsPerEpoch() {
		b := l.Train(step)
		if again := l.Train(step); !slices.Equal(b.Inputs[0].I32(), again.Inputs[0].I32()) {
			t.Errorf("step %d has two batches", step)
		}
		for row := range 2 {
			seen[fmt.Sprint(b.Inputs[0].I32()[row*48:][:48])]++
		}
	}
	if len(seen) != 2*l.StepsPerEpoch() {
		t.Errorf("%d rows in %d steps", len(seen), l.StepsPerEpoch())
	}
	b, ok := l.Uncounted(0)
	if !ok || b.Units != 0 || slices.Max(b.Inputs[1].I32()) != NoTarget || len(b.Inputs) != 3 {
		t.Errorf("%+v, %t", b, ok)
	}
	if _, err := l.Shaped(RunningOptions{Rows: 1000, Length: 48}); err == nil ||
		!strings.Contains(err.Error(), "give batches of") {
		t.Errorf("too few documents: %v", err)
	}
	if _, err := NewPackedLoader(t.Context(), &Running{}, tok, RunningOptions{Rows: 1,
		Length: 1}); err == nil {
		t.Error("running text is packed")
	}
}
