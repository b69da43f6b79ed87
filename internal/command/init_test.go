package command

import (
	"strings"
	"testing"
)

// TestInit: a run begins with another's weights, of another model too where names are
// mapped, and says what it took; a resumed one has its own.
func TestInit(t *testing.T) {
	inDir(t)
	succeed(t, append(tiny, "--model", "transformer", "--steps", "2", "--save", "run")...)
	text := succeed(t, append(tiny, "--model", "transformer", "--steps", "1", "--init", "run")...)
	if !strings.Contains(text, "began with run/step-00000002.safetensors: 66 variables taken\n") {
		t.Errorf("all variables are to be taken:\n%s", text)
	}
	write(t, "names", "*/ffn/* none/*\n")
	text = succeed(t, append(tiny, "--steps", "1", "--init", "run", "--rename", "names")...)
	if !strings.Contains(text, "not in the file") || !strings.Contains(text, "left over") {
		t.Errorf("a mixture of experts takes of a Transformer:\n%s", text)
	}
	lines, _ := trainLines(t, succeed(t,
		append(tiny, "--model", "transformer", "--steps", "1", "--init", "run", "--json")...))
	if lines[1].Type != "init" || lines[1].Text == "" {
		t.Errorf("lines %+v", lines)
	}
	write(t, "bad", "one two three\n")
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--init", "none"}, exitFailure, "none: no such file"},
		{[]string{"--init", "pairs.tsv"}, exitFailure, "pairs.tsv"},
		{[]string{"--rename", "names"}, exitUsage, "--rename needs --init"},
		{[]string{"--init", "run", "--resume", "run"}, exitUsage, "can't be used together"},
		{[]string{"--init", "run", "--rename", "bad"}, exitFailure, "bad:1: 3 words"},
		{[]string{"--init", "run", "--device", "null"}, exitUsage, "no use for --init"},
	} {
		o := invoke(t, append(append([]string{}, tiny...), c.args...)...)
		if o.status != c.status || !strings.Contains(o.stderr, c.says) || o.stdout != "" {
			t.Errorf("%v: %+v", c.args, o)
		}
	}
}
