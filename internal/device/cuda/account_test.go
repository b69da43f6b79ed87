//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// monitored is what NVML says that this process has of a GPU, in bytes.
func monitored(t *testing.T, o cuda.Options) int64 {
	t.Helper()
	lib, err := driver.Load(driver.Options{Dirs: o.Dirs})
	if err != nil {
		t.Fatal(err)
	}
	g, err := lib.Look(o.GPU)
	if err != nil {
		t.Fatal(err)
	}
	m, err := driver.OpenMonitor(g)
	if err != nil {
		t.Fatal(err)
	}
	bytes, known, err := m.Process()
	if err != nil || !known {
		t.Fatal(known, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes
}

// What an emulated GPU takes in bytes: for a context, a module, a handle, first products, for each
// thread of a kernel, and so for all of them; and what a rig's memory and workspace are.
const (
	context, module, handle, first, ofThread = 3000000, 70000, 12345, 54321, 16

	threads  = ofThread * 4 * 2048
	memories = 1<<20 + 1<<16
)

// costly has an emulated GPU take these.
func costly(t *testing.T) {
	t.Helper()
	if os.Getenv("GOMEM_GPU") != "" {
		t.Skip("bytes are the emulated GPU's")
	}
	for name, value := range map[string]int{"CONTEXT": context, "MODULE": module,
		"HANDLE": handle, "FIRST": first, "LOCAL": ofThread} {
		t.Setenv("EMU_"+name, fmt.Sprint(value))
	}
}

// TestMemoryIsAccountedFor: what is measured before there are plans, and what a device says when
// all is ready, is all that the process takes of a GPU's memory once a kernel has run, to the byte:
// context, modules, handles, first products and threads' own memory. So it is where NVML does not
// list the process, does not start or refuses to list any, and nobody else is on the GPU.
func TestMemoryIsAccountedFor(t *testing.T) {
	costly(t)
	// handles are one to ask cuDNN with, and two for each compute stream
	const loaded = context + module + first
	for _, nvml := range []string{"", "hidden", "broken", "closed"} {
		t.Setenv("EMU_NVML", nvml)
		var log bytes.Buffer
		o := options(t, counting)
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		got, err := cuda.Measure(o, 2)
		if want := int64(loaded + 5*handle); err != nil || got != want {
			t.Errorf("NVML %q: %d bytes before plans, want %d: %v", nvml, got, want, err)
		}
		r := newRig(t, o)
		task := r.more(f32(r.near, 0, 1), 1, 1)
		got, err = r.Beside()
		if want := int64(loaded + 3*handle + threads); err != nil || got != want {
			t.Errorf("NVML %q: %d bytes beside plans, want %d: %v", nvml, got, want, err)
		}
		r.compute.Run(task)
		if err := r.compute.Sync(); err != nil {
			t.Fatal(err)
		}
		if nvml == "" {
			if now := monitored(t, o); now != got+memories {
				t.Errorf("NVML says %d, want %d and %d", now, got, memories)
			}
		}
		if said := strings.Contains(log.String(), "the context is assumed"); said != (nvml != "") {
			t.Errorf("NVML %q: %s", nvml, &log)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEachGPUHasItsAccount: of two GPUs of a process, what one has taken is in its own account and
// not in the other's.
func TestEachGPUHasItsAccount(t *testing.T) {
	costly(t)
	t.Setenv("EMU_COUNT", "2")
	var rigs []*rig
	o := options(t, counting)
	for o.GPU = range 2 {
		got, err := cuda.Measure(o, 1)
		if want := int64(context + module + first + 3*handle); err != nil || got != want {
			t.Errorf("GPU %d: %d bytes before plans, want %d: %v", o.GPU, got, want, err)
		}
		rigs = append(rigs, newRig(t, o))
	}
	for gpu, r := range rigs {
		o.GPU = gpu
		task := r.more(f32(r.near, 0, 1), 1, 1)
		got, err := r.Beside()
		r.compute.Run(task)
		if err = errors.Join(err, r.compute.Sync()); err != nil {
			t.Fatal(err)
		}
		want := int64(context + module + first + 3*handle + threads)
		if now := monitored(t, o); got != want || now != got+memories {
			t.Errorf("GPU %d: %d bytes beside plans, want %d, and NVML says %d", gpu, got, want,
				now)
		}
	}
}
