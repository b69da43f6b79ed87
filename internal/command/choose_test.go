//go:build linux && amd64 && !nocuda

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/device/cuda/emu"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// emulated has commands find an emulated GPU.
func emulated(t *testing.T) string {
	t.Helper()
	dir := emu.Dir(t)
	t.Setenv("GOMEM_CUDA_PATH", dir)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return dir
}

// only is a folder with some of the emulated libraries; others are files that are none.
func only(t *testing.T, dir string, names ...string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range []string{"libcuda.so.1", "libnvrtc.so.13", "libcublas.so.13"} {
		write(t, filepath.Join(to, name), "no library")
	}
	for _, name := range names {
		path := filepath.Join(to, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, name), path); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestDeviceIsChosen: without --device a run is on the GPU that can be used, and says on
// which; else it is on the processor, and says why if a GPU is there. What is wrong with a
// GPU that is asked for is one line.
func TestDeviceIsChosen(t *testing.T) {
	longtest.Skip(t)
	dir := emulated(t)
	inDir(t)
	all := []string{"libcuda.so.1", "libnvrtc.so.13", "libcublas.so.13"}
	for name, c := range map[string]struct {
		libraries []string
		set, to   string
		why       string // it is not on the GPU; "-" says nothing
		refuses   string // --device cuda, if it is something else than why
	}{
		"whole":         {libraries: all},
		"hidden":        {all, "EMU_INIT", "100", "-", "cuInit: CUDA_ERROR_NO_DEVICE (100)"},
		"old driver":    {all, "EMU_VERSION", "11080", "has CUDA 11.8, want 12.0 or newer", ""},
		"broken driver": {all[1:], "", "", "no CUDA driver: ", ""},
		"no compiler":   {[]string{all[0], all[2]}, "", "", "no CUDA compiler: ", ""},
		"no products":   {all[:2], "", "", "no cuBLAS: ", ""},
		"full": {libraries: all, set: "EMU_MEM", to: "1048576", refuses: "emulated has 1.0 MiB " +
			"of 1.0 MiB free, and 32.0 MiB are needed: end what else uses it, lower " +
			"--device-memory, or use --device cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEM_CUDA_PATH", only(t, dir, c.libraries...))
			if c.set != "" {
				t.Setenv(c.set, c.to)
			}
			if choice := gomem.Choose(); c.why != "" && choice.Why == nil && c.why != "-" {
				t.Skip("this machine has the libraries elsewhere")
			}
			step := with(tinyMoE, "--steps", "1")
			o := invoke(t, step...)
			const warning = "gomem: warning: on cpu, for the GPU cannot be used: "
			on := strings.HasPrefix(o.stdout, "on             cuda: emulated of 512MiB")
			warned := strings.HasPrefix(o.stderr, warning)
			switch {
			case c.why == "" && c.refuses == "" && (!on || o.stderr != "" || o.status != exitOK),
				c.why == "-" && (on || o.stderr != "" || o.status != exitOK),
				len(c.why) > 1 && (on || !warned || !strings.Contains(o.stderr, c.why)):
				t.Errorf("%+v", o)
			}
			if c.why+c.refuses == "" {
				o = invoke(t, with(step, "--device", "cpu")...)
				if o.stderr != "" || o.status != exitOK || strings.HasPrefix(o.stdout, "on ") {
					t.Errorf("on the processor: %+v", o)
				}
				return
			}
			o = invoke(t, with(step, "--device", "cuda")...)
			if want := c.refuses + strings.TrimPrefix(c.why, "-"); o.status != exitFailure ||
				!strings.Contains(o.stderr, want) || strings.Count(o.stderr, "\n") != 1 {
				t.Errorf("--device cuda: %+v, want %q", o, want)
			}
		})
	}
}

