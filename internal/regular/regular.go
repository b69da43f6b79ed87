// Package regular opens regular files and nothing else, and replaces them at once.
// Opening a named pipe waits for somebody at its other end, and opening a device may do
// anything, so what the user names is looked at first.
package regular

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is wrapped by the errors about a path that is no regular file.
var ErrNotRegular = errors.New("not a regular file")

// Open opens the regular file at path for reading; a symbolic link to one will
// do. It never waits. Errors are *[fs.PathError]s, which wrap [ErrNotRegular] if
// there is something else at path.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	// What is there may have been replaced since: nonblocking, the opening of a
	// pipe does not wait either.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err = f.Stat()
	if err == nil {
		err = check(path, info)
	}
	if err != nil {
		return nil, cmp.Or(err, f.Close())
	}
	return f, nil
}

// Bare is the cause of an error about a file, without the path, which whoever reports it
// says in a better way.
func Bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// ReadFile is the content of the regular file at path. Its errors are Open's,
// and those of reading.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	if info, err := f.Stat(); err == nil {
		b.Grow(int(info.Size()) + bytes.MinRead)
	}
	_, err = b.ReadFrom(f)
	return b.Bytes(), err
}

// check refuses what is no regular file.
func check(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: path,
		Err: fmt.Errorf("%s, %w", kind(info.Mode()), ErrNotRegular)}
}

// kind says what is there instead.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something special"
}
