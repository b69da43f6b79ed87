package data

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// train learns a vocabulary from texts.
func train(t interface{ Fatal(...any) }, size int, texts ...string) *Tokenizer {
	c := &Corpus{}
	for _, text := range texts {
		c.Train = append(c.Train, Pair{Source: text, Target: text})
	}
	tok, err := TrainTokenizer(context.Background(), c, size)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// bytesString draws any bytes, often with runs and words.
func bytesString() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		part := rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`( ?(low|lower|newest|widest|aa))*`),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.Map(rapid.IntRange(0, 200), func(n int) string { return strings.Repeat("a", n) }),
		)
		return strings.Join(rapid.SliceOfN(part, 0, 5).Draw(t, "parts"), "")
	})
}

func TestRoundTrip(t *testing.T) {
	tok := train(t, 300, strings.Repeat("low lower lowest newer newest widest aaaa 2024 é ", 5))
	rapid.Check(t, func(t *rapid.T) {
		text := bytesString().Draw(t, "text")
		ids := tok.Encode(text)
		if got := tok.Decode(ids); got != text {
			t.Fatalf("decoded %q, want %q", got, text)
		}
		for _, id := range ids {
			if id < firstByte || int(id) >= tok.Used() {
				t.Fatalf("id %d outside [%d, %d)", id, firstByte, tok.Used())
			}
		}
		limit := rapid.IntRange(0, len(ids)).Draw(t, "limit")
		if cut := tok.encode(nil, text, limit, opening); len(cut) < limit ||
			!slices.Equal(cut, ids[:len(cut)]) {
			t.Fatalf("limit %d gives %v, not a prefix of %v", limit, cut, ids)
		}
	})
}

func TestChunks(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"func (b *Buffer) Read2(p []byte)",
			[]string{"func", " (", "b", " *", "Buffer", ")", " Read", "2", "(", "p", " []", "byte",
				")"}},
		{"  two\n", []string{"  ", "two", "\n"}},
		{" ", []string{" "}},
		{"größe 10", []string{"größe", " 10"}},
		{strings.Repeat("a", 65), []string{strings.Repeat("a", 64), "a"}},
	}
	for _, test := range tests {
		var got []string
		for rest := test.text; rest != ""; {
			n := nextChunk(rest)
			got, rest = append(got, rest[:n]), rest[n:]
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
}

// slowMerges is byte-pair encoding as the paper's listing has it: every pair is
// counted anew for every merge.
func slowMerges(frequencies map[string]int, size int) []merge {
	words := map[string][]int32{}
	for chunk := range frequencies {
		for i := range len(chunk) {
			words[chunk] = append(words[chunk], firstByte+int32(chunk[i]))
		}
	}
	var merges []merge
	for firstMerge+len(merges) < size {
		counts := map[merge]int{}
		for chunk, w := range words {
			for i := 1; i < len(w); i++ {
				counts[merge{w[i-1], w[i]}] += frequencies[chunk]
			}
		}
		best := merge{}
		for m, count := range counts {
			two := candidates{{m, count}, {best, counts[best]}}
			if count >= minFrequency && two.Less(0, 1) {
				best = m
			}
		}
		if best == (merge{}) {
			break
		}
		for chunk, w := range words {
			var out []int32
			for ; len(w) > 0; w = w[1:] {
				if len(w) > 1 && w[0] == best.left && w[1] == best.right {
					out = append(out, int32(firstMerge+len(merges)))
					w = w[1:]
					continue
				}
				out = append(out, w[0])
			}
			words[chunk] = out
		}
		merges = append(merges, best)
	}
	return merges
}

func TestTrainerAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(bytesString(), 1, 4).Draw(t, "texts")
		size := rapid.IntRange(firstMerge, firstMerge+40).Draw(t, "size")
		tok := train(t, size, texts...)
		c := []Pair{}
		for _, text := range texts {
			c = append(c, Pair{text, text})
		}
		want := slowMerges(chunkFrequencies(c), size)
		if !slices.Equal(tok.merges, want) {
			t.Fatalf("merges %v, want %v", tok.merges, want)
		}
	})
}

