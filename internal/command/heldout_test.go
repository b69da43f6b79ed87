package command

import (
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
