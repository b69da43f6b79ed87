package data

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/gomem/gomem/internal/regular"
)

// Error says which input is bad, where, why, and what to do about it. Its
// message is one line.
type Error struct {
	Spec string // the spec given to Open
	Path string // the file or directory, if the trouble is with one
	Line int    // the line of Path from 1, or 0
	Err  error  // the cause, with its remedy

	// Misspelt: the spec itself names no data, so that nothing was looked for.
	Misspelt bool
}

// Error gives spec, path and line, then the cause.
func (e *Error) Error() string {
	where := printable(e.Spec)
	if e.Path != "" && !strings.HasSuffix(e.Spec, ":"+e.Path) {
		where += ": " + printable(e.Path)
	}
	if e.Line > 0 {
		where += ":" + strconv.Itoa(e.Line)
	}
	return strings.TrimSuffix("data "+where, " ") + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// printable quotes s if it would break the line or the terminal.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}

// Remedied strips the path from a file system error, as Error carries it, and
// adds what to do, once.
func Remedied(err error) error {
	if _, done := errors.AsType[*remedied](err); done {
		return err
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &remedied{err, "check the path"}
	case errors.Is(err, fs.ErrPermission):
		return &remedied{err, "make it readable or choose another"}
	case errors.Is(err, regular.ErrNotRegular):
		return &remedied{err, "give a file"}
	}
	return err
}

// remedied is an error of the file system with what to do about it.
type remedied struct {
	err    error
	remedy string
}

// Error gives the cause, then the remedy.
func (e *remedied) Error() string { return e.err.Error() + ": " + e.remedy }

// Unwrap is the cause.
func (e *remedied) Unwrap() error { return e.err }
