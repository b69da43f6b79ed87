package llamacpp

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/gguf"
)

// small are the values of a small vocabulary of SentencePiece.
func small(space bool) gguf.Metadata {
	names, kinds := []string{"<unk>", "<s>", "</s>"}, []int32{2, 3, 3}
	for b := range 256 {
		names, kinds = append(names, fmt.Sprintf("<0x%02X>", b)), append(kinds, byteToken)
	}
	for _, name := range []string{"he", "▁t", "▁the", "the", "th", "▁", "t", "h", "e"} {
		names, kinds = append(names, name), append(kinds, normalToken)
	}
	scores := make([]float32, len(names))
	for i := range scores {
		scores[i] = -float32(i)
	}
	return gguf.Metadata{{Key: "tokenizer.ggml.model", Value: "llama"},
		{Key: "tokenizer.ggml.tokens", Value: names},
		{Key: "tokenizer.ggml.token_type", Value: kinds},
		{Key: "tokenizer.ggml.scores", Value: scores},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(1)},
		{Key: "tokenizer.ggml.add_space_prefix", Value: space}}
}

// TestSentencesWritten: a tokenizer that is read of a file is written as what gives it again.
func TestSentencesWritten(t *testing.T) {
	for _, space := range []bool{true, false} {
		want, err := Tokenizer(small(space))
		if err != nil {
			t.Fatal(err)
		}
		d := &Description{}
		if err := d.tokens(want, []int32{2}); err != nil {
			t.Fatal(err)
		}
		got, err := Tokenizer(d.Values)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("space %t: %s, %v, want %s", space, got, err, want)
		}
	}
}

// TestUnwritten: a network that llama.cpp has other tensors for is refused by its name.
func TestUnwritten(t *testing.T) {
	_, err := Describe([]byte(`{"model_type":"gemma"}`), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "a GGUF file of gemma is not written") {
		t.Error(err)
	}
}

// TestSentencesUnwritten: what scores do not give is refused.
func TestSentencesUnwritten(t *testing.T) {
	text, err := Tokenizer(small(true))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ old, new, want string }{
		{`["h","e"],`, ``, "in an order that no scores"},
		{`["h","e"],["▁","t"]`, `["▁","t"],["h","e"],["▁","t"]`, "no scores"},
		{`"fuse_unk":true`, `"fuse_unk":false`, "no name for: want that of LLaMA 2"},
		{`"prepend":"▁"`, `"prepend":"x"`, "no name for: want that of LLaMA 2"},
		{`"unk_token":"\u003cunk\u003e"`, `"unk_token":null`, "no unk_token"},
	} {
		other := strings.Replace(string(text), row.old, row.new, 1)
		err := (&Description{}).tokens([]byte(other), nil)
		if other == string(text) || err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.old, err, row.want)
		}
	}
}
