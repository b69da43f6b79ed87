package command

import (
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
