//go:build linux && amd64 && !nocuda

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/device/cuda/emu"
)

// TestLocalGPUs: workers of one machine have a GPU each, which does not change what they learn:
// two on one have the same weights.
func TestLocalGPUs(t *testing.T) {
	if testing.Short() || os.Getenv("GOMEM_GPU") != "" {
		t.Skip("processes on two emulated GPUs, for which kernels are compiled")
	}
	emulator := emu.Dir(t)
	t.Setenv("GOMEM_CUDA_PATH", emulator)
	t.Setenv("EMU_COUNT", "2")
	compiled := filepath.Join(emulator, "cache", "gomem", "cuda")
	if err := os.MkdirAll(compiled, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(device string) *job {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "gomem"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(compiled, filepath.Join(dir, "gomem", "cuda")); err != nil {
			t.Fatal(err)
		}
		return start(t, dir, "--local", "2", "--device", device, "--steps", "1", "--json")
	}
	if one, two := run("cuda:0").weights(t), run("cuda").weights(t); one != two {
		t.Errorf("weights are %s of one GPU, %s of two", one, two)
	}
	t.Setenv("EMU_MEM", "536870912,1048576")
	j := run("cuda")
	if status := j.end(); status == 0 || !strings.Contains(j.stderr.String(), "emulated 1 has") {
		t.Errorf("with a second GPU that is too small: status %d, %s", status, &j.stderr)
	}
}
