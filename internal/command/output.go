package command

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/gomem/gomem/train"
)

// output is standard output. It remembers that it could not be written, so that
// no command that prints has to look, and then takes no more.
type output struct {
	w      io.Writer
	broken func() // called when nobody reads any longer
	err    error  // the first failure
}

// Write writes p unless an earlier write has failed.
func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.err = fmt.Errorf("standard output: %w", bare(err))
		if o.unread() {
			o.broken()
		}
		return n, o.err
	}
	return n, nil
}

// Width is that of the terminal that the output is, 0 if it is none.
func (o *output) Width() int { return train.TerminalOf(o.w).Width() }

// unread reports whether the reader of a pipe has gone.
func (o *output) unread() bool { return errors.Is(o.err, syscall.EPIPE) }
