//go:build linux && amd64 && !nocuda

package driver_test

import (
	"os"
	"testing"

	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// TestMonitor: NVML says what this process has of a GPU, whoever else is there, and why it says
// nothing.
func TestMonitor(t *testing.T) {
	if os.Getenv("GOMEM_GPU") != "" {
		t.Skip("a real GPU's NVML may list no processes")
	}
	t.Setenv("EMU_CONTEXT", "1000000")
	g := open(t)
	m, err := driver.OpenMonitor(g.GPU)
	if err != nil {
		t.Fatal(err)
	}
	before, known, err := m.Process()
	if err != nil || !known || before < 1000000 {
		t.Fatalf("a context has %d bytes (%v): %v", before, known, err)
	}
	const bytes = 64 << 20
	addr, err := g.Alloc(bytes)
	if err != nil {
		t.Fatal(err)
	}
	if now, known, err := m.Process(); err != nil || !known || now != before+bytes {
		t.Errorf("with %d more it has %d (%v): %v", bytes, now, known, err)
	}
	if err := g.Release(addr); err != nil {
		t.Error(err)
	}
	t.Setenv("EMU_NVML", "hidden")
	if _, known, err := m.Process(); err != nil || known {
		t.Errorf("a process that is not listed is known: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	t.Setenv("EMU_NVML", "broken")
	const want = "nvmlInit_v2: Driver Not Loaded (9)"
	if _, err := driver.OpenMonitor(g.GPU); err == nil || err.Error() != want {
		t.Errorf("a library that does not start: %v", err)
	}
}
