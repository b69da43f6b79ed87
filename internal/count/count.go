// Package count counts what is written.
package count

import (
	"bufio"
	"io"
)

// Writer collects what it is given in a buffer, and counts the bytes that the
// writer below has taken.
type Writer struct {
	*bufio.Writer
	below *counted
}

// NewWriter is a writer to w. It must be ended by [Writer.Done].
func NewWriter(w io.Writer) Writer {
	c := &counted{w: w}
	return Writer{bufio.NewWriter(c), c}
}

// Done writes what is left in the buffer, and returns what io.WriterTo wants:
// the bytes written, and the first error there was.
func (w Writer) Done() (int64, error) {
	err := w.Flush()
	return w.below.n, err
}

type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
