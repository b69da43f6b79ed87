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

// patience is how long work may be silent.
const patience = 2 * time.Second

// reading reports on the reading of files, when it takes long.
func reading(w io.Writer, spec string) func(files int) {
	last := time.Now()
	return func(files int) {
		if time.Since(last) > patience {
			last = time.Now()
			fmt.Fprintf(w, "gomem: reading %s: %s\n", spec, counted(files, "file"))
		}
	}
}

// packing reports how many of a checkpoint's weights are read, and packed where they were not, when
// that takes long, about ten times at the most.
func packing(w io.Writer, path string) func(done, all int64) {
	var last time.Time
	var said int64
	return func(done, all int64) {
		if last.IsZero() {
			last = time.Now()
		}
		if time.Since(last) > patience && done-said >= all/10 {
			last, said = time.Now(), done
			fmt.Fprintf(w, "gomem: loading %s: %d%% of its weights\n", path, 100*done/all)
		}
	}
}

// notice prints a line if done is not called soon.
func notice(w io.Writer, line string) (done func()) {
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ended:
		case <-time.After(patience):
			fmt.Fprintln(w, line)
		}
	}()
	return func() { close(ended); <-stopped }
}
