package train

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gomem/gomem/internal/regular"
)

// CheckSave reports whether a run that resumes a checkpoint, "" for none, could
// save to a directory, which may not exist yet. It does what saving does, on a
// few bytes, and takes it back: room for a checkpoint is all that is left to
// chance. A directory with the checkpoints of another run is refused. Errors
// are *[ErrCheckpoint]s.
func CheckSave(dir, resume string) error {
	if err := rehearse(osDisk{}, dir); err != nil {
		return &ErrCheckpoint{Path: dir, Err: fmt.Errorf("cannot save there: %w", bare(err))}
	}
	l, err := list(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	switch {
	case err != nil:
		err = fmt.Errorf("cannot save there: %w", bare(err))
	case len(l.odd) > 0:
		err = fmt.Errorf("cannot save there: %s in it is not a regular file: move it away",
			l.odd[0])
	case IsPublic(dir):
		err = errors.New("the directory has a public checkpoint: save to another directory")
	case len(l.steps) > 0 && !holds(dir, resume):
		err = errors.New("the directory has checkpoints of another run: resume that one, or " +
			"save to another directory")
	default:
		return nil
	}
	return &ErrCheckpoint{Path: dir, Err: err}
}

// rehearse does to a directory what saving does, with a file of its own, and
// leaves nothing behind.
func rehearse(d disk, dir string) (err error) {
	dir = filepath.Clean(dir)
	top, err := existing(dir)
	if err != nil {
		return err
	}
	defer func() {
		for ; dir != top; dir = filepath.Dir(dir) {
			err = cmp.Or(err, regular.IgnoreMissing(d.Remove(dir)))
		}
	}()
	if err := d.MkdirAll(dir); err != nil {
		return err
	}
	return store{dir: dir, disk: d}.try()
}

// try writes a file, renames it and removes it.
func (s store) try() error {
	first, second := regular.Temporary(latestName), regular.Temporary(fileName(0))
	err := regular.Create(s.disk, filepath.Join(s.dir, first), func(f file) error {
		_, err := io.WriteString(f, "a trial of saving\n")
		return err
	})
	if err == nil {
		err = s.disk.Rename(filepath.Join(s.dir, first), filepath.Join(s.dir, second))
	}
	if err == nil {
		err = s.disk.SyncDir(s.dir)
	}
	return cmp.Or(err, s.remove(first), s.remove(second))
}

// existing is the directory nearest to dir, at it or above, that exists.
func existing(dir string) (string, error) {
	for asked := dir; ; {
		info, err := os.Stat(dir)
		switch {
		case err == nil && !info.IsDir() && dir == asked:
			return "", errors.New("not a directory")
		case err == nil && !info.IsDir():
			return "", fmt.Errorf("%s is not a directory", dir)
		case err == nil:
			return dir, nil
		case !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir:
			return "", err
		}
		if _, missing := os.Lstat(dir); missing == nil {
			return "", fmt.Errorf("%s is a link to a place that does not exist", dir)
		}
		dir = filepath.Dir(dir)
	}
}
