package data

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
