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
	for _, name := range []string{"optimizer", "clip", "accumulate"} {
		var without []string
		for i := 0; i < len(args); i++ {
			if args[i] == "--"+name {
				i++
				continue
			}
			without = append(without, args[i])
		}
		o := invoke(t, append(without, "--steps", "5", "--resume", "run")...)
		if o.status != exitFailure || o.stderr == "" {
			t.Errorf("resumed without %s: %+v", name, o)
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
