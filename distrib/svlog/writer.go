package svlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gomem/gomem/internal/regular"
)

// disk is where segments are.
type disk interface {
	Create(path string) (file, error)
	Remove(path string) error
	SyncDir(dir string) error
}

// file is a segment that is written.
type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// osDisk is the operating system's.
type osDisk struct{ regular.OS }

// Create makes a segment.
func (osDisk) Create(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

// writer is the one goroutine that writes.
type writer struct {
	dir     string
	disk    disk
	keep    int
	numbers []int // of the segments that there are, ascending

	file    file // of the last of them; nil: the next record must begin one
	at      int64
	synced  int64
	marked  bool // what is synced has a clock that can be restored
	buf     []byte
	written int64 // read under the log's lock, and written so
}

// write is the writer's goroutine: it takes what was told, and has it on the disk, until the
// log is closed.
func (l *Log) write() {
	defer close(l.done)
	for {
		items, closing := l.take()
		n, err := l.w.commit(items)
		if closing {
			err = errors.Join(err, l.w.close())
		}
		l.wrote(items, n, err)
		if closing {
			l.held.Release()
			return
		}
	}
}

// take waits for what is to be written.
func (l *Log) take() (items []*item, closing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.kick && !l.closing {
		l.changed.Wait()
	}
	items, l.items, l.kick = l.items, nil, false
	return items, l.closing
}

// wrote notes what has become of some records. When they could not be written, whatever
// follows is of no use before a base: what was told meanwhile is forgotten up to one.
func (l *Log) wrote(items []*item, n int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, it := range items {
		l.staged -= it.size()
	}
	l.w.written += n
	switch {
	case err != nil:
		l.forget()
		if l.err == nil {
			l.o.Warn(fmt.Sprintf("the log of updates in %s cannot be written, and lacks what "+
				"follows up to its next base: %v", l.w.dir, err))
		}
		l.err = err
	case len(items) > 0 && l.err != nil:
		l.o.Warn("the log of updates in " + l.w.dir + " is written again")
		l.err = nil
	}
	l.changed.Broadcast()
}

// forget drops what was told up to the next base.
func (l *Log) forget() {
	for len(l.items) > 0 && !l.items[0].fresh {
		l.staged -= l.items[0].size()
		l.items = l.items[1:]
	}
	l.gap = len(l.items) == 0
}

// commit writes records and has them on the disk, and then removes segments that are too
// many. It returns how many bytes those are.
func (w *writer) commit(items []*item) (n int64, err error) {
	before := w.at
	for _, it := range items {
		if it.fresh {
			done := w.at - before
			if err = w.begin(); err != nil {
				return n, err
			}
			n, before = n+done, 0
		}
		if err = w.put(it); err != nil {
			return n, w.fail(err)
		}
	}
	if w.file == nil {
		return n, nil
	}
	if err = w.sync(); err != nil {
		return n, w.fail(err)
	}
	return n + w.at - before, w.prune(items)
}

// enough is how many bytes are encoded before they are written.
const enough = 1 << 20

// put encodes a record, and writes when there is enough.
func (w *writer) put(it *item) error {
	if w.file == nil {
		return nil // of a segment that could not be written
	}
	from := len(w.buf)
	var err error
	if w.buf, err = it.append(w.buf, w.synced); err != nil {
		return err
	}
	w.at += int64(len(w.buf) - from)
	if len(w.buf) < enough {
		return nil
	}
	return w.flush()
}

func (w *writer) flush() error {
	_, err := w.file.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// sync has all that was put on the disk.
func (w *writer) sync() error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	w.synced = w.at
	return nil
}

// begin ends a segment, which is on the disk as a whole then, and makes the next.
func (w *writer) begin() error {
	if w.file != nil {
		if err := w.sync(); err != nil {
			return w.fail(err)
		}
		if err := w.close(); err != nil {
			return err
		}
	}
	number := 1
	if k := len(w.numbers); k > 0 {
		number = w.numbers[k-1] + 1
	}
	f, err := w.disk.Create(w.path(number))
	if err != nil {
		return err
	}
	w.file, w.at, w.synced, w.marked = f, 0, 0, false
	w.numbers = append(w.numbers, number)
	if err := w.disk.SyncDir(w.dir); err != nil {
		return w.fail(err)
	}
	return nil
}

func (w *writer) path(number int) string { return filepath.Join(w.dir, nameOf(number)) }

// close closes the segment.
func (w *writer) close() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file, w.buf = nil, w.buf[:0]
	return err
}

// fail gives a segment up after an error: it keeps what is on the disk of it, and is removed if
// that is not a clock.
func (w *writer) fail(err error) error {
	k := len(w.numbers) - 1
	tail := w.file.Truncate(w.synced)
	err = errors.Join(err, tail, w.close())
	if w.marked && tail == nil {
		return err
	}
	if failed := w.disk.Remove(w.path(w.numbers[k])); failed != nil {
		return errors.Join(err, failed)
	}
	w.numbers = w.numbers[:k]
	return err
}

// prune removes the oldest segments, once the newest has a clock on the disk.
func (w *writer) prune(items []*item) error {
	for _, it := range items {
		if it.fresh {
			w.marked = false
		}
		w.marked = w.marked || it.kind == kindMark
	}
	for w.marked && len(w.numbers) > w.keep {
		if err := regular.IgnoreMissing(w.disk.Remove(w.path(w.numbers[0]))); err != nil {
			return err
		}
		w.numbers = w.numbers[1:]
	}
	return nil
}
