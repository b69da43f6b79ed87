package train

import (
	"cmp"
	"errors"
	"io"
	"os"
	"syscall"
)

// disk is what saving needs of a file system. Tests put failures in it.
type disk interface {
	MkdirAll(dir string) error
	Create(path string) (file, error) // empty, whether it existed or not
	Rename(from, to string) error     // replaces to
	Remove(path string) error
	SyncDir(dir string) error // makes renames in it last
}

// file is a file being written.
type file interface {
	io.WriteCloser
	io.WriterAt
	Sync() error
}

// osDisk is the operating system's.
type osDisk struct{}

func (osDisk) MkdirAll(dir string) error    { return os.MkdirAll(dir, 0o777) }
func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) Remove(path string) error     { return os.Remove(path) }

// Create removes what is there first: if that is a pipe, opening it would wait.
func (osDisk) Create(path string) (file, error) {
	if err := ignoreMissing(os.Remove(path)); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
}

func (osDisk) SyncDir(dir string) error {
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
