package data

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhole: every pair, and every token, is in held-out batches once, even where they
// fill no batch to train on.
func TestWhole(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	var b strings.Builder
	for i := range 9 {
		fmt.Fprintf(&b, "number %d\tnumber %d\n", i, i)
	}
	path := filepath.Join(dir, "few.tsv")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := Open(ctx, "tsv:"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := TrainTokenizer(ctx, c, 300)
	if err != nil {
		t.Fatal(err)
	}
	o := LoaderOptions{Pairs: 16, Length: 8}
	if _, err := NewLoader(c, tok, o); err == nil {
		t.Error("too few pairs to train on are taken")
	}
	l, err := NewLoader(c.Whole(), tok, o)
	if err != nil || l.HeldOutBatches() != 1 || l.HeldOut(0).Inputs[1].I32()[8*8] == PAD ||
		l.HeldOut(0).Inputs[1].I32()[8*9] != PAD {
		t.Errorf("%v", err)
	}
	r, err := OpenRunning(ctx, "text:"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := RunningOptions{Rows: 64, Length: 32}
	if _, err := NewRunningLoader(ctx, r, tok, run); err == nil {
		t.Error("too little text to train on is taken")
	}
	rl, err := NewRunningLoader(ctx, r.Whole(), tok, run)
	if err != nil {
		t.Fatal(err)
	}
	want := len(tok.Encode(b.String()))
	train, heldOut := rl.Tokens()
	if train != 0 || heldOut < want || heldOut > want+8 || rl.HeldOut(0).Units != heldOut-1 {
		t.Errorf("%d tokens to train on, %d held out, of %d", train, heldOut, want)
	}
}

// TestWholeInOrder: sections of running text that was divided are in the order of the text
// again, and documents are whole, with what a tokenizer puts around texts.
func TestWholeInOrder(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	var texts []string
	for d, n := range []int{900, 1, 40} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d of document %d\n", i, d)
		}
		texts = append(texts, b.String())
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(d)), []byte(b.String()),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := OpenRunning(ctx, "text:"+dir, nil)
	if err != nil || len(r.HeldOut) == 0 || len(r.Train) < 40 {
		t.Fatal(len(r.HeldOut), len(r.Train), err)
	}
	tok := &Tokenizer{}
	post := `"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s"}},` +
		`{"Sequence":{"id":"A"}}],"special_tokens":{"s":{"ids":[261]}}},"ignored":{`
	if err := tok.UnmarshalJSON(small(`"post_processor":{`, post)); err != nil {
		t.Fatal(err)
	}
	ended := func(r *Running) (between []string, start, end int32) {
		l, err := NewRunningLoader(ctx, r, tok, RunningOptions{Rows: 1, Length: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		ids := l.heldOut
		for len(ids) > 0 {
			n := slices.Index(ids, tok.EOS())
			if n < 0 {
				n = len(ids) - 1
			}
			between = append(between, tok.Decode(ids[:n+1]))
			start, end, ids = ids[0], ids[n], ids[n+1:]
		}
		return between, start, end
	}
	sorted := func(texts []string) string {
		slices.Sort(texts)
		return strings.Join(texts, "|")
	}
	got, _, end := ended(r.Whole())
	if sorted(got) != sorted(texts) || end != tok.EOS() {
		t.Errorf("whole: %.200q, ending with %d", got, end)
	}
	got, start, end := ended(r.Documents())
	for i := range texts {
		texts[i] = tok.Decode([]int32{261}) + texts[i]
	}
	if sorted(got) != sorted(texts) || start != 261 || end == tok.EOS() {
		t.Errorf("documents: %.200q, beginning with %d, ending with %d", got, start, end)
	}
	made := &Running{HeldOut: []Section{{Text: "a", Last: true}}, Train: []Section{{Text: "b",
		Last: true}}}
	if n := len(made.Documents().HeldOut); n != 2 {
		t.Errorf("%d documents of two", n)
	}
}