func TestUnusedIDs(t *testing.T) {
	tok := train(t, 1000, "ab ab")
	if tok.Size() != 1000 || tok.Used() != 260 {
		t.Errorf("size %d, used %d; want 1000 and 260", tok.Size(), tok.Used())
	}
	const want = "byte-level BPE, 1000 ids (2 merges), the last 740 unused: the text gives no more"
	if tok.String() != want {
		t.Errorf("%q, want %q", tok, want)
	}
}

func TestDecodeForeignIDs(t *testing.T) {
	tok := train(t, 300, "ab")
	ids := []int32{PAD, firstByte + 'a', -1, 299, firstByte + 'b', EOS, firstByte + 'c'}
	if got := tok.Decode(ids); got != "a\uFFFD\uFFFDb" {
		t.Errorf("decoded %q", got)
	}
}

func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(bytesString(), 1, 4).Draw(t, "texts")
		tok := train(t, rapid.IntRange(firstMerge, 400).Draw(t, "size"), texts...)
		text, err := tok.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got Tokenizer
		if err := got.UnmarshalText(text); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&got, tok) {
			t.Fatalf("read back %+v, want %+v", got, tok)
		}
	})
}

func TestUnmarshalRefuses(t *testing.T) {
	var doubling strings.Builder
	fmt.Fprintf(&doubling, "gomem-bpe 1 300\n%d %d\n", firstByte, firstByte)
	for i := range 10 {
		fmt.Fprintf(&doubling, "%d %d\n", firstMerge+i, firstMerge+i)
	}
	tests := []struct {
		name, text, want string
		line             int
	}{
		{"empty", "", "empty text", 0},
		{"other text", "hello\n", `"hello" where "gomem-bpe 1"`, 1},
		{"other version", "gomem-bpe 2 300\n", "are due", 1},
		{"no size", "gomem-bpe 1 x\n", "are due", 1},
		{"small size", "gomem-bpe 1 257\n", "give 258", 1},
		{"huge size", "gomem-bpe 1 999999999999\n", "give 258", 1},
		{"no room", "gomem-bpe 1 258\n3 4\n", "have room for", 2},
		{"one id", "gomem-bpe 1 300\n3\n", "two ids are due", 2},
		{"three ids", "gomem-bpe 1 300\n3 4 5\n", "two ids are due", 2},
		{"blank line", "gomem-bpe 1 300\n\n", "two ids are due", 2},
		{"id too large", "gomem-bpe 1 300\n3 99999999999\n", "two ids are due", 2},
		{"future id", "gomem-bpe 1 300\n3 258\n", "not an id yet", 2},
		{"EOS", "gomem-bpe 1 300\n3 1\n", "not an id yet", 2},
		{"negative", "gomem-bpe 1 300\n-3 4\n", "not an id yet", 2},
		{"repeated", "gomem-bpe 1 300\n3 4\n3 4\n", "second time", 3},
		{"doubling", doubling.String(), "token of 128 bytes", 8},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tok := train(t, 300, "ab ab")
			used := tok.Used()
			err := tok.UnmarshalText([]byte(test.text))
			var e *Error
			if !errors.As(err, &e) || e.Line != test.line ||
				!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q at line %d", err, test.want, test.line)
			}
			if tok.Used() != used {
				t.Error("the receiver changed")
			}
		})
	}
}

func TestTrainRefuses(t *testing.T) {
	c := &Corpus{Train: []Pair{{"abc abc", "abc abc"}}}
	for _, size := range []int{-1, 0, firstMerge - 1, maxVocabulary + 1} {
		if _, err := TrainTokenizer(context.Background(), c, size); err == nil {
			t.Errorf("size %d was accepted", size)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := TrainTokenizer(ctx, c, 300); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
}

// TestTrainingSample checks that a large corpus is sampled throughout.
func TestTrainingSample(t *testing.T) {
	pairs := make([]Pair, 20)
	for i := range pairs {
		word := strings.Repeat(string(rune('a'+i)), 8)
		pairs[i] = Pair{Source: strings.Repeat(" "+word, 1<<16), Target: word}
	}
	got := chunkFrequencies(pairs)
	if len(got) > 22 || got[" aaaaaaaa"] != 1<<16 || got[" ssssssss"] != 1<<16 ||
		got[" bbbbbbbb"] != 0 {
		t.Errorf("sample of %d chunks: want every second pair", len(got))
	}
}
