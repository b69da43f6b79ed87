package command

import (
	"cmp"
	"os"
	"path/filepath"
)

// asked is a file that a flag asks for, or none if there is no path.
type asked struct{ flag, path string }

// outputs are all files that a command writes.
type outputs []asked

// ready refuses what could only be refused, or be lost, after all the work: files that cannot be
// written, and two outputs to one file, of which the second would replace the first.
func (o outputs) ready() error {
	at := map[string]asked{}
	for _, x := range o {
		place := placeOf(x.path)
		if place == "" {
			continue
		}
		if y, taken := at[place]; taken {
			return usagef("%s %s and %s %s are one file: give each its own", y.flag, y.path, x.flag,
				x.path)
		}
		at[place] = x
	}
	for _, x := range o {
		if err := creatable(x.path); err != nil {
			return err
		}
	}
	return nil
}

// placeOf names a file in one way, however its path is spelt. It is empty where nothing is
// replaced: a device or a pipe takes one output after the other.
func placeOf(path string) string {
	if info, err := os.Stat(path); path == "" || err == nil && !info.Mode().IsRegular() {
		return ""
	}
	// A link to a file is replaced itself, links to directories are followed; before .. means
	// anything, since it is of what a link leads to.
	dir, name := filepath.Split(path)
	if there, err := filepath.EvalSymlinks(cmp.Or(dir, ".")); err == nil {
		dir = there
	}
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	return filepath.Join(dir, name)
}
