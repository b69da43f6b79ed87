//go:build linux && amd64 && !nocuda

package command

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// TestAbreastOnGPUs: two GPUs of one process learn what two workers on one GPU do, with the peaks
// that plan says. When one of them fails, a line names it and says how to go on; what was saved
// before is whole, and goes on to the same weights.
func TestAbreastOnGPUs(t *testing.T) {
	longtest.Skip(t)
	if os.Getenv("GOMEM_GPU") != "" {
		t.Skip("two GPUs are emulated")
	}
	emulated(t)
	t.Setenv("EMU_COUNT", "2")
	inDir(t)
	run := []string{"train", "--model", "topic", "--size", "s512", "--steps", "4",
		"--eval-batches", "1", "--json"}
	want := summaryOf(t, gather(t, inMemory{}, with(run, "--local", "2", "--device", "cuda:0")...))
	both := with(run, "--device", "cuda:0,1", "--save-every", "1")
	o := invoke(t, with(both, "--save", "whole")...)
	s := summaryOf(t, o)
	if s["weights_sha256"] != want["weights_sha256"] || s["weights_sha256"] == "" {
		t.Errorf("%v, of two workers on a GPU %v", s, want)
	}
	if !strings.Contains(o.stdout, `"gpu":"cuda:0: emulated of 512MiB, CUDA 13.0, cuBLAS 13.0.0; `+
		`cuda:1: emulated 1 of 512MiB`) {
		t.Errorf("it does not say on which GPUs: %s", o.stdout)
	}
	var x explanation
	decode(t, succeed(t, "plan", "--model", "topic", "--size", "s512", "--device", "cuda:0,1",
		"--json"), &x)
	for i, on := range s["devices"].([]any) {
		d, p := on.(map[string]any), x.Ranks[i]
		if d["device"] != p.On || d["actual_device_peak_bytes"] != float64(p.Device) ||
			d["predicted_device_peak_bytes"] != float64(p.Device) {
			t.Errorf("%v, planned %+v", d, p)
		}
	}
	across := []string{"--mesh", "batch:2x1"}
	divided := summaryOf(t, gather(t, inMemory{}, with(run, append(across, "--local", "2",
		"--device", "cuda:0")...)...))
	s = summaryOf(t, invoke(t, with(run, append(across, "--device", "cuda:0,1")...)...))
	if s["weights_sha256"] != divided["weights_sha256"] {
		t.Errorf("%v, of two processes of a mesh %v", s, divided)
	}
	for _, reach := range []string{"0", "1"} {
		t.Setenv("EMU_PEERS", reach)
		steps := succeed(t, with([]string{"plan", "--model", "topic", "--size", "s512", "--device",
			"cuda:0,1", "--steps"}, across...)...)
		if strings.Contains(steps, " peer ") != (reach == "1") {
			t.Errorf("reach %s: the plan is\n%s", reach, steps)
		}
	}
	t.Setenv("EMU_FAIL", "0,300")
	alive := goleak.IgnoreCurrent()
	o = invoke(t, with(both, "--save", "run")...)
	goleak.VerifyNone(t, alive)
	t.Setenv("EMU_FAIL", "")
	saved, err := train.Inspect("run")
	if err != nil || saved.Step < 1 || saved.Step > 2 {
		t.Fatalf("%+v, %v: %+v", saved, err, o)
	}
	if o.status != exitFailure || strings.Count(o.stderr, "\n") != 1 ||
		!strings.HasPrefix(o.stderr, "gomem: cuda:1: ") ||
		!strings.Contains(o.stderr, "CUDA_ERROR_LAUNCH_FAILED") ||
		!strings.Contains(o.stderr, "--device cuda:0,1 --save-every 1 --resume run") {
		t.Errorf("%+v", o)
	}
	o = invoke(t, with(both, "--resume", "run")...)
	if got := summaryOf(t, o); got["weights_sha256"] != want["weights_sha256"] {
		t.Errorf("gone on: %v, want %v", got, want)
	}
	if o = invoke(t, with(run, "--device", "cuda:0,7")...); o.status != exitFailure ||
		o.stderr != "gomem: --device cuda:7: no GPU 7: the machine has 2\n" || o.stdout != "" {
		t.Errorf("a GPU that is not there: %+v", o)
	}
	t.Setenv("EMU_MEM", "536870912,1048576")
	if o = invoke(t, with(run, "--device", "cuda:0,1")...); o.status != exitFailure ||
		!strings.HasPrefix(o.stderr, "gomem: cuda:1: ") ||
		!strings.Contains(o.stderr, "emulated 1 has 1.0 MiB of 1.0 MiB free") {
		t.Errorf("a GPU that is too small: %+v", o)
	}
}
