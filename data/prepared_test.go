package data

import (
	"context"
	"crypto/sha256"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// prepare draws what one process may have read, and learns from it.
func prepare(t *rapid.T) *Prepared {
	texts := rapid.SliceOfN(bytesString(), 0, 6)
	info := Info{Spec: "tsv:x", Pairs: rapid.IntRange(0, 9).Draw(t, "pairs"), SHA256: "abc"}
	if rapid.Bool().Draw(t, "running") {
		r := &Running{Info: info}
		for i, text := range texts.Draw(t, "train") {
			r.Train = append(r.Train, Section{Text: text, Last: i%2 == 1})
		}
		for _, text := range texts.Draw(t, "held out") {
			r.HeldOut = append(r.HeldOut, Section{Text: text})
		}
		tok, err := LearnTokenizer(context.Background(), r.Texts(), 300)
		if err != nil {
			t.Fatal(err)
		}
		return &Prepared{For: "x\n", Running: r, Tokenizer: tok}
	}
	c := &Corpus{Info: info}
	for _, text := range texts.Draw(t, "train") {
		c.Train = append(c.Train, Pair{text, strings.ToUpper(text)})
	}
	for _, text := range texts.Draw(t, "held out") {
		c.HeldOut = append(c.HeldOut, Pair{text, text})
	}
	tok, err := TrainTokenizer(context.Background(), c, 300)
	if err != nil {
		t.Fatal(err)
	}
	return &Prepared{For: "x\n", Corpus: c, Tokenizer: tok}
}

// TestPrepared: what was read and learnt is the same where it was handed to.
func TestPrepared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, got := prepare(t), &Prepared{}
		b, err := want.MarshalBinary()
		if err == nil {
			err = got.UnmarshalBinary(b)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got.For != want.For || !reflect.DeepEqual(got.Corpus, want.Corpus) ||
			!reflect.DeepEqual(got.Running, want.Running) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		x, _ := got.Tokenizer.MarshalText()
		y, _ := want.Tokenizer.MarshalText()
		if string(x) != string(y) {
			t.Fatalf("vocabulary %s, want %s", x, y)
		}
		text := bytesString().Draw(t, "text")
		if !slices.Equal(got.Tokenizer.Encode(text), want.Tokenizer.Encode(text)) {
			t.Fatalf("%q has other ids", text)
		}
	})
}

// TestPreparedDamaged: what came damaged, or from another version, is refused, and nothing
// changes.
func TestPreparedDamaged(t *testing.T) {
	p := &Prepared{Corpus: &Corpus{Train: []Pair{{"a", "b"}}}, Tokenizer: train(t, 258, "")}
	b, err := p.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(b) - sha256.Size {
		bad := slices.Clone(b)
		bad[i] ^= 4
		for what, x := range map[string][]byte{"changed": bad, "cut": b[:i],
			"cut and sealed": sealed(b[:i])} {
			got := Prepared{}
			err := got.UnmarshalBinary(x)
			if e, ok := errors.AsType[*Error](err); !ok || strings.Contains(e.Error(), "\n") ||
				got != (Prepared{}) {
				t.Fatalf("%s at %d: %v", what, i, err)
			}
		}
	}
}

// sealed is bytes with their SHA-256.
func sealed(b []byte) []byte {
	sum := sha256.Sum256(b)
	return append(slices.Clone(b), sum[:]...)
}

// FuzzPrepared: no bytes crash, and none take more memory than they are long.
func FuzzPrepared(f *testing.F) {
	p := &Prepared{Corpus: &Corpus{Train: []Pair{{"a", "b"}}}, Tokenizer: train(f, 258, "")}
	b, err := p.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[len(preparedHeader) : len(b)-sha256.Size])
	f.Add([]byte("\x00\x02{}\x11gomem-bpe 1 258\n\n\x05pairs\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, body []byte) {
		var p Prepared
		if p.UnmarshalBinary(sealed(append([]byte(preparedHeader), body...))) != nil {
			return
		}
		again, err := p.MarshalBinary()
		var q Prepared
		if err == nil {
			err = q.UnmarshalBinary(again)
		}
		if err != nil || !reflect.DeepEqual(p, q) {
			t.Fatalf("%+v becomes %+v: %v", p, q, err)
		}
	})
}
