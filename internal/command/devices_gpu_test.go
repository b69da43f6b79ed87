//go:build linux && amd64 && !nocuda

package command

import (
	"strings"
	"testing"
)

// TestGPUsAreListed: a GPU with what drives it, or why there is none, in lines of 80 columns.
func TestGPUsAreListed(t *testing.T) {
	emulated(t)
	t.Setenv("EMU_COUNT", "2")
	for _, c := range []struct{ init, want string }{
		{"0", "cuda at 0000:3B:00.0: compute capability 9.0, 4 multiprocessors, 2 copy " +
			"engines, 512"},
		{"0", "cuda:1 at 0000:3C:00.0: compute capability 9.0"},
		{"0", "cuBLAS 13.0.0 at "},
		{"0", " each way at once, measured on 2"},
		{"100", "cuda cannot be used: cuInit: CUDA_ERROR_NO_DEVICE (100)"},
	} {
		t.Setenv("EMU_INIT", c.init)
		text := succeed(t, "devices")
		if !strings.Contains(strings.Join(strings.Fields(text), " "), c.want) {
			t.Errorf("no %q in\n%s", c.want, text)
		}
	}
}
