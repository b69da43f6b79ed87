//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/device/cuda/driver"
	"github.com/gomem/gomem/internal/device/cuda/emu"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
)

// TestRealCompiler: the kernels are CUDA C++ to NVIDIA's own compiler, too, wherever that is: it
// needs no GPU, so the driver beside it is the emulator's.
func TestRealCompiler(t *testing.T) {
	emulator, alone := emu.Dir(t), t.TempDir()
	const name = "libcuda.so.1"
	if err := os.Symlink(filepath.Join(emulator, name), filepath.Join(alone, name)); err != nil {
		t.Fatal(err)
	}
	d, err := driver.Load(driver.Options{Dirs: []string{alone}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := d.Look(0)
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := g.Compiler()
	if err != nil {
		t.Skip(err)
	}
	if emulator != "" && strings.HasPrefix(compiler.Path, emulator) || testing.Short() {
		t.Skip("only for NVRTC itself, in tests that are not short")
	}
	cubin, err := compiler.Compile(kernels.Source(), "kernels")
	if err != nil {
		t.Fatal(err)
	}
	entry := regexp.MustCompile(
		`(?m)^extern "C" __global__ void (?:__launch_bounds__\(\d+\) )?(\w+)`)
	all := entry.FindAllStringSubmatch(kernels.Source(), -1)
	if len(all) < 50 {
		t.Errorf("%d kernels", len(all))
	}
	for _, m := range all {
		if !bytes.Contains(cubin, []byte("\x00.text."+m[1]+"\x00")) {
			t.Errorf("no kernel %s in what was compiled", m[1])
		}
	}
}
