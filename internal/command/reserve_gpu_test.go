//go:build linux && amd64 && !nocuda

package command

import (
	"os"
	"strings"
	"testing"
)

// TestReserveIsShown: train says what a GPU takes itself of the budget, and keeps what it is told
// to; a budget with too little beside that is refused, and so is a run of any command for which too
// little is kept, both with what would do.
func TestReserveIsShown(t *testing.T) {
	if os.Getenv("GOMEM_GPU") != "" {
		t.Skip("bytes are the emulated GPU's")
	}
	emulated(t)
	inDir(t)
	t.Setenv("EMU_CONTEXT", "50000000")
	run := with(tiny, "--device", "cuda", "--policy", "thesis", "--steps", "1")
	text := succeed(t, with(run, "--save", "run")...)
	if !strings.Contains(text, "64MiB of it for the GPU's context, kernels and libraries\n") {
		t.Errorf("what is reserved is not said: %s", text)
	}
	short := []string{"--device", "cuda", "--policy", "thesis", "--device-memory", "33200KiB",
		"--device-reserve", "1KiB"}
	const enough = "with --device-reserve 48MiB they leave enough"
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{with(run, "--device-memory", "98400KiB"), "96MiB of both beside the plan; "},
		{with(tiny, short...), enough},
		{with([]string{"eval", "--from", "run", "--data", "tsv:pairs.tsv"}, short...), enough},
		{with([]string{"predict", "--from", "run", "tsv:pairs.tsv"}, short...), enough},
		{with(run, "--device-memory", "64MiB"), "--device-memory 64MiB: the GPU's context, " +
			"kernels and libraries take 64MiB, and matrix products 32MiB: want more than 96MiB"},
		{with(run, "--device", "cpu", "--device-reserve", "1MiB"), "--device-reserve 1MiB: it is " +
			"of a GPU's memory, and --device cpu is none"},
		{with(run, "--device", "cpu,cpu", "--device-reserve", "1MiB"), "--device cpu is none"},
	} {
		o := invoke(t, c.flags...)
		if o.status == exitOK || !strings.Contains(o.stderr, c.want) ||
			strings.Contains(o.stderr, "Options") {
			t.Errorf("%q: %+v, want %q", c.flags, o, c.want)
		}
	}
	p := succeed(t, "plan", "--size", "s512", "--device", "sim:h100", "--device-reserve", "640MiB",
		"--device-memory", "1GiB")
	if !strings.Contains(p, "640MiB of it for the GPU's") {
		t.Errorf("what is kept of a simulated GPU is not said: %s", p)
	}
}
