package cluster

import (
	"bytes"
	"io"
)

// mostSaid is how many lines are remembered.
const mostSaid = 64

// once writes lines, one a call, but none that another process has written lately: what all
// processes find out, each for itself, is said once. An object of the log says itself whose it is:
// it is written as it is, for who reads objects.
type once struct {
	w    io.Writer
	said []saying // the newest last
}

// saying is a line without its prefix, and that prefix.
type saying struct{ text, by string }

// Write writes a line, or forgets it.
func (o *once) Write(line []byte) (int, error) {
	s := saying{text: string(line)}
	if by, text, of := bytes.Cut(line, []byte("] ")); of && line[0] == '[' {
		if bytes.HasPrefix(text, []byte("{")) {
			_, err := o.w.Write(text)
			return len(line), err
		}
		s = saying{string(text), string(by)}
	}
	for _, before := range o.said {
		if before.text == s.text && before.by != s.by {
			return len(line), nil
		}
	}
	o.said = append(o.said, s)
	o.said = o.said[max(0, len(o.said)-mostSaid):]
	return o.w.Write(line)
}
