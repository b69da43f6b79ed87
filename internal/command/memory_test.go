package command

import (
	"strings"
	"testing"
)

// TestMemoryIsLogged: at --log-level debug a run says who has memory once its plans are made, once
// what they left is returned, and at its end; at info it does not.
func TestMemoryIsLogged(t *testing.T) {
	args := []string{"train", "--size", "s512", "--policy", "vanilla", "--steps", "1",
		"--eval-batches", "1"}
	o := invoke(t, append([]string{"--log-level", "debug"}, args...)...)
	last := 0
	for _, when := range []string{"planned", "returned", "trained"} {
		at := strings.Index(o.stderr[last:], "msg=memory when="+when+" ")
		if at < 0 {
			t.Fatalf("no entry of memory when %s, or in another order:\n%s", when, o.stderr)
		}
		last += at
	}
	if !strings.Contains(o.stderr[last:], " objects_bytes=") {
		t.Errorf("no account of objects:\n%s", o.stderr[last:])
	}
	if o := invoke(t, append([]string{"--log-level", "info"}, args...)...); strings.Contains(
		o.stderr, "msg=memory") {
		t.Errorf("logged at info:\n%s", o.stderr)
	}
}
