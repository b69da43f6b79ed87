package command

import (
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// TestInit: a run begins with another's weights, of another model too where names are
// mapped, and says what it took; a resumed one has its own.
func TestInit(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	succeed(t, append(tiny, "--steps", "2", "--save", "run")...)
	text := succeed(t, append(tiny, "--steps", "1", "--init", "run")...)
	if !strings.Contains(text, "began with run/step-00000002.safetensors: 66 variables taken\n") {
		t.Errorf("all variables are to be taken:\n%s", text)
	}
	write(t, "names", "*/ff/w* */moe/expert0/w*\n*/norm/scale */norm\n")
	text = succeed(t, append(tinyMoE, "--steps", "1", "--init", "run", "--rename", "names")...)
	for _, want := range []string{": 17 variables taken, ", // 8 matrices, 8 scales, the embedding
		"not in the file", "left over"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q of what a mixture of experts takes of a Transformer:\n%s", want, text)
		}
	}
	lines, _ := trainLines(t, succeed(t,
		append(tinyMoE, "--model", "transformer", "--steps", "1", "--init", "run", "--json")...))
	if lines[1].Type != "init" || lines[1].Text == "" {
		t.Errorf("lines %+v", lines)
	}
	write(t, "bad", "one two three\n")
	write(t, "theirs", "*/ffn/* */moe/expert0/*\n")
	write(t, "ours", "*/ff/* */ffn/*\n")
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
		{[]string{"--init", "run", "--rename", "theirs"}, exitFailure, "is of no tensor"},
		{[]string{"--init", "run", "--rename", "ours"}, exitFailure, "model does not have"},
		{[]string{"--init", "run", "--device", "null"}, exitUsage, "no use for --init"},
	} {
		o := invoke(t, append(append([]string{}, tinyMoE...), c.args...)...)
		if o.status != c.status || !strings.Contains(o.stderr, c.says) || o.stdout != "" {
			t.Errorf("%v: %+v", c.args, o)
		}
	}
}
