package command

import (
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// TestConfig: flags of a file are those of a command line, which wins; and what a run keeps
// beside its checkpoints makes another one like it, and goes on with it.
func TestConfig(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	write(t, "flags.yaml", "size: s512\ndata: tsv:pairs.tsv\neval-batches: 1\nbleu: 0\n"+
		"seed: 18446744073709551615\nlr: 1e-3\nfuse: false\ndevice-memory: 64MiB\nsteps: 9\n"+
		"metrics: [numbers]\nclip: 0.5\n")
	flags := []string{"--size", "s512", "--data", "tsv:pairs.tsv", "--eval-batches", "1",
		"--bleu", "0", "--seed", "18446744073709551615", "--lr", "1e-3", "--clip", "0.5",
		"--no-fuse", "--device-memory", "64MiB"}
	sum := func(args ...string) string {
		t.Helper()
		_, summary := trainLines(t, succeed(t, append([]string{"train", "--json"}, args...)...))
		return summary["weights_sha256"].(string)
	}
	want := sum(append(flags, "--steps", "2")...)
	have := sum("--config", "flags.yaml", "--steps", "2", "--save", "run", "--save-every", "1")
	if have != want {
		t.Errorf("of a file the weights are %s, of flags %s", have, want)
	}
	if _, err := os.Stat("numbers/metrics.csv"); err != nil {
		t.Error(err)
	}
	if again := sum("--config", "run/config.yaml"); again != want {
		t.Errorf("of what was kept the weights are %s, of flags %s", again, want)
	}
	longer := sum("--config", "run/config.yaml", "--resume", "run", "--steps", "3")
	if whole := sum("--config=flags.yaml", "--steps=3", "--metrics=other"); longer != whole {
		t.Errorf("resumed the weights are %s, at once %s", longer, whole)
	}
	write(t, "flags.json", `{"size": "s512", "data": "tsv:pairs.tsv", "epochs": 1, "no-fuse": true}`)
	sum("--config", "flags.json", "--steps", "1", "--bleu", "0", "--eval-batches", "1")
}

// TestBadConfig: a key that is no flag is named, with the one that may be meant.
func TestBadConfig(t *testing.T) {
	inDir(t)
	for text, want := range map[string]string{
		"stepz: 3":                  `there is no flag "stepz": is steps meant?`,
		"eval_every: 3":             `there is no flag "eval_every": is eval-every meant?`,
		"Size: s64":                 `is size meant?`,
		"zzzzzzzz: 1":               "see gomem train --help",
		"config: other":             `there is no flag "config"`,
		"no-steps: true":            `there is no flag "no-steps"`,
		"steps: [1, 2]":             "it has 2 values, want one",
		"steps: {a: 1}":             "it has parts",
		"steps:":                    "it has no value",
		"steps: x":                  "--steps",
		"steps: 1\nsteps: 2":        "steps",
		"steps: 1\nepochs: 2":       "can't be used together",
		"no-fuse: true\nfuse: true": "is given twice",
		"- a":                       "want flags and their values",
		"a: b: c":                   "neither YAML nor JSON",
		"policy: nope":              "nope",
		"steps: 1\n---\nsteps: 2":   "several documents",
		"steps: 1\n...\n\na: 2\n":   "several documents",
		"--- {steps: x}\n---\n":     "--steps",
		"%YAML 1.1\n---\nsteps: x":  "--steps",
	} {
		write(t, "flags", text)
		o := invoke(t, "train", "--config", "flags")
		if o.status != exitUsage || !strings.Contains(o.stderr, want) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%q: status %d, %q, want %q", text, o.status, o.stderr, want)
		}
	}
	if o := invoke(t, "train", "--config", "none"); !strings.Contains(o.stderr,
		"--config none: no such file") {
		t.Errorf("%q", o.stderr)
	}
}
