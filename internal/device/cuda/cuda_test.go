//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/device/cuda/emu"
	"github.com/gomem/gomem/internal/device/devicetest"
	"github.com/gomem/gomem/plan/space"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options are those of an emulated device.
func options(t testing.TB, source string) cuda.Options {
	o := cuda.Options{Source: source, Threads: 1, Workspace: 1 << 16, Poison: true}
	if dir := emu.Dir(t); dir != "" {
		o.Dirs, o.Cache = []string{dir}, filepath.Join(dir, "cache")
	}
	return o
}

func open(t testing.TB, o cuda.Options) *cuda.Device {
	t.Helper()
	d, err := cuda.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestDevice: what all devices must do, the GPU does too, whatever pauses streams make and in
// whatever order threads run, with graphs and without.
func TestDevice(t *testing.T) {
	for _, c := range []struct{ name, order, jitter string }{
		{"plain", "0", "0"}, {"jitter", "1", "50"}, {"scattered", "2", "0"},
		{"one by one", "0", "50"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("EMU_ORDER", c.order)
			t.Setenv("EMU_JITTER_US", c.jitter)
			devicetest.Run(t, func(t *testing.T) device.Device {
				o := options(t, devicetest.Source)
				o.Eager = c.name == "one by one"
				d, err := cuda.Open(o)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}, devicetest.Options{Computes: true, Functions: space.HostCompute})
		})
	}
}
