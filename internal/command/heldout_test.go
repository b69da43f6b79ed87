package command

import (
	"fmt"
	"strings"
	"testing"
)

// TestEvalData: a run is evaluated on other data, as gomem eval would do it.
func TestEvalData(t *testing.T) {
	inDir(t)
	write(t, "test.tsv", strings.Repeat("the number 7\tnumber 7 is 49\n", 3)+
		"the number 8\tnumber 8 is 64\nthe number 9\tnumber 9 is 81\n")
	args := append(append([]string{}, tiny...), "--model", "transformer", "--bleu", "0", "--steps",
		"2")
	_, other := trainLines(t, succeed(t, append(args, "--eval-data", "tsv:test.tsv", "--save",
		"run", "--json")...))
	_, own := trainLines(t, succeed(t, append(args, "--json")...))
	if other["eval_loss"] == own["eval_loss"] || other["weights_sha256"] != own["weights_sha256"] {
		t.Errorf("on other data %v, on its own %v", other, own)
	}
	o := invoke(t, "eval", "--from", "run", "--data", "tsv:test.tsv", "--bleu", "0", "--json")
	var evaluated map[string]any
	decode(t, o.stdout, &evaluated)
	if evaluated["loss"] != other["eval_loss"] {
		t.Errorf("eval says %v, train said %v", evaluated["loss"], other["eval_loss"])
	}
	for spec, says := range map[string]string{
		"tsv:none": "none", "glyphs": "--data glyphs is not",
	} {
		if o := invoke(t, append(args, "--eval-data", spec)...); o.status == exitOK ||
			!strings.Contains(o.stderr, says) {
			t.Errorf("--eval-data %s: %+v", spec, o)
		}
	}
}

// TestDocuments: documents of JSON lines are trained on and evaluated in rows, and not together
// with running text.
func TestDocuments(t *testing.T) {
	inDir(t)
	var lines strings.Builder
	for i := range 60 {
		fmt.Fprintf(&lines, "{\"prompt\": \"after %d comes\", \"completion\": \" %d\"}\n", i, i+1)
	}
	write(t, "d.jsonl", lines.String())
	write(t, "a.txt", strings.Repeat("some text\n", 200))
	args := []string{"train", "--model", "gpt", "--size", "s512", "--batch", "2", "--data",
		"jsonl:d.jsonl", "--steps", "3"}
	says := func(words string, args ...string) {
		t.Helper()
		if out := strings.Join(strings.Fields(succeed(t, args...)), " "); !strings.Contains(out,
			words) {
			t.Errorf("%q\ndoes not say %q", out, words)
		}
	}
	says("documents 60; ", append(args, "--save", "r")...)
	says("what was held out of it", "eval", "--from", "r")
	says("all of it: other data", "eval", "--from", "r", "--data", "text:a.txt")
	says("wrote public", "export", "--from", "r", "public")
	says("all of it", "eval", "--from", "public", "--data", "jsonl:d.jsonl")
	o := invoke(t, append(args, "--eval-data", "text:a.txt")...)
	if o.status != exitUsage || !strings.Contains(o.stderr, "give jsonl for both") {
		t.Errorf("%+v", o)
	}
}
