package command

import (
	"strings"
	"testing"
)

// TestBusy: the parts of a step are no longer than the step, and a step is no longer
// than its parts one after the other.
func TestBusy(t *testing.T) {
	for _, policy := range []string{"vanilla", "thesis"} {
		args := []string{"plan", "--size", "s512", "--policy", policy}
		var x explanation
		decode(t, patiently(t, append(args, "--json")...), &x)
		b := x.Busy
		sum := b.Operations + b.In + b.Out + b.Elsewhere
		if b.Machine == "" || b.Operations <= 0 || policy == "thesis" && b.In*b.Out <= 0 ||
			b.Step > 1.01*sum || max(b.Operations, b.In, b.Out) > 1.001*b.Step {
			t.Errorf("%s: %+v", policy, b)
		}
		if text := patiently(t, args...); !strings.Contains(text, "the device computes for") {
			t.Errorf("no times in\n%s", text)
		}
	}
	text := patiently(t, "plan", "--size", "s512", "--policy", "thesis", "--streams", "2",
		"--device", "sim:titanx")
	if !strings.Contains(strings.Join(strings.Fields(text), " "), "on 2 streams together;") ||
		strings.Contains(text, "floor of a step") {
		t.Errorf("two streams take one's time:\n%s", text)
	}
}
