package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomem/gomem/internal/regular"
)

// place is a directory that a run saves to, which no other run does as long as this one has it.
type place struct {
	dir  string
	top  string // of dir and what it is in, the nearest that was there before
	held *regular.Held
}

// occupy has a run be the only one that saves to a directory, which is made. An error is an
// *[ErrCheckpoint].
func occupy(dir string) (*place, error) {
	p := &place{dir: filepath.Clean(dir)}
	var err error
	if p.top, err = existing(p.dir); err == nil {
		err = os.MkdirAll(p.dir, 0o777)
	}
	if err == nil {
		p.held, err = regular.Hold(p.dir)
	}
	switch {
	case errors.Is(err, regular.ErrHeld):
		err = fmt.Errorf("%w: wait until that run has ended, or save to another one", err)
	case err != nil:
		err = fmt.Errorf("cannot save there: %w", bare(err))
	default:
		return p, nil
	}
	return nil, &ErrCheckpoint{Path: dir, Err: err}
}

// leave lets others have the directory. If nothing was saved, nothing is left of it.
func (p *place) leave() {
	if p == nil {
		return
	}
	for dir := p.dir; dir != p.top && os.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
	p.held.Release()
}
