package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gomem/gomem/data"
)

// maxLine bounds a line to translate, in bytes.
const maxLine = 1 << 16

// lineReader reads the lines of files, one after the other.
type lineReader struct {
	inputs []string // still to be opened
	stdin  io.Reader
	most   int // bytes of a line

	name string
	file *os.File // that is open, if it is a file
	in   *bufio.Reader
	line int
}

// newLineReader reads files, or standard input if there are none.
func newLineReader(inputs []string, stdin io.Reader, most int) *lineReader {
	if len(inputs) == 0 {
		inputs = []string{stdinName}
	}
	return &lineReader{inputs: inputs, stdin: stdin, most: most}
}

// next gives up to so many lines: those that are there without waiting for somebody to
// write them, and at least one, unless all have been read.
func (r *lineReader) next(most int) (some []question[string]) {
	for len(some) < most && (len(some) == 0 || r.ready()) {
		q, ok := r.one()
		if !ok {
			break
		}
		some = append(some, q)
	}
	return some
}

// ready reports whether the next line can be read without waiting.
func (r *lineReader) ready() bool {
	if r.in != nil && r.name != stdinName {
		if _, err := r.in.Peek(1); err != io.EOF {
			return true
		}
		r.close()
	}
	if r.in == nil {
		return len(r.inputs) == 0 || r.inputs[0] != stdinName
	}
	there, _ := r.in.Peek(r.in.Buffered())
	return bytes.IndexByte(there, '\n') >= 0
}

// one is the next line. A file that cannot be read is a question with an error.
func (r *lineReader) one() (question[string], bool) {
	for {
		if r.in == nil {
			if len(r.inputs) == 0 {
				return question[string]{}, false
			}
			if err := r.open(); err != nil {
				return question[string]{Input: r.name, Err: err}, true
			}
		}
		text, err := r.read()
		switch {
		case err == io.EOF:
			r.close()
			continue
		case err != nil && !errors.Is(err, errLine):
			q := question[string]{Input: r.name, Line: r.line, Err: data.Remedied(err)}
			r.close()
			return q, true
		}
		return question[string]{Input: r.name, Line: r.line, Value: text, Err: err}, true
	}
}

// open opens the next file.
func (r *lineReader) open() error {
	r.name, r.inputs, r.line = r.inputs[0], r.inputs[1:], 0
	if r.name == stdinName {
		r.in = bufio.NewReaderSize(r.stdin, r.most)
		return nil
	}
	f, _, err := data.OpenFile(r.name)
	if err != nil {
		return err
	}
	r.file, r.in = f, bufio.NewReaderSize(f, r.most)
	return nil
}

// close closes the file that is open, if one is.
func (r *lineReader) close() {
	if r.file != nil {
		_ = r.file.Close() // it was only read
	}
	r.file, r.in = nil, nil
}

// errLine is wrapped by the errors of a line after which the next can be read.
var errLine = errors.New("it is left out")

// read is a line, without its end.
func (r *lineReader) read() (string, error) {
	r.line++
	text, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.in.ReadSlice('\n')
		}
		return "", fmt.Errorf("line of more than %d bytes: %w", r.most, errLine)
	}
	if err != nil && (err != io.EOF || len(text) == 0) {
		return "", err
	}
	line := string(text)
	if r.line == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	if err := data.CheckUTF8(line); err != nil {
		return "", fmt.Errorf("%w: %w", err, errLine)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// onLine is a text on one line, which has nothing that moves a terminal's cursor.
func onLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
