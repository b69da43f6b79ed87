//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package regular

import (
	"errors"
	"os"
	"syscall"
)

// Held is a directory that is held.
type Held struct{ dir *os.File }

// Hold keeps a directory from everybody else who would hold it, in this process or another of this
// machine, until it is released. If somebody holds it already, that is [ErrHeld]. Nothing is
// written, and the kernel releases what a killed process held. Where there are no such locks, on
// some systems and some file systems, everybody has what they ask for.
func Hold(dir string) (*Held, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if errors.Is(syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		_ = d.Close() // it was only locked
		return nil, ErrHeld
	}
	return &Held{d}, nil
}

// Release lets others have the directory.
func (h *Held) Release() { _ = h.dir.Close() } // nothing was written
