package command

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// TestLDAPlanned: what plan says of documents is what training says when it begins, and of
// documents that nobody has it is said, too.
func TestLDAPlanned(t *testing.T) {
	inDir(t)
	write(t, "texts", strings.Repeat(pets, 400))
	flags := []string{"--model", "lda", "--topics", "7", "--data", "text:texts", "--parts", "3",
		"--block-tokens", "600", "--json"}
	var plan struct{ Workers []map[string]any }
	decode(t, succeed(t, append([]string{"plan"}, flags...)...), &plan)
	first, _, _ := strings.Cut(succeed(t, append([]string{"train", "--disk", ".", "--epochs", "1"},
		flags...)...), "\n")
	var said map[string]any
	if err := json.Unmarshal([]byte(first), &said); err != nil || len(plan.Workers) != 1 {
		t.Fatalf("%q, %v, %+v", first, err, plan)
	}
	plan.Workers[0]["disk"] = "."
	if !maps.Equal(plan.Workers[0], said) {
		t.Errorf("planned %v, training says %v", plan.Workers[0], said)
	}
	text := succeed(t, "plan", "--model", "lda", "--tokens", "1000000000", "--topics", "1000",
		"--vocabulary", "1000000")
	for _, want := range []string{"10,000,000 documents of 100 words among 1,000,000",
		"5.588GiB of documents and topics", "7.451GiB read and written"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: want %q", text, want)
		}
	}
}

func TestLDAPlanRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"--host-memory 1MiB is too little": {"--model", "lda", "--host-memory", "1MiB"},
		"--size does nothing with":         {"--model", "lda", "--size", "s64"},
		"--policy does nothing with":       {"--model", "lda", "--policy", "vanilla"},
		"--vocabulary does nothing with": {"--model", "lda", "--data", "text:x",
			"--vocabulary", "9"},
		"nowhere":                             {"--model", "lda", "--data", "text:nowhere"},
		"0 documents of 100 words":            {"--model", "lda", "--tokens", "9"},
		"want a whole number from 1 to 21474": {"--model", "lda", "--tokens", "9999999999"},
		"70000 topics":                        {"--model", "lda", "--topics", "70000"},
		"--parts is for --model lda":          {"--parts", "9"},
		"--tokens is for --model lda":         {"--model", "gpt", "--tokens", "9"},
	} {
		o := invoke(t, append([]string{"plan"}, args...)...)
		if o.status == exitOK || strings.Count(o.stderr, "\n") != 1 ||
			!strings.Contains(o.stderr, want) {
			t.Errorf("%v: %+v, want %q", args, o, want)
		}
	}
}
