package data

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// CheckUTF8 says what is wrong with text that is not UTF-8, or has a byte of zero, which
// text has none of, and with what it could be read. A byte order mark of UTF-8 is right.
func CheckUTF8(text string) error {
	switch {
	case strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff"):
		return errUTF16
	case strings.IndexByte(text, 0) >= 0:
		return errNUL
	case !utf8.ValidString(text):
		return errNotUTF8
	}
	return nil
}

var (
	errUTF16 = errors.New("UTF-16: convert the file, as by iconv -f UTF-16 -t UTF-8")
	errNUL   = errors.New("a byte of zero, so no text, or UTF-16 without a mark: convert the " +
		"file, as by iconv -f UTF-16LE -t UTF-8")
	errNotUTF8 = errors.New("not UTF-8: convert the file, as by iconv -f LATIN1 -t UTF-8")
)

// Unmarked is a text without the byte order mark of UTF-8. That of UTF-16 is an error.
func Unmarked(r io.Reader) (io.Reader, error) {
	const mark = "\ufeff"
	in := bufio.NewReader(r)
	head, _ := in.Peek(len(mark)) // what is wrong with it is wrong later, too
	switch text := string(head); {
	case text == mark:
		_, err := in.Discard(len(mark))
		return in, err
	case errors.Is(CheckUTF8(text), errUTF16):
		return nil, errUTF16
	}
	return in, nil
}

// faultyLine is the line, from 1, of what CheckUTF8 finds wrong with a text; 0 if it is right.
func faultyLine(text string) int {
	line := 0
	for each := range strings.Lines(text) {
		line++
		if CheckUTF8(each) != nil {
			return line
		}
	}
	return 0
}