// TestWorkersShareGPUs: --device cuda is a worker's own GPU, by its number on its machine; what
// else a worker is told, or a run of one, stays, and nothing is the processor.
func TestWorkersShareGPUs(t *testing.T) {
	emulated(t)
	t.Setenv("EMU_COUNT", "2")
	for _, c := range []struct {
		device string
		world  World
		want   string
	}{
		{"cuda", World{Rank: 7, Size: 8, Local: 3}, "cuda:1"},
		{"cuda", World{Rank: 7, Size: 8, Local: 2}, "cuda"},
		{"cuda:0", World{Rank: 7, Size: 8, Local: 3}, "cuda:0"},
		{"cuda", World{Size: 1, Local: 1}, "cuda"},
		{"", World{Rank: 1, Size: 2, Local: 1}, "cpu"},
	} {
		var train trainCmd
		train.Device = c.device
		if train.settle(nil, c.world, ""); train.Device != c.want {
			t.Errorf("%s of %+v is %s, want %s", c.device, c.world, train.Device, c.want)
		}
	}
}

// TestGPUIsWeighed: in a budget that vanilla does not fit, plans are weighed by what the GPU was
// measured to take, and predicted and actual peaks are the same bytes.
func TestGPUIsWeighed(t *testing.T) {
	longtest.Skip(t)
	emulated(t)
	inDir(t)
	text := succeed(t, with(tiny, "--steps", "1", "--json", "--device-memory", "33200KiB")...)
	if !strings.Contains(text, `"prices":"local GPU"`) {
		t.Errorf("plans are weighed otherwise: %s", text)
	}
	_, summary := trainLines(t, text)
	peak, actual := summary["predicted_device_peak_bytes"], summary["actual_device_peak_bytes"]
	if peak != actual || peak.(float64) > 33200<<10 {
		t.Errorf("peaks: %v predicted, %v actual", peak, actual)
	}
}

// TestGPUFails: an error of the GPU in mid-step ends the run with one line that says how to
// go on; what was saved before is whole, and goes on to the same weights on the GPU, with
// other bits on the processor.
func TestGPUFails(t *testing.T) {
	longtest.Skip(t)
	emulated(t)
	inDir(t)
	run := func(args ...string) outcome { return invoke(t, with(tinyMoE, args...)...) }
	whole := run("--steps", "4", "--save", "whole", "--json")
	if whole.status != exitOK {
		t.Fatalf("%+v", whole)
	}
	t.Setenv("EMU_FAIL", "2500")
	o := run("--steps", "4", "--save", "run", "--save-every", "1")
	t.Setenv("EMU_FAIL", "")
	saved, err := train.Inspect("run")
	if err != nil || saved.Step < 1 || saved.Step > 3 {
		t.Fatalf("%+v, %v", saved, err)
	}
	if o.status != exitFailure || strings.Count(o.stderr, "\n") != 1 ||
		!strings.Contains(o.stderr, "CUDA_ERROR_LAUNCH_FAILED") ||
		!strings.Contains(o.stderr, "continue with: gomem train") {
		t.Errorf("%+v", o)
	}
	o = run("--steps", "4", "--resume", "run", "--save", "other", "--device", "cpu")
	const made = `made on "cuda emulated, cuBLAS 13.0.0, cuDNN 9.1.0,`
	if o.status != exitOK || !strings.Contains(o.stderr, made) {
		t.Errorf("on the processor: %+v", o)
	}
	o = run("--steps", "4", "--resume", "run", "--no-cuda-graphs", "--json")
	_, want := trainLines(t, whole.stdout)
	_, got := trainLines(t, o.stdout)
	if o.status != exitOK || o.stderr != "" || got["weights_sha256"] != want["weights_sha256"] {
		t.Errorf("weights %v, want %v: %+v", got["weights_sha256"], want["weights_sha256"], o)
	}
	if o = run("--steps", "5", "--resume", "other"); o.status != exitOK || o.stderr != "" ||
		strings.HasPrefix(o.stdout, "on ") {
		t.Errorf("a run on the processor goes on elsewhere: %+v", o)
	}
}
