package command

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/snapshot"
	"github.com/gomem/gomem/internal/longtest"
)

// exported are the tables of a run, as bytes of a file.
func exported(t *testing.T, run string) string {
	t.Helper()
	out := t.TempDir()
	succeed(t, "export", "--from", run, out)
	b, err := os.ReadFile(filepath.Join(out, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSnapshots: a model without layers that goes on from what was saved, in the middle and with
// others still at work, ends with the bits of one that was never stopped.
func TestSnapshots(t *testing.T) {
	longtest.Skip(t)
	for _, c := range longtest.Some(4, [][]string{
		{"--model", "mf", "--sync", "ssp", "--staleness", "9"}, // clocks after the last epoch
		{"--model", "mf", "--sync", "stratified", "--local", "3", "--factors", "7"},
		{"--model", "mlr", "--sync", "bsp", "--local", "2", "--rule", "momentum:0.5"},
		{"--model", "lr", "--sync", "bsp", "--local", "2"},
		{"--model", "mf", "--sync", "bsp", "--local", "3", "--rule", "adarevision:0.1"},
		{"--model", "mlr", "--sync", "bsp", "--local", "3"},
		{"--model", "mf", "--sync", "bsp", "--local", "2"},
		{"--model", "lr"},
	}) {
		inDir(t)
		run := func(more ...string) outcome {
			o := gather(t, inMemory{}, with(with([]string{"train"}, c...), more...)...)
			if o.status != exitOK || o.stderr != "" {
				t.Fatalf("%v %v: %d, %s", c, more, o.status, o.stderr)
			}
			return o
		}
		run("--epochs", "3", "--save", "whole")
		run("--epochs", "2", "--save", "half", "--save-every", "1", "--seed", "0")
		c = c[2:] // the model is in the directory
		o := run("--epochs", "3", "--resume", "half")
		if !strings.Contains(o.stdout, "half (after epoch 3)") {
			t.Errorf("%v: %s", c, o.stdout)
		}
		if exported(t, "whole") != exported(t, "half") {
			t.Errorf("%v: what went on has other bits", c)
		}
	}
}

// TestSnapshotsOfMany: rows that several workers saved at a clock without waiting for each other
// are gone on from by any number of workers.
func TestSnapshotsOfMany(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	o := gather(t, inMemory{}, "train", "--model", "mf", "--sync", "ssp", "--local", "3",
		"--epochs", "20", "--save", "run")
	for _, c := range []struct{ workers, from, to string }{{"2", "20", "25"}, {"4", "25", "30"}} {
		o = gather(t, inMemory{}, "train", "--sync", "pf", "--resume", "run", "--epochs", c.to,
			"--local", c.workers)
		if o.status != exitOK || !strings.Contains(o.stdout, "\n\nepoch "+c.from+"  loss 0.") {
			t.Errorf("%+v: %d, %s, %s", c, o.status, o.stdout, o.stderr)
		}
	}
	for _, c := range []struct{ sync, workers, to string }{{"stratified", "3", "32"},
		{"stratified", "2", "34"}, {"bosen", "2", "35"}} {
		o = gather(t, inMemory{}, "train", "--sync", c.sync, "--resume", "run", "--epochs", c.to,
			"--local", c.workers)
		if o.status != exitOK || !strings.Contains(o.stdout, "run (after epoch "+c.to+")") {
			t.Errorf("%+v: %d, %s, %s", c, o.status, o.stdout, o.stderr)
		}
	}
	o = gather(t, inMemory{}, "train", "--resume", "run") // which is as long as it last was
	if !strings.Contains(o.stderr, "run is at epoch 35 already, the run is to reach 35") {
		t.Errorf("%d, %s", o.status, o.stderr)
	}
	o = gather(t, inMemory{}, "train", "--resume", "run/", "--save", "./run", "--epochs", "36")
	if o.status != exitOK {
		t.Errorf("one directory by two names: %s", o.stderr)
	}
}

// TestSnapshotsRefuse: what cannot be saved or gone on from is said in one line.
func TestSnapshotsRefuse(t *testing.T) {
	inDir(t)
	write(t, "plain", "x")
	succeed(t, "train", "--model", "mlr", "--epochs", "1", "--save", "run")
	succeed(t, "train", "--model", "mlr", "--epochs", "1", "--save", "damaged")
	shards, err := filepath.Glob("damaged/1.*/*.shard")
	if err != nil || len(shards) != 1 {
		t.Fatal(shards, err)
	}
	write(t, shards[0], "x")
	write(t, "points", "0 1:1 2:0.5\n1 1:0.25 2:1\n")
	succeed(t, "train", "--model", "mlr", "--data", "libsvm:points", "--epochs", "1", "--save",
		"few")
	write(t, "points", "0 1:1 2:0.5\n1 1:0.25 2:1\n1 2:0.75\n")
	write(t, "run.json", "{")
	for want, args := range map[string][]string{
		"go on from them with --resume, or":        {"train", "--model", "mlr", "--save", "run"},
		"run is at epoch 1 already, the run is to": {"train", "--resume", "run"},
		"the run there has --model mlr, not mf":    {"train", "--model", "mf", "--resume", "run"},
		"the run there has no --lr, not 3":         {"train", "--lr", "3", "--resume", "run"},
		"the run there has --seed 0, not 9":        {"train", "--seed", "9", "--resume", "run"},
		"the directory has no snapshots of --mode": {"train", "--model", "mf", "--resume", "no"},
		"--save-every needs --save DIR":            {"train", "--model", "lr", "--save-every", "2"},
		"run has tables of --model mlr: train --r": {"eval", "--from", "run"},
		"points: 2 samples of 2 features and 2":    {"train", "--resume", "few", "--epochs", "2"},
		"these bytes are no shard of a checkpoint": {"train", "--resume", "damaged"},
		"unexpected end of JSON input":             {"train", "--resume", "."},
		"orpheus can neither save nor resume": {"train", "--model", "mf", "--sync", "orpheus",
			"--save", "other"},
		"plain: not a directory": {"train", "--model", "mf", "--save", "plain"},
	} {
		o := gather(t, inMemory{}, args...)
		if o.status == exitOK || !strings.Contains(o.stderr, want) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%v: %d, %q, want %q", args, o.status, o.stderr, want)
		}
	}
}

// TestExportRefuses: rows far from all others take no memory, and are said to be there.
func TestExportRefuses(t *testing.T) {
	inDir(t)
	d := snapshot.Open("run")
	far := distrib.SavedRows{Param: "w", Cols: 2, Row: math.MaxInt32 - 1, N: 1,
		Data: []float32{1, 2}}
	err := errors.Join(d.Begin(tablesRun{Model: "mlr"}), d.Save(snapshot.Mark{Epoch: 1}, 1,
		&distrib.Shard{Rows: []distrib.SavedRows{far}}))
	if err != nil {
		t.Fatal(err)
	}
	o := invoke(t, "export", "--from", "run", "out")
	if o.status != exitFailure || !strings.Contains(o.stderr, "has rows [2147483646, +1) of w") {
		t.Errorf("%d, %s", o.status, o.stderr)
	}
}
