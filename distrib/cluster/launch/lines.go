package launch

import (
	"bytes"
	"io"
)

// maxLine is the most bytes that are kept for the end of a line.
const maxLine = 64 << 10

// lines writes whole lines with a prefix, so that processes do not write into each
// other's.
type lines struct {
	all    *outputs
	to     io.Writer
	prefix string
	rest   []byte // of a line that has not ended
}

func (l *lines) Write(b []byte) (int, error) {
	n := len(b)
	for {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			break
		}
		if err := l.emit(b[:end+1]); err != nil {
			return 0, err
		}
		b = b[end+1:]
	}
	for len(l.rest)+len(b) >= maxLine {
		cut := maxLine - len(l.rest)
		if err := l.emit(append(bytes.Clone(b[:cut]), '\n')); err != nil {
			return 0, err
		}
		b = b[cut:]
	}
	l.rest = append(l.rest, b...)
	return n, nil
}

// emit writes a line whose start may have come before.
func (l *lines) emit(end []byte) error {
	line := append(append([]byte(l.prefix), l.rest...), end...)
	l.rest = l.rest[:0]
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	_, err := l.to.Write(line)
	return err
}
