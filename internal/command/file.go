package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// location is a path, or a spec with one, that a flag takes. An empty one is no
// path: most likely the variable of a shell that is not set.
type location string

// UnmarshalText refuses an empty path.
func (l *location) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("it is empty: give a path, or leave the flag out")
	}
	*l = location(text)
	return nil
}

// outFile is a file being written: under a name of its own until commit, so
// that no reader ever sees half of it. A path that is not a regular file, such
// as a device or a pipe, is written directly.
type outFile struct {
	*os.File
	path string
}

// createFile starts a file.
func createFile(path string) (*outFile, error) {
	partial := path + ".partial"
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		partial = path
	} else if info, err := os.Lstat(partial); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %s is in the way: move it away", path, partial)
	}
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, bare(err))
	}
	return &outFile{f, path}, nil
}

// creatable tries to create a file, if there is a path and no pipe or device is there.
func creatable(path string) error {
	if info, err := os.Stat(path); path == "" || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	out, err := createFile(path)
	if err == nil {
		out.abandon()
	}
	return err
}

// commit completes the file, or abandons it if it could not be written, for the
// reason given or one of its own.
func (f *outFile) commit(err error) error {
	if cause := f.Close(); err == nil {
		err = cause
	}
	if err == nil && f.Name() != f.path {
		err = os.Rename(f.Name(), f.path)
	}
	if err == nil {
		return nil
	}
	f.discard()
	return fmt.Errorf("%s: %w", f.path, bare(err))
}

// abandon closes and removes the file unless it is complete.
func (f *outFile) abandon() {
	if f.Close() == nil {
		f.discard()
	}
}

func (f *outFile) discard() {
	if f.Name() != f.path {
		os.Remove(f.Name())
	}
}

// writeFile writes a whole file or nothing.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := createFile(path)
	if err != nil {
		return err
	}
	return f.commit(write(f))
}

// bare is a file system error without the operation and the path, which
// messages name themselves.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}

// writable makes a directory if need be and tries to write in it.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return takesFiles(dir)
}

// takesFiles reports why no file can be made in a directory.
func takesFiles(dir string) error {
	f, err := os.CreateTemp(dir, ".gomem-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	return f.Close()
}
