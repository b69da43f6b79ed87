//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// outcome is the summary of a run that succeeds, whose memories took what was planned, and
// the loss of its steps and evaluations.
func (j *job) outcome(t *testing.T) (s train.Summary, losses []float64) {
	t.Helper()
	if status := j.end(); status != 0 {
		t.Fatalf("%v: status %d: %s", j.Args, status, j.stderr.String())
	}
	for line := range strings.Lines(j.stdout.String()) {
		var event struct {
			Type string
			Loss float64
			Held float64 `json:"eval_loss"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch event.Type {
		case "step", "eval": // each has one of them
			losses = append(losses, event.Loss+event.Held)
		case "summary":
			if err := json.Unmarshal([]byte(line), &s); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s.ActualDevicePeak != s.PredictedDevicePeak || s.ActualHostPeak != s.PredictedHostPeak {
		t.Errorf("%v: %+v", j.Args, s)
	}
	return s, losses
}

// TestLocalMesh: processes of a mesh have the losses of one process, step by step, each in
// less memory.
func TestLocalMesh(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	for mesh, model := range map[string]string{"experts:2x1": "moe", "batch:2x1": "transformer",
		"batch:2x1,experts:2x1": "moe"} {
		workers := 1 << strings.Count(mesh, "2x1")
		args := []string{"--model", model, "--steps", "3", "--eval-every", "2", "--optimizer",
			"sgd", "--json"}
		whole, want := start(t, t.TempDir(), args...).outcome(t)
		part, got := start(t, t.TempDir(), append(args, "--local", strconv.Itoa(workers),
			"--mesh", mesh)...).outcome(t)
		if part.Workers != workers || part.ActualDevicePeak >= whole.ActualDevicePeak ||
			(part.WeightsSHA256 == "") != (model == "moe") {
			t.Errorf("%s: %+v, of one process %+v", mesh, part, whole)
		}
		if len(want) != 5 || len(got) != len(want) {
			t.Fatalf("%s: losses %v, of one process %v", mesh, got, want)
		}
		for i, w := range want {
			if math.Abs(got[i]-w) > 1e-6*w {
				t.Errorf("%s: losses %v, of one process %v", mesh, got, want)
				break
			}
		}
	}
}

// killed starts a mesh of four processes that saves every few steps, kills one in the midst
// of a step, and demands that the others name it and nobody else, that all end within 10 s,
// and that one says how to go on. It returns the directory that they ran in.
func killed(t *testing.T, rank int, args ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	j := start(t, dir, append(args, "--steps", "100000", "--save", "run", "--save-every", "3")...)
	saved(t, j, filepath.Join(dir, "run"))
	if err := syscall.Kill(j.worker(t, rank), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	status := j.end()
	took, said := time.Since(began), j.stderr.String()
	if t.Logf("all had ended after %v", took); took > 10*time.Second {
		t.Errorf("processes were still there %v after worker %d was killed: %s", took, rank, said)
	}
	names(t, said, rank)
	for _, want := range []string{fmt.Sprintf("worker %d failed first: signal: killed", rank),
		"continue with: gomem-cluster train", "--mesh experts:4x1", "--resume run"} {
		if status != 1 || strings.Count(said, want) == 0 {
			t.Errorf("status %d, no %q in %s", status, want, said)
		}
	}
	if strings.Count(said, "continue with") > 1 {
		t.Errorf("several say how to go on: %s", said)
	}
	return dir
}

// names wants those of a job's workers that say why they end to name the one that is gone, and
// nobody else to be named as gone. What several say alike is written once; and of those that a
// death meets between two steps, some end without a word.
func names(t *testing.T, said string, gone int) {
	t.Helper()
	own := fmt.Sprintf("worker %d is gone", gone)
	for line := range strings.Lines(said) {
		blames := strings.Count(line, " is gone")
		if !strings.Contains(line, fmt.Sprintf("gomem: worker %d failed first", gone)) &&
			(blames == 0 || blames != strings.Count(line, own)) {
			t.Errorf("worker %d is gone, and this is said: %s", gone, line)
		}
	}
	if !strings.Contains(said, own) {
		t.Errorf("nobody says that worker %d is gone: %s", gone, said)
	}
}

// TestMeshKilled: when a process of a mesh is killed, be it the one that saves, the others name
// it and nobody else, all end within 10 s, and one says how to go on from the last checkpoint: in
// the same mesh with the bits of a run that nobody was lost from, and in one process.
func TestMeshKilled(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	moe := []string{"--model", "moe", "--json"}
	mesh := append(moe, "--local", "4", "--mesh", "experts:4x1")
	killed(t, 0, mesh...)
	dir := killed(t, 2, mesh...)
	c, err := train.Inspect(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	last := func(save string, args ...string) []byte {
		t.Helper()
		start(t, dir, append(args, "--steps", fmt.Sprint(c.Step+2), "--save", save)...).outcome(t)
		file, err := os.ReadFile(filepath.Join(dir, save,
			fmt.Sprintf("step-%08d.safetensors", c.Step+2)))
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	want := last("whole", mesh...)
	if !bytes.Equal(last("again", append(mesh, "--resume", "run")...), want) {
		t.Error("who goes on has other bits than who was not stopped")
	}
	if got := last("one", append(moe, "--resume", "run")...); len(got) != len(want) {
		t.Errorf("one process saves %d bytes, a mesh %d", len(got), len(want))
	}
}
