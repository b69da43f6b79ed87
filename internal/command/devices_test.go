package command

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/planner/machine"
)

func TestDevices(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var list, again, renewed []deviceInfo
	decode(t, succeed(t, "devices", "--json"), &list)
	if len(list) <= len(gomem.Devices()) || list[0].Threads < 1 || list[0].Measured == nil ||
		list[1].Profile != nil {
		t.Errorf("devices %+v", list)
	}
	text := succeed(t, "devices")
	last := list[len(gomem.Devices()):]
	if d := last[0]; d.Name != gomem.CUDA || (d.GPU == nil) == (d.Why == "") {
		t.Errorf("%+v", d)
	}
	for i, d := range list[:len(gomem.Devices())] {
		if d.Name != gomem.Devices()[i] || !strings.Contains(text, d.Name+" ") ||
			!strings.Contains(text, d.Description) {
			t.Errorf("no %s in\n%s", d.Name, text)
		}
		if d.Profile != nil && (d.Profile.Check() != nil || d.Kappa <= 0) {
			t.Errorf("%s: %+v, κ %v", d.Name, d.Profile, d.Kappa)
		}
	}
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("%q is wider than 80 columns", line)
		}
	}
	if _, err := os.Stat(list[0].Kept); err != nil {
		t.Error(err)
	}
	for tries := 0; list[0].Busy; tries++ {
		if tries == 20 {
			t.Fatalf("the machine is never known well enough: %+v", list[0])
		}
		list = nil // or what is absent keeps its value
		decode(t, succeed(t, "devices", "--json"), &list)
	}
	decode(t, succeed(t, "devices", "--json"), &again)
	if !again[0].Measured.Equal(*list[0].Measured) {
		t.Errorf("measured again, %s after %s", again[0].Measured, list[0].Measured)
	}
	time.Sleep(time.Until(list[0].Measured.Add(time.Second)))
	decode(t, succeed(t, "devices", "--json", "--calibrate"), &renewed)
	if !renewed[0].Measured.After(*list[0].Measured) {
		t.Errorf("not measured again: %s", renewed[0].Measured)
	}
}

// TestDeviceProfile: what --profile prints is a device of its own.
func TestDeviceProfile(t *testing.T) {
	inDir(t)
	for _, name := range []string{"cpu", "titanx-thesis", "sim:gh200"} {
		text := succeed(t, "devices", "--profile", name)
		if _, err := machine.Parse([]byte(text)); err != nil {
			t.Fatal(err)
		}
		write(t, "mine.json", text)
		if p, err := gomem.Simulated("sim:mine.json"); err != nil || p.Check() != nil {
			t.Errorf("%+v, %v", p, err)
		}
	}
	for _, bad := range []string{"null", "abacus", ""} {
		if o := invoke(t, "devices", "--profile="+bad); o.status != exitUsage && bad != "" {
			t.Errorf("--profile %q: status %d, %q", bad, o.status, o.stderr)
		}
	}
}

// TestTrainSimulated: training on a simulated device tells the speed that it would
// have, which is the same in every run.
func TestTrainSimulated(t *testing.T) {
	inDir(t)
	run := func() string {
		return succeed(t, append(tiny, "--steps", "2", "--device", "sim:titanx")...)
	}
	text := run()
	if !strings.Contains(text, "nothing computed") || !strings.Contains(text, "tokens/s") {
		t.Errorf("a simulated run says\n%s", text)
	}
	speed := func(text string) string {
		_, rest, _ := strings.Cut(text, "nothing computed")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	if a, b := speed(text), speed(run()); a != b {
		t.Errorf("a step is %q in one run and %q in another", a, b)
	}
	if o := invoke(t, append(tiny, "--steps", "2", "--device", "sim:titanx", "--save",
		"run")...); o.status != exitUsage || !strings.Contains(o.stderr, "neither save") {
		t.Errorf("status %d: %s", o.status, o.stderr)
	}
}
