//go:build linux && amd64 && !nocuda

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/profile"
)

// printed is what a phase prints.
func printed(t *testing.T, args ...string) (string, error) {
	t.Helper()
	for _, name := range []string{"EMU_DIR", "GOMEM_CUDA_PATH", "XDG_CACHE_HOME"} {
		t.Setenv(name, os.Getenv(name)) // put back afterwards
	}
	var w strings.Builder
	err := run(context.Background(), args, &w)
	return w.String(), err
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"want one of":       {},
		"want one of name":  {"speed"},
		"positive number":   {"-seconds", "0", "links"},
		"want one of name,": {"links", "models"},
		"not defined: -x":   {"-x"},
	} {
		if _, err := printed(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

// TestNoGPU: without a driver every phase is refused in one line.
func TestNoGPU(t *testing.T) {
	if _, err := cuda.GPUs(nil); err == nil {
		t.Skip("there is a GPU")
	}
	for phase := range phases {
		text, err := printed(t, phase)
		if err == nil || strings.Contains(err.Error(), "\n") || text != "" {
			t.Errorf("%s: %v, after %q", phase, err, text)
		}
	}
}

// TestEmulated: on an emulated GPU there are tables, which say what they are, and what there
// was no time for.
func TestEmulated(t *testing.T) {
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("g++ not found: the emulated GPU is built with it")
	}
	if name, err := printed(t, "-emulate", "name"); err != nil || name != "emulator\n" {
		t.Errorf("the folder is %q, %v", name, err)
	}
	for phase, rows := range map[string][]string{"links": {"4 KiB", "64 KiB"},
		"products": {"16", "32"}} {
		text, err := printed(t, "-emulate", phase)
		if err != nil || !strings.Contains(text, "these are no measurements") {
			t.Errorf("%s: %v, %s", phase, err, text)
		}
		for _, row := range rows {
			if !strings.Contains(text, "\n| "+row+" | ") {
				t.Errorf("%s: no row of %s in %s", phase, row, text)
			}
		}
		text, err = printed(t, "-emulate", "-seconds", "1e-9", phase)
		want := "\nNot measured, for want of time: " + strings.Join(rows, "; ") + ".\n"
		if err != nil || !strings.HasSuffix(text, want) {
			t.Errorf("%s without time: %v, %s", phase, err, text)
		}
	}
	for phase, want := range map[string]string{"models": "moe in f32 under none by gomem; ",
		"precisions": "transformer in bf16 under 33408 KiB by gomem, one by one."} {
		text, err := printed(t, "-emulate", "-seconds", "1e-9", phase)
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%s without time: %v, %s", phase, err, text)
		}
	}
}

// TestGoesOn: what an earlier run has measured is not measured again, whether it ended or not; and
// what brought two down is left out.
func TestGoesOn(t *testing.T) {
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("g++ not found: the emulated GPU is built with it")
	}
	rows := filepath.Join(t.TempDir(), "rows")
	first := `{"row":"4 KiB"}
{"row":"4 KiB","ended":true,"cells":[["1","2","3"]]}
`
	begun := `{"row":"64 KiB"}` + "\n"
	journal := func(text string) {
		if err := os.WriteFile(rows, []byte(first+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	journal(begun + `{"row":"64 KiB","cut":true}` + "\n" + begun + `{"row":"64`)
	var texts []string
	for _, seconds := range []string{"600", "1e-9"} {
		text, err := printed(t, "-emulate", "-seconds", seconds, "-rows", rows, "links")
		if err != nil || !strings.Contains(text, "\n| 4 KiB | 1 | 2 | 3 |\n| 64 KiB | ") ||
			strings.Contains(text, "Not measured") {
			t.Errorf("within %s s: %v, %s", seconds, err, text)
		}
		texts = append(texts, text)
	}
	if texts[0] != texts[1] {
		t.Errorf("%s\nis not %s", texts[1], texts[0])
	}
	journal(strings.Repeat(begun, attempts))
	text, err := printed(t, "-emulate", "-rows", rows, "links")
	if err == nil || !strings.Contains(text, "| failed: it brought the process down | – |") ||
		!strings.HasSuffix(text, "\nFailed: 64 KiB brought the process down.\n") {
		t.Errorf("%v, %s", err, text)
	}
}

// TestHidden: of copies that could be hidden by half, and were by a quarter, half was hidden.
func TestHidden(t *testing.T) {
	times := func(hidden, hideable float64) profile.Copies {
		return profile.Copies{Measured: &profile.Times{MS: 8, HiddenMS: hidden,
			HideableMS: hideable}}
	}
	for _, c := range []struct {
		copies []profile.Copies
		want   float64
	}{
		{nil, 0},
		{[]profile.Copies{times(0, 0)}, 0},
		{[]profile.Copies{times(2, 4), times(0, 0)}, 0.5},
		{[]profile.Copies{times(1, 2), times(2, 6)}, 0.375},
	} {
		if got := hidden(c.copies); got != c.want {
			t.Errorf("%v of them is hidden, want %v", got, c.want)
		}
	}
}

// TestSides: what PyTorch has against want of memory is measured where memory is wanting, and
// in single precision.
func TestSides(t *testing.T) {
	b, limited := &bench{}, limits{device: 1 << 30}
	for _, c := range []struct {
		limit limits
		in    precision.Precision
		want  int
	}{{limits{}, precision.F32, 7}, {limited, precision.F32, 7}, {limits{}, precision.BF16, 3},
		{limited, precision.TF32, 6}} {
		if got := b.sides(c.limit, c.in); len(got) != c.want || got[0] != own[0] ||
			!slices.Contains(got, "compile") {
			t.Errorf("under %v in %s: %q", c.limit, c.in, got)
		}
	}
}

// TestFolder: a GPU's name is a folder's.
func TestFolder(t *testing.T) {
	for name, want := range map[string]string{"NVIDIA H200": "nvidia-h200",
		"Tesla V100-SXM2-16GB": "tesla-v100-sxm2-16gb",
		" GeForce (RTX) 4090 ": "geforce-rtx-4090"} {
		b := &bench{gpu: cuda.Info{Name: name}}
		if got := b.folder(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
