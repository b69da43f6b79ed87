package train

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/internal/gguf"
	"github.com/gomem/gomem/internal/llamacpp"
)

// sentences are the values of the file of a SentencePiece model, with one of them another.
func sentences(t *testing.T, key string, value any) gguf.Metadata {
	t.Helper()
	f, err := gguf.Open(filepath.Join(ggufs, "sentences.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer closeRead(f)
	key = "tokenizer.ggml." + key
	m := slices.DeleteFunc(slices.Clone(f.Metadata()), func(p gguf.Pair) bool {
		return p.Key == key
	})
	if value != nil {
		m = append(m, gguf.Pair{Key: key, Value: value})
	}
	return m
}

// tokenizerIn is the tokenizer of values.
func tokenizerIn(t *testing.T, m gguf.Metadata) *data.Tokenizer {
	t.Helper()
	text, err := llamacpp.Tokenizer(m)
	tok := &data.Tokenizer{}
	if err == nil {
		err = tok.UnmarshalJSON(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestGGUFSentences: ids and texts of a file with a SentencePiece model's tokens are those of the
// tokenizer.json that transformers makes of the model.
func TestGGUFSentences(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(ggufs, "sentences.json"))
	if err != nil {
		t.Fatal(err)
	}
	type peer struct {
		IDs     [][]int32
		Decoded []string
	}
	var peers struct {
		Texts       []string
		Space, None peer
	}
	if err := json.Unmarshal(text, &peers); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		space any
		want  peer
	}{{nil, peers.Space}, {true, peers.Space}, {false, peers.None}} {
		tok := tokenizerIn(t, sentences(t, "add_space_prefix", row.space))
		for i, text := range peers.Texts {
			got := tok.Encode(text)
			if !slices.Equal(got, row.want.IDs[i]) {
				t.Errorf("space %v: %q is %v, want %v", row.space, text, got, row.want.IDs[i])
			}
			if got := tok.Ending(259).Decode(got); got != row.want.Decoded[i] {
				t.Errorf("space %v: %q comes back as %q, want %q", row.space, text, got,
					row.want.Decoded[i])
			}
		}
		if got := tok.Prompt(""); !slices.Equal(got, []int32{1}) {
			t.Errorf("texts begin with %v, want 1", got)
		}
	}
	tok := tokenizerIn(t, sentences(t, "add_bos_token", false))
	if got := tok.Prompt(""); len(got) > 0 {
		t.Errorf("texts begin with %v, want nothing", got)
	}
}

// TestGGUFSentencesRefused: damaged tokens are named on one line.
func TestGGUFSentencesRefused(t *testing.T) {
	long := make([]string, 381)
	kinds := make([]int32, 381)
	for i := range long {
		long[i], kinds[i] = strings.Repeat("a", 1000+i), 1
	}
	kinds[7] = 9
	for _, row := range []struct {
		key   string
		value any
		want  string
	}{
		{"scores", nil, "380 tokens, and scores 0: want one of each"},
		{"scores", []float32{1}, "380 tokens, and scores 1: want one of each"},
		{"tokens", long, "381 tokens, and token_type 380: want one of each"},
		{"tokens", long[:380], "bytes for token 260: want 1024 at most"},
		{"token_type", kinds[:380], "has 9 for token 7: want one of [1 2 6 3 4 5]"},
		{"unknown_token_id", uint32(380), "unknown_token_id is 380: want the id of a token"},
		{"unknown_token_id", "x", "unknown_token_id is x: want the id of a token"},
		{"bos_token_id", uint32(380), "bos_token_id is 380: want the id of a token"},
	} {
		_, err := llamacpp.Tokenizer(sentences(t, row.key, row.value))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.key, err, row.want)
		}
	}
}
