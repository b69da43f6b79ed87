package launch

import "io"

// Lines is one process' output alone.
func Lines(w io.Writer, prefix string) io.Writer {
	return &lines{all: &outputs{}, to: w, prefix: prefix}
}
