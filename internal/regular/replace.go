package regular

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Disk is what writing needs of a file system. Tests put failures in it.
type Disk interface {
	MkdirAll(dir string) error
	Create(path string) (File, error) // empty, whether it existed or not
	Rename(from, to string) error     // replaces to
	Remove(path string) error
	SyncDir(dir string) error // makes renames in it last
}

// File is a file being written.
type File interface {
	io.WriteCloser
	io.WriterAt
	Sync() error
}

// Replace makes the file dir/name in one step, by way of its [Temporary]: nobody ever sees a
// part of it, and it is on the disk before Replace returns. After an error nothing is
// left of it, and what was there before is there still.
func Replace(d Disk, dir, name string, content func(File) error) error {
	temp := filepath.Join(dir, Temporary(name))
	err := Create(d, temp, content)
	if err == nil {
		err = d.Rename(temp, filepath.Join(dir, name))
	}
	if err != nil {
		return cmp.Or(err, IgnoreMissing(d.Remove(temp)))
	}
	return d.SyncDir(dir)
}

// Temporary is the name under which this process writes a file that is to replace one. A crash
// leaves it behind.
func Temporary(name string) string { return fmt.Sprintf(".%s.%d.tmp", name, os.Getpid()) }

// Replaced is the name of the file that a temporary one was to replace, whichever process wrote it;
// ok is false of other files.
func Replaced(temporary string) (name string, ok bool) {
	rest, ok := strings.CutSuffix(temporary, ".tmp")
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot < 2 || rest[0] != '.' {
		return "", false
	}
	if _, err := strconv.Atoi(rest[dot+1:]); err != nil {
		return "", false
	}
	return rest[1:dot], true
}

// Tidy removes what processes that were killed left of replacing a file. Nobody else may be
// replacing it.
func Tidy(d Disk, dir, name string) error {
	files, err := os.ReadDir(dir)
	err = IgnoreMissing(err)
	for _, f := range files {
		if of, ok := Replaced(f.Name()); ok && of == name {
			err = cmp.Or(err, IgnoreMissing(d.Remove(filepath.Join(dir, f.Name()))))
		}
	}
	return err
}

// Create writes a file down to the disk.
func Create(d Disk, path string, content func(File) error) error {
	f, err := d.Create(path)
	if err != nil {
		return err
	}
	err = content(f)
	if err == nil {
		err = f.Sync()
	}
	return cmp.Or(err, f.Close())
}

// IgnoreMissing is err, or nil if it says that a file does not exist.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// OS is the operating system's file system.
type OS struct{}

// MkdirAll makes a directory and those that it is in.
func (OS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o777) }

// Rename gives a file another name, of which it replaces the file.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove removes a file.
func (OS) Remove(path string) error { return os.Remove(path) }

// Create makes an empty file. It removes what is there first: if that is a pipe,
// opening it would wait.
func (OS) Create(path string) (File, error) {
	if err := IgnoreMissing(os.Remove(path)); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
}

// SyncDir makes renames in a directory last, where the file system can.
func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil // some file systems cannot, and have nothing to sync
	}
	return cmp.Or(err, d.Close())
}
