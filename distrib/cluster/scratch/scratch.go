// Package scratch makes temporary directories for as long as a process lives. What one that was
// killed has left behind, the next one that makes such a directory removes: it has a file in it
// whose lock the kernel gives back with its process.
package scratch

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Dir is a temporary directory that this process alone may enter, and others of its user.
type Dir struct {
	Path string
	lock *os.File // held until Remove; nil where there are no locks
}

// lockName is a file of a directory that is locked as long as somebody uses the directory. It has
// this name only since it was locked, and says on which machine.
const lockName = ".lock"

// Make makes a directory below parent, "" for the system's temporary directory, whose name
// begins with prefix. Directories there by that prefix of processes of the same user and machine
// that are gone are removed; what is not known to be such a one stays.
func Make(parent, prefix string) (*Dir, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	left, _ := filepath.Glob(filepath.Join(quoted(parent), quoted(prefix)+"*"))
	for _, path := range left {
		sweep(path)
	}
	path, err := os.MkdirTemp(parent, prefix) // mode 0700
	if err != nil {
		return nil, err
	}
	d := &Dir{Path: path}
	if d.lock, err = hold(path); err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return d, nil
}

// Remove removes the directory with all that is in it.
func (d *Dir) Remove() error {
	err := os.RemoveAll(d.Path)
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
		d.lock = nil
	}
	return err
}

// quoted is a path as a pattern that matches nothing else.
func quoted(path string) string {
	var out []byte
	for i := range len(path) {
		special := strings.IndexByte(`*?[\`, path[i]) >= 0
		if special && filepath.Separator == '/' { // elsewhere a pattern has no quotes
			out = append(out, '\\')
		}
		out = append(out, path[i])
	}
	return string(out)
}

// owner is what a lock's file says.
func owner() string {
	host, _ := os.Hostname()
	return host + "\n"
}

// maxOwner is the most bytes of that.
const maxOwner = 1 << 10

// ours reports whether a lock's file is of this machine: the locks of another one, with which this
// one may share a file system, need not be seen here.
func ours(lock io.Reader) bool {
	text, err := io.ReadAll(io.LimitReader(lock, maxOwner))
	return err == nil && string(text) == owner()
}
