package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// TestSignalledIsCancelled: work that says why it was ended is cancelled work.
func TestSignalledIsCancelled(t *testing.T) {
	err := fmt.Errorf("reading: %w", signalled{syscall.SIGTERM})
	if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is not the end of a context", err)
	}
}

// TestWhatIsCutShortSaysWhatIsLost: a run that would have kept something says that it did not;
// what keeps nothing by its nature has nothing to say of it.
func TestWhatIsCutShortSaysWhatIsLost(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	said := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		if status := Main(ended, args, &stdout, &stderr, Extras{}); status != 130 {
			t.Errorf("%v: status %d", args, status)
		}
		return notices.ReplaceAllString(stderr.String(), "")
	}
	for _, command := range []string{"plan", "fit"} {
		text := said(command, "--size", "s512", "--policy", "thesis")
		if text != "gomem: interrupted\n" {
			t.Errorf("%s: %q", command, text)
		}
	}
	inDir(t)
	if text := said(tiny...); text != "gomem: interrupted; nothing was saved\n" {
		t.Errorf("train: %q", text)
	}
}
