//go:build unix

package command

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestDiffReads: what has no end is refused, a file without lines as one of lines that are too
// long, and what is read is read until a signal.
func TestDiffReads(t *testing.T) {
	inDir(t)
	succeed(t, "plan", "--size", "s512", "--dump", "a.plan")
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, "zeros", "plan x\n")
	if err := os.Truncate("zeros", 1<<30); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		"pipe":      "pipe: a pipe, not a regular file",
		"/dev/zero": "/dev/zero: a device, not a regular file",
		"zeros":     "zeros: plan line 2: it is longer than 16 MiB",
	} {
		for _, args := range [][]string{{"diff", "a.plan", path}, {"diff", path, "a.plan"}} {
			if o := invoke(t, args...); o.status != exitUsage || !strings.Contains(o.stderr, says) {
				t.Errorf("%v: %+v", args, o)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	status := Main(ctx, []string{"diff", "a.plan", "a.plan"}, &stdout, &stderr, Extras{})
	if status != exitSignal(ctx) || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("after a signal: %d, %s", status, &stderr)
	}
}
