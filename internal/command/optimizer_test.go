package command

import (
	"bytes"
	"os"
	"path/filepath"
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

// TestSmallMomentsResume: a run with moments of few bits that is saved and resumed ends with the
// bytes of one that is not interrupted, and its checkpoint is smaller.
func TestSmallMomentsResume(t *testing.T) {
	inDir(t)
	sizes := map[string]int64{}
	for _, name := range []string{"adamw", "adamw-bf16", "adamw-8bit"} {
		args := append(append([]string{}, tiny...), "--bleu", "0", "--schedule", "constant",
			"--optimizer", name, "--clip", "0.5", "--policy", "thesis", "--save")
		succeed(t, append(args, name+"-half", "--steps", "2")...)
		succeed(t, append(args, name+"-both", "--steps", "4", "--resume", name+"-half")...)
		succeed(t, append(args, name+"-whole", "--steps", "4")...)
		var files [2][]byte
		for i, dir := range []string{name + "-both", name + "-whole"} {
			var err error
			file := filepath.Join(dir, "step-00000004.safetensors")
			if files[i], err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(files[0], files[1]) {
			t.Errorf("%s: a run that was resumed ends with other bytes", name)
		}
		sizes[name] = int64(len(files[0]))
	}
	if sizes["adamw-bf16"] >= sizes["adamw"] || sizes["adamw-8bit"] >= sizes["adamw-bf16"] {
		t.Errorf("checkpoints of %v bytes", sizes)
	}
}
