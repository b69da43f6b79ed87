//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/device/cuda/emu"
)

// TestBroken: a GPU that has failed is refused when it is opened again in the same process. That
// process is another than the tests', which would all be refused.
func TestBroken(t *testing.T) {
	const child = "GOMEM_TEST_BROKEN"
	if os.Getenv(child) == "" {
		emu.Dir(t)
		cmd := exec.Command(os.Args[0], "-test.run", "^TestBroken$")
		cmd.Env = append(os.Environ(), child+"=1", "EMU_STICKY=1", "EMU_FAIL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	r, _ := replaying(t, nil)
	r.compute.Run(r.more(f32(r.near, 256, 1), 1, 1))
	if err := r.compute.Sync(); err == nil {
		t.Error("no error")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	_, err := cuda.Open(options(t, source))
	if e, ok := errors.AsType[*cuda.BrokenError](err); !ok || e.GPU == "" ||
		strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "a new process") {
		t.Errorf("opened again: %v", err)
	}
}
