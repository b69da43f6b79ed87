package command

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
)

// aQwen is the config.json of a small network.
const aQwen = `{"model_type":"qwen3","vocab_size":300,"hidden_size":16,"intermediate_size":24,
"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":12,
"max_position_embeddings":64,"tie_word_embeddings":true,"use_sliding_window":true,
"sliding_window":9,"max_window_layers":1}`

// TestNetworkOfAFile: a run whose network is a public checkpoint's trains it, goes on with it
// without the file, and what it exports is of that network; others than it began with are refused.
func TestNetworkOfAFile(t *testing.T) {
	inDir(t)
	if err := os.Mkdir("theirs", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, "theirs/config.json", aQwen)
	write(t, "other.json", strings.Replace(aQwen, `"sliding_window":9`, `"sliding_window":8`, 1))
	out := succeed(t, "plan", "--model", "gpt", "--network", "theirs/config.json")
	if !strings.Contains(out, "gpt base, 11,840 parameters") {
		t.Errorf("%s", out)
	}
	succeed(t, "train", "--model", "gpt", "--network", "theirs", "--data", "text:pairs.tsv",
		"--batch", "2", "--length", "16", "--steps", "2", "--save", "run")
	succeed(t, "train", "--resume", "run", "--steps", "3")
	succeed(t, "train", "--resume", "run", "--steps", "4", "--network", "theirs/config.json")
	for args, says := range map[string]string{
		"train --resume run --steps 5 --network none.json": "none.json: no such file",
		"fit --model gpt --network theirs --max depth":     "--network is what --max depth looks",
		"plan --model gpt --network .":                     "config.json: no such file",
		"plan --model gpt --network theirs --length 65":    "want the 64 positions",
		"train --resume run --steps 5 --network other.json": "was made with another network than " +
			"that of other.json",
		"plan --model gpt --network none":                   "none: no such file",
		"plan --model gpt --network pairs.tsv":              "no configuration of a model",
		"plan --model gpt --network theirs --depth 3":       "leave out --depth",
		"plan --model gpt --network theirs --blocks llama":  "leave out --blocks",
		"plan --model gpt --network theirs --size base":     "leave out --size",
		"plan --model gpt --network theirs --vocabulary 99": "leave out --vocabulary",
		"plan --model moe --network theirs":                 "--network does nothing for --model",
	} {
		o := invoke(t, strings.Fields(args)...)
		if o.status == exitOK || !strings.Contains(o.stderr, says) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", args, o)
		}
	}
	succeed(t, "export", "--from", "run", "ours")
	if text, err := os.ReadFile("ours/config.json"); err != nil ||
		!strings.Contains(string(text), `"max_position_embeddings": 64`) {
		t.Errorf("%s, %v", text, err)
	}
	long := evaluation(t, "--from", "ours", "--data", "text:pairs.tsv", "--length", "64")
	if short := evaluation(t, "--from", "ours", "--data", "text:pairs.tsv", "--length",
		"2"); short["loss"] == long["loss"] || short["units"] != long["units"] {
		t.Errorf("in windows of 2 tokens %v, of 64 %v", short, long)
	}
	for args, says := range map[string]string{
		"eval --from ours --data text:pairs.tsv --length 65": "want the 64 positions",
		"predict --from ours --length 65 pairs.tsv":          "want the 64 positions",
		"predict --from run --length 9 pairs.tsv":            "--length does nothing for a run",
	} {
		if o := invoke(t, strings.Fields(args)...); o.status == exitOK ||
			!strings.Contains(o.stderr, says) || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", args, o)
		}
	}
	succeed(t, "train", "--model", "gpt", "--network", "ours", "--init", "ours", "--data",
		"text:pairs.tsv", "--batch", "2", "--length", "16", "--steps", "1")
	write(t, "a.txt", "the number")
	want, _ := predicted(t, exitOK, "--from", "run", "--tokens", "9", "a.txt")
	if got, _ := predicted(t, exitOK, "--from", "ours", "--tokens", "9", "a.txt"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	o := invoke(t, "train", "--model", "gpt", "--network", "other.json", "--init", "ours",
		"--data", "text:pairs.tsv", "--steps", "1")
	if o.status == exitOK || !strings.Contains(o.stderr, "a window") {
		t.Errorf("weights of another network: %+v", o)
	}
}

// TestNetworkKeepsItsVocabulary: fewer sub-words than a network has room for do not resize it, on
// the worker that learns them and on those that are told.
func TestNetworkKeepsItsVocabulary(t *testing.T) {
	tokenizer, err := data.LearnTokenizer(t.Context(), []string{"low low lower"}, 300)
	if err != nil {
		t.Fatal(err)
	}
	for network, want := range map[string]count{"": count(tokenizer.Used()), "{}": 0} {
		c := &trainCmd{modelFlags: modelFlags{Model: "gpt", network: network}}
		if err := sizeByWords(c, tokenizer, 1000); err != nil || c.Vocabulary != want {
			t.Errorf("network %q: %d sub-words, want %d: %v", network, c.Vocabulary, want, err)
		}
	}
}

// TestTrainsWhatIsStored: matrices of bfloat16 are trained without copies of f32, under any policy
// with the same weights, and go on, are evaluated and predict as others do.
func TestTrainsWhatIsStored(t *testing.T) {
	inDir(t)
	if err := os.Mkdir("theirs", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, "theirs/config.json", aQwen)
	args := []string{"train", "--model", "gpt", "--network", "theirs", "--data", "text:pairs.tsv",
		"--batch", "2", "--length", "16", "--schedule", "constant", "--store", "bf16"}
	small := append(slices.Clip(args), "--optimizer", "adamw-8bit")
	sum := func(out string) string {
		at := strings.Index(out, "weights sha256")
		return strings.SplitN(out[max(at, 0):], "\n", 2)[0]
	}
	whole := sum(succeed(t, append(slices.Clip(small), "--steps", "4", "--save", "whole")...))
	succeed(t, append(slices.Clip(small), "--steps", "2", "--save", "run")...)
	resumed := sum(succeed(t, append(slices.Clip(small), "--steps", "4", "--resume", "run",
		"--policy", "auto")...))
	lower := sum(succeed(t, append(slices.Clip(small), "--steps", "4", "--precision", "bf16")...))
	if whole == "" || resumed != whole || lower == whole {
		t.Errorf("at once %s, resumed %s, in bf16 %s", whole, resumed, lower)
	}
	loss := func(from ...string) string {
		args := append([]string{"eval", "--data", "text:pairs.tsv", "--from"}, from...)
		out := succeed(t, args...)
		return strings.Join(strings.Fields(out[strings.Index(out, "loss"):])[:2], " ")
	}
	succeed(t, "eval", "--from", "whole")
	succeed(t, "export", "--from", "whole", "public")
	if one, two := loss("public"), loss("public", "--store", "bf16"); one != two {
		t.Errorf("exported: %s, and as it was trained %s", one, two)
	}
	for args, says := range map[string]string{
		strings.Join(args, " "):                       "give --optimizer adamw-8bit",
		strings.Join(args, " ") + " --optimizer lion": "give --optimizer adamw-8bit",
	} {
		if o := invoke(t, strings.Fields(args)...); o.status == exitOK ||
			!strings.Contains(o.stderr, says) {
			t.Errorf("%s: %+v", args, o)
		}
	}
}
