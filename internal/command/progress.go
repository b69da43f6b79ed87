package command

import (
	"fmt"
	"io"
	"time"
)

// progress says what is done while something with many parts takes long.
type progress struct {
	w    io.Writer
	last time.Time // when something was said, or could have been
}

func newProgress(w io.Writer) *progress { return &progress{w, time.Now()} }

// during prints a line if nothing has been said for long, or else once a part takes
// long.
func (p *progress) during(line string) (done func()) {
	if time.Since(p.last) <= patience {
		return notice(p.w, line)
	}
	p.last = time.Now()
	fmt.Fprintln(p.w, line)
	return func() {}
}
