package models_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/gomem/gomem/models"
)

// FuzzPublished: a configuration that is read is of a network that can be built, what it has
// beside that is said by names that can be printed, and it is written as what reads as the
// same; of any other the error is one line, of no great length.
func FuzzPublished(f *testing.F) {
	for _, text := range []string{`{"model_type":"gpt2","n_layer":2,"n_head":2,"n_embd":8}`,
		`{"model_type":"llama","rope_parameters":{"rope_theta":5e5},"eos_token_id":[1,2]}`,
		`{"model_type":"llama","rope_scaling":{"a\nb":1}}`, `{"model_type":"gpt2","a\u2028b":1}`,
		`{"model_type":"gpt2","n_embd":9223372036854775807}`, `{"model_type":"gpt2","n_head":0}`,
		`{"model_type":"llama","num_attention_heads":-1,"head_dim":-4096}`, `null`, `{}`,
		`{"model_type":"llama","num_key_value_heads":0}`, `{"model_type":"\u001b[31m"}`,
		`{"model_type":"gpt2","eos_token_id":1e99}`, `{"model_type":"gpt2","n_layer":"\u0085"}`,
		`{"model_type":"gpt2","vocab_size":` + strings.Repeat("9", 5000) + `}`,
		`{"model_type":"gpt2","` + strings.Repeat("x", 5000) + `":1}`,
		`{"model_type":"gpt2","quantization":"` + "\u2028" + `"}`} {
		f.Add([]byte(text))
	}
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := models.ParsePublished(text)
		if err != nil {
			if strings.ContainsFunc(err.Error(), odd) || len(err.Error()) > 1000 {
				t.Errorf("%q", err)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		for _, name := range p.Unknown {
			if strings.ContainsFunc(name, odd) || len(name) > 1000 {
				t.Errorf("%q is not known", name)
			}
		}
		written, err := p.PublicConfig(p.Ends...)
		if err != nil {
			t.Fatal(err)
		}
		again, err := models.ParsePublished(written)
		if err != nil || !reflect.DeepEqual(p.GPTConfig, again.GPTConfig) ||
			!slices.Equal(p.Ends, again.Ends) {
			t.Errorf("%+v reads as %+v, %v", p, again, err)
		}
	})
}
