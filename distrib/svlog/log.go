package svlog

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/regular"
)

// Options of a [Log]. The zero value of each is the plain choice.
type Options struct {
	Rule  distrib.Rule // folds updates in; nil: they are added
	Group int64        // bytes that are written at once at the latest; 0: 64 MiB
	Keep  int          // bases that are kept, each with what followed it; 0: one
	Warn  func(string) // takes a line about what could not be written; nil: nobody does
}

// defaultGroup is how many bytes wait for the disk before a clock has ended.
const defaultGroup = 64 << 20

// Log writes what becomes of a replica to a directory: a [distrib.Journal].
type Log struct {
	o    Options
	held *regular.Held
	done chan struct{} // closed when the writer has ended

	mu      sync.Mutex
	changed sync.Cond
	items   []*item // told and not taken by the writer
	kick    bool    // the writer is to take them
	closing bool
	gap     bool // nothing can be written before a base
	head    head // of every segment

	staged int64 // bytes told that are not on the disk
	peak   int64 // the most that was
	base   int64 // bytes of the newest base
	since  int64 // told after it
	ended  int64 // of since, when the last clock ended
	widest int64 // the most bytes of a clock since then
	err    error // what the last write failed with

	w writer // the writer's own
}

// Open begins or goes on with a log in a directory, which nobody else may write to meanwhile.
// What was being written when it last ended is cut off. The next record is a base.
func Open(dir string, o Options) (*Log, error) { return open(dir, o, osDisk{}) }

func open(dir string, o Options, d disk) (*Log, error) {
	o.Group, o.Keep = cmp.Or(o.Group, defaultGroup), max(o.Keep, 1)
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	held, err := regular.Hold(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	numbers, err := trim(dir)
	if err != nil {
		held.Release()
		return nil, err
	}
	l := &Log{o: o, held: held, done: make(chan struct{}), gap: true,
		head: head{Version: version}}
	l.changed.L = &l.mu
	l.w = writer{dir: dir, disk: d, numbers: numbers, keep: o.Keep}
	go l.write()
	return l, nil
}

// trim cuts the torn tail of a log's last segment off, and returns the segments that are left.
func trim(dir string) ([]int, error) {
	numbers, err := segmentsOf(dir)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	last := len(numbers) - 1
	s, closing, err := reading(dir, numbers, last)
	if err != nil {
		return nil, err
	}
	end, err := s.each(func(int64, record) error { return nil })
	switch err = errors.Join(err, closing()); {
	case err != nil || end == s.size:
		return numbers, err
	case end == 0:
		return numbers[:last], os.Remove(s.path)
	}
	return numbers, cut(s.path, end)
}

// cut makes a file shorter for good.
func cut(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

// Describe says what the log is of, before the first base: whatever its owner has to say, and
// the names of what [Log.State] sets.
func (l *Log) Describe(meta []byte, states ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head = head{Version: version, States: states, Meta: meta}
}

// Base begins a segment with the values of all parameters, which are copied.
func (l *Log) Base(at distrib.Clock, ps []*distrib.Param) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head.Params = nil
	for _, p := range ps {
		l.head.Params = append(l.head.Params, shape{p.Name, p.Rows, p.Cols})
	}
	items := base(at, &l.head, ps, l.o.Rule)
	l.gap, l.base, l.ended, l.widest = false, 0, 0, 0
	for _, it := range items {
		l.base += it.size()
	}
	l.stage(items...)
	l.since = 0
}

// Applied notes an update that has been folded in. It keeps the update and never changes it:
// nor does anybody else, so that it need not be copied.
func (l *Log) Applied(from distrib.NodeID, at distrib.Clock, ref distrib.Ref, u distrib.Update) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stage(update(from, at, ref, u))
}

// Read notes that a worker takes rows as they are.
func (l *Log) Read(at distrib.Clock, ref distrib.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stage(&item{record: record{kind: kindRead, clock: int64(at), body: appendRef(nil, ref)}})
}

// State sets the i-th of Options.States, what is kept beside the replica.
func (l *Log) State(i int, data []byte) {
	items := state(i, data)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stage(items...)
}

// Mark says that a clock has been reached, with whatever there is to say of it: what was read
// last and what states were set to last is what [Restore] gives of it.
func (l *Log) Mark(at int64, says []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stage(&item{record: record{kind: kindMark, clock: at, body: says}})
	l.kick = true
	l.changed.Broadcast()
}

// stage hands records to the writer, or forgets them, if nothing can be written.
func (l *Log) stage(items ...*item) {
	for _, it := range items {
		n := it.size()
		l.since += n
		if !l.gap && !l.closing {
			l.items, l.staged = append(l.items, it), l.staged+n
		}
	}
	l.peak = max(l.peak, l.staged)
	if l.staged >= l.o.Group && !l.kick {
		l.kick = true
		l.changed.Broadcast()
	}
}

// Due reports whether what followed the newest base would be more than it after another clock.
// It is asked once a clock.
func (l *Log) Due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.widest = max(l.widest, l.since-l.ended)
	l.ended = l.since
	return l.since > 0 && l.since+l.widest > l.base
}

// Room waits while more is told than is written, by more than a group and a base.
func (l *Log) Room() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.staged > l.o.Group+l.base {
		l.kick = true
		l.changed.Broadcast()
		l.changed.Wait()
	}
}

// Stats is what a log has done so far.
type Stats struct {
	Written int64 // bytes, on the disk for good
	Peak    int64 // bytes that waited for that, at most
}

// Stats counts.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{l.w.written, l.peak}
}

// Close writes what is left, and says in the log that nothing follows. The error is that of
// what could not be written last.
func (l *Log) Close() error {
	l.mu.Lock()
	if !l.closing {
		l.stage(&item{record: record{kind: kindEnd}})
		l.closing = true
		l.changed.Broadcast()
	}
	l.mu.Unlock()
	<-l.done
	return l.err
}

// Exists reports whether a directory has a log in it.
func Exists(dir string) bool {
	numbers, err := segmentsOf(dir)
	return err == nil && len(numbers) > 0
}
