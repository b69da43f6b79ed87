//go:build linux && amd64 && !nocuda

package command

import (
	"os"
	"strings"
	"testing"
)

// TestReserveIsShown: train says what a GPU takes itself of the budget, and keeps what it is told
// to; a budget with too little beside that is refused, and so is a run for which too little is
// kept, both with what would do.
func TestReserveIsShown(t *testing.T) {
	if os.Getenv("GOMEM_GPU") != "" {
		t.Skip("bytes are the emulated GPU's")
	}
	emulated(t)
	inDir(t)
	t.Setenv("EMU_CONTEXT", "50000000")
	run := with(tiny, "--device", "cuda", "--policy", "thesis", "--steps", "1")
	text := succeed(t, run...)
	if !strings.Contains(text, "64MiB of it for the GPU's context, kernels and libraries\n") {
		t.Errorf("what is reserved is not said: %s", text)
	}
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--device-memory", "98400KiB"}, "96MiB of both beside the plan; "},
		{[]string{"--device-memory", "33200KiB", "--device-reserve", "1KiB"},
			"with --device-reserve 48MiB they leave enough"},
		{[]string{"--device-memory", "64MiB"}, "and the GPU's context, kernels and libraries " +
			"67108864: want more than both"},
		{[]string{"--device", "cpu", "--device-reserve", "1MiB"}, "device cpu are reserved"},
	} {
		o := invoke(t, with(run, c.flags...)...)
		if o.status == exitOK || !strings.Contains(o.stderr, c.want) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%q: %+v, want %q", c.flags, o, c.want)
		}
	}
	p := succeed(t, "plan", "--size", "s512", "--device", "sim:h100", "--device-reserve", "640MiB",
		"--device-memory", "1GiB")
	if !strings.Contains(p, "640MiB of it for the GPU's") {
		t.Errorf("what is kept of a simulated GPU is not said: %s", p)
	}
}
