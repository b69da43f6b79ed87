package train

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gomem/gomem/internal/regular"
)

// Fence keeps a worker whose place others have taken from what they save.
type Fence interface {
	// Term is of which job, by a random id, and in which of its epochs the present group is.
	Term() (job string, epoch int64)
	// Saved asks who keeps count of the workers whether this one is among them, and tells of a
	// checkpoint after a step that it is about to make the latest, if path is not "". Nobody takes
	// the worker's place before the time that is returned. It is zero if the worker is out; then
	// next is the epoch of those who go on without it, 0 if nobody does. An error says that this
	// cannot be asked.
	Saved(ctx context.Context, step int, path string) (until time.Time, next int64, err error)
}

// ErrReplaced is of a worker that others go on without: it saves nothing.
type ErrReplaced struct {
	Worker int
	Epoch  int64 // theirs
	Step   int   // whose state is not saved
}

// Error is one line.
func (e *ErrReplaced) Error() string {
	return fmt.Sprintf("worker %d was replaced in epoch %d: its state of step %d is not saved",
		e.Worker, e.Epoch, e.Step)
}

// guard is before a directory that several workers may save to, one at a time: nothing in it is
// replaced or removed by one that others go on without. Between the last look and what follows is
// no more than a call of the system.
type guard struct {
	disk
	of    *Parallel // whose worker this is; it has a fence
	dir   string
	step  int       // whose state is to be saved
	until time.Time // nobody takes this worker's place before
	alone bool      // it is out, and nobody goes on as far as can be found out
}

// Rename replaces a file: latest only once it has been told of, and all others know of it.
func (g *guard) Rename(from, to string) error {
	told := ""
	if filepath.Base(to) == latestName {
		told = filepath.Join(filepath.Dir(to), fileName(g.step))
	}
	if err := g.pass(told, told != ""); err != nil {
		return err
	}
	return g.disk.Rename(from, to)
}

// Remove removes a file; what this process was about to put there is its own.
func (g *guard) Remove(path string) error {
	if of, ok := regular.Replaced(filepath.Base(path)); !ok ||
		filepath.Base(path) != regular.Temporary(of) {
		if err := g.pass("", false); err != nil {
			return err
		}
		if g.alone {
			return nil // somebody may be about to go on after all
		}
	}
	return g.disk.Remove(path)
}

// pass returns when this worker may change what others may have, or an *[ErrReplaced]. It asks if
// it has to, or is to anyway.
func (g *guard) pass(told string, ask bool) error {
	for {
		if !g.alone && (ask || !time.Now().Before(g.until)) {
			if err := g.ask(told); err != nil {
				return err
			}
		}
		if err := g.superseded(); err != nil {
			return err
		}
		if g.alone || time.Now().Before(g.until) {
			return nil
		}
		ask = true
	}
}

// ask asks for how long nobody takes this worker's place. Where that cannot be asked, since a
// control plane is gone that all workers had, what is on disk decides.
func (g *guard) ask(told string) error {
	until, next, err := g.of.Fence.Saved(context.Background(), g.step, told)
	if next > 0 {
		return g.replaced(next)
	}
	g.until, g.alone = until, err != nil || until.IsZero()
	return nil
}

// replaced is the error of a worker without which others go on in an epoch.
func (g *guard) replaced(epoch int64) error {
	return &ErrReplaced{g.of.number(g.of.Rank), epoch, g.step}
}

// superseded is an error if the latest checkpoint is of this job, and of a later epoch than this
// worker's.
func (g *guard) superseded() error {
	path, err := find(g.dir)
	if err != nil {
		return nil // there is none
	}
	latest, err := Inspect(path)
	job, epoch := g.of.Fence.Term()
	if err != nil || latest.Job != job || latest.Epoch <= epoch {
		return nil
	}
	return g.replaced(latest.Epoch)
}

// fence keeps a worker from saving; nil: nobody does.
func (p *Parallel) fence() Fence {
	if p == nil {
		return nil
	}
	return p.Fence
}
