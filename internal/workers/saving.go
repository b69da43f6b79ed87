package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/snapshot"
	"github.com/gomem/gomem/distrib/workload"
)

// Saving is when and where those who own rows of a task's tables keep them, at the same clock and
// without waiting for each other.
type Saving struct {
	Dir    *snapshot.Dir
	Every  int // epochs; the last one is always saved
	Epochs int // that there are, at most
	Clocks int // an epoch
	Tables []*distrib.Param
	// Grown are the tables after so many epochs, if they have more rows from one to the next; nil:
	// they have not.
	Grown func(epoch int) []*distrib.Param
	Seen  func() error // does this worker see the directory that the first one has made?
}

// Snapshot is what a task goes on from.
type Snapshot struct {
	Mark   snapshot.Mark
	State  workload.State
	shards []*distrib.Shard // with what rules keep beside rows
}

// String names it; a nil one is the beginning.
func (s *Snapshot) String() string {
	if s == nil {
		return " from the beginning"
	}
	return fmt.Sprintf(" from snapshot %v", s.Mark)
}

// ReadSnapshot reads the newest snapshot of a directory into a task's parameters, which are those
// after so many epochs.
func ReadSnapshot(dir *snapshot.Dir, after func(epoch int) []*distrib.Param) (*Snapshot, error) {
	mark, shards, err := dir.Newest()
	if err != nil {
		return nil, err
	}
	params := after(int(mark.Epoch))
	if _, err := distrib.Restore(workload.Tables(params), shards); err != nil {
		return nil, fmt.Errorf("%v: snapshot %v: %w", dir, mark, err)
	}
	return &Snapshot{mark, workload.StateOf(params, int(mark.Epoch)), shards}, nil
}

// synchronizer is that of a group that has heard of each other, where between epochs all tick so
// often more, to have seen everything.
func (l *learner) synchronizer(settling int) (distrib.Synchronizer, error) {
	if s := l.Saving; s != nil {
		if err := s.Seen(); err != nil {
			return nil, err
		}
		if l.Rank() == 0 { // nobody saves before this worker's first clock
			if err := s.Dir.Return(int64(l.have.Epoch)); err != nil {
				return nil, err
			}
		}
	}
	return l.Synchronizer(l.saves(settling))
}

// saves has an engine save what it is to.
func (l *learner) saves(settling int) func(*distrib.Config) {
	return func(c *distrib.Config) {
		if l.restored != nil {
			c.Restored = l.restored.shards
		}
		s := l.Saving
		if s == nil {
			return
		}
		began, rows := l.have.Epoch, rowsOf(s.Tables)
		// That ends with a clock. After the last one there are clocks in which nothing is learnt.
		epoch := func(k distrib.Clock) (int, bool) {
			n, more := int(k)-s.Clocks, s.Clocks+settling
			e := began + n/more + 1
			return e, n >= 0 && n%more == 0 && e <= s.Epochs
		}
		c.Saves = func(k distrib.Clock) bool {
			e, ends := epoch(k)
			return ends && s.due(e)
		}
		c.Save = func(shard *distrib.Shard) error {
			e, _ := epoch(shard.Clock)
			shard.Rows = s.learnt(shard.Rows)
			return s.Dir.Save(snapshot.Mark{Epoch: int64(e), View: shard.Epoch}, rows, shard)
		}
	}
}

// keep saves the rows that a scheduled task has on this worker after an epoch, if that is due.
func (l *learner) keep(epoch int, last bool, rows func() ([]distrib.SavedRows, error)) error {
	s, v := l.Saving, l.at().view
	if !last && !s.due(epoch) {
		return nil
	}
	if last {
		l.ended = epoch
	}
	own, err := rows()
	if err != nil {
		return err
	}
	tables := s.Tables
	if s.Grown != nil {
		tables = s.Grown(epoch)
	}
	return s.Dir.Save(snapshot.Mark{Epoch: int64(epoch), View: v.Epoch}, rowsOf(tables),
		&distrib.Shard{Epoch: v.Epoch, Node: v.Self, Clock: distrib.Clock(epoch), Rows: own})
}

// due reports whether an epoch is to be saved.
func (s *Saving) due(epoch int) bool { return epoch%s.Every == 0 || epoch == s.Epochs }

// rowsOf is how many rows tables have together.
func rowsOf(tables []*distrib.Param) (n int) {
	for _, p := range tables {
		n += p.Rows
	}
	return n
}

// learnt are those rows that are of tables which are kept.
func (s *Saving) learnt(rows []distrib.SavedRows) (kept []distrib.SavedRows) {
	for _, r := range rows {
		for _, p := range s.Tables {
			if p.Name == r.Param {
				kept = append(kept, r)
			}
		}
	}
	return kept
}

// saved waits until all have saved what they own of the last epoch.
func (l *learner) saved(ctx context.Context) error {
	if l.Saving == nil {
		return nil
	}
	var unsaved error
	if e := l.at().engine; e != nil {
		unsaved = e.Close() // waits for what is being saved
	}
	if _, err := l.agree(ctx, nil); err != nil || unsaved != nil {
		return errors.Join(unsaved, err)
	}
	last := cmp.Or(l.ended, l.Saving.Epochs) // what is good enough ends before
	if m, ok := l.Saving.Dir.Latest(); !ok || int(m.Epoch) != last {
		return fmt.Errorf("%v: not all rows of epoch %d could be saved there", l.Saving.Dir, last)
	}
	return nil
}
