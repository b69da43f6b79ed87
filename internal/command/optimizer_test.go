package command

import (
	"strings"
	"testing"
)

// TestOptimizers: every model trains with another optimizer, clipped; accumulated batches
// count; a resumed run has to keep all three.
func TestOptimizers(t *testing.T) {
	inDir(t)
	args := append(append([]string{}, tiny...), "--model", "transformer", "--bleu", "0",
		"--optimizer", "adamw", "--clip", "0.5", "--accumulate", "3")
	_, summary := trainLines(t, succeed(t, append(args, "--steps", "3", "--save", "run",
		"--json")...))
	if summary["predicted_device_peak_bytes"] != summary["actual_device_peak_bytes"] {
		t.Errorf("summary %v", summary)
	}
	succeed(t, append(args, "--steps", "4", "--resume", "run")...)
	for name, values := range map[string][2]string{"optimizer": {"adamw", "sgd"},
		"clip": {"0.5", "0.25"}, "accumulate": {"3", "2"}} {
		o := invoke(t, "train", "--steps", "5", "--resume", "run", "--"+name, values[1])
		if o.status != exitFailure || !strings.Contains(o.stderr, "was made with --"+name+" "+
			values[0]+", this run has --"+name+" "+values[1]) {
			t.Errorf("resumed with another %s: %+v", name, o)
		}
	}
	for _, name := range strings.Split(optimizerNames, ",")[1:] {
		succeed(t, append(append([]string{}, tiny...), "--model", "transformer", "--steps", "1",
			"--bleu", "0", "--optimizer", name)...)
	}
	for flags, says := range map[string]string{
		"--optimizer newton": "--optimizer", "--clip 0": "--clip", "--accumulate 5000": "1 to 4096",
		"--model wgan --data glyphs --accumulate 2": "--accumulate does nothing",
	} {
		o := invoke(t, append(append([]string{}, tiny...), strings.Fields(flags)...)...)
		if o.status != exitUsage || !strings.Contains(o.stderr, says) {
			t.Errorf("%s: %+v", flags, o)
		}
	}
}
