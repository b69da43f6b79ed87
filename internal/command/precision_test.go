package command

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/safetensors"
)

// TestPrecisionFlags: what no device computes in is refused in a line that names the flag, and
// a plan says in what it computes.
func TestPrecisionFlags(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	for _, c := range []struct{ line, why string }{
		{"plan --size s512 --precision f64", "--precision: unknown precision \"f64\": want one of"},
		{"plan --size s512 --precision fp16", "scaled"},
		{"train --size s512 --data tsv:pairs.tsv --steps 1 --precision tf32",
			"precision tf32: the processor has no such products"},
		{"train --size s512 --data tsv:pairs.tsv --steps 1 --no-cuda-graphs --device cpu",
			"device cpu has no CUDA graphs to do without; want device cuda"},
		{"plan --size s512 --precision tf32", "precision tf32: "},
		{"profile --size s512 --precision tf32", "precision tf32: "},
	} {
		o := invoke(t, strings.Fields(c.line)...)
		if o.status != exitUsage || !strings.Contains(o.stderr, c.why) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("gomem %s: status %d, %q; want %q", c.line, o.status, o.stderr, c.why)
		}
	}
	out := succeed(t, "plan", "--size", "s512", "--device", "sim:titanx", "--precision", "tf32")
	if !strings.Contains(out, "\nprecision ") {
		t.Errorf("a plan in TF32 says\n%s", out)
	}
	succeed(t, "plan", "--size", "s512", "--precision", "bf16", "--dump", "dump.txt")
	if dump, err := os.ReadFile("dump.txt"); err != nil ||
		!strings.Contains(strings.SplitN(string(dump), "\n", 2)[0], " precision=bf16") {
		t.Errorf("%v: the title of a plan in bfloat16 begins %.100s", err, dump)
	}
	if out := succeed(t, "plan", "--size", "s512"); strings.Contains(out, "precision") {
		t.Errorf("a plan in f32 says\n%s", out)
	}
}

// TestBF16Resumes: a run in bfloat16 that stops and is resumed ends with the bits of one that
// never stopped, its weights saved in f32; a run in f32 does not go on from it.
func TestBF16Resumes(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	bf16 := with(tiny, "--precision", "bf16")
	out := succeed(t, with(bf16, "--steps", "4", "--save", "whole")...)
	if !strings.Contains(out, "bf16") {
		t.Errorf("a run in bfloat16 says\n%s", out)
	}
	succeed(t, with(bf16, "--steps", "2", "--save", "parts")...)
	succeed(t, with(bf16, "--steps", "4", "--resume", "parts", "--policy", "vanilla")...)
	want, err := safetensors.Open("whole/step-00000004.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	got, err := safetensors.Open("parts/step-00000004.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	for _, e := range want.Entries() {
		a, errA := want.Get(e.Name)
		b, errB := got.Get(e.Name)
		if errA != nil || errB != nil || e.Type.DType == graph.BF16 ||
			string(a.Data) != string(b.Data) {
			t.Errorf("%s %s: %v, %v, or other bits", e.Name, e.Type, errA, errB)
		}
	}
	o := invoke(t, with(tiny, "--steps", "5", "--resume", "parts")...)
	if o.status == 0 || !strings.Contains(o.stderr, "precision") ||
		strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("in f32: %+v", o)
	}
}

// TestPrecisionsHavePrices: on a simulated machine that knows precisions steps take less by them.
func TestPrecisionsHavePrices(t *testing.T) {
	var before float64
	for _, precision := range []string{"f32", "tf32", "bf16"} {
		o := invoke(t, "plan", "--model", "gpt", "--size", "base", "--policy", "vanilla",
			"--device", "sim:h100", "--precision", precision, "--json")
		var got struct {
			Step float64 `json:"predicted_step_ms"`
		}
		if err := json.Unmarshal([]byte(o.stdout), &got); err != nil || o.status != exitOK {
			t.Fatalf("%+v: %v", o, err)
		}
		if before > 0 && got.Step > 0.99*before {
			t.Errorf("a step in %s takes %v ms, before it is %v", precision, got.Step, before)
		}
		before = got.Step
	}
}
