package svlog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomem/gomem/distrib"
)

// FuzzRead: whatever is in the files of a log, what comes of reading it is a state or an error of
// the log's, and a log that can be read goes on.
func FuzzRead(f *testing.F) {
	_, b, _ := small(f)
	for _, n := range []int{len(b), len(b) - 5, len(b) / 2, headSize, 0} {
		f.Add(b[:n], []byte(nil))
		f.Add(b, b[:n])
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, nameOf(1)), first)
		if second != nil {
			write(t, filepath.Join(dir, nameOf(2)), second)
		}
		h := history(t, dir)
		for _, at := range clocks(t, dir) {
			_, err := h.Restore(at, nil)
			bad(t, err)
		}
		if _, err := h.Latest(); bad(t, err) && h.damage != nil {
			return
		}
		l, err := Open(dir, Options{Keep: 5})
		if err != nil {
			t.Fatalf("what can be read is not gone on with: %v", err)
		}
		l.Describe(nil, "opt")
		v := begin(9, adds, l, [2]int{3, 3})
		v.clock(1<<40, 1)
		closed(t, l)
		v.moment().same(t, restored(t, dir, 1<<40, adds))
	})
}

// bad reports whether there is an error, which must be one of a log's.
func bad(t *testing.T, err error) bool {
	t.Helper()
	_, damage := errors.AsType[*DamageError](err)
	_, missing := errors.AsType[*MissingError](err)
	if err != nil && !damage && !missing || errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err != nil
}

// TestHuge: a description of more than any memory takes none, whatever follows it.
func TestHuge(t *testing.T) {
	dir, l := t.TempDir(), &writer{disk: osDisk{}, keep: 1}
	l.dir = dir
	h := &head{Version: version, Params: []shape{{"w", 1 << 30, 1 << 30}}}
	items := base(0, h, nil, nil)
	items = append(items, update(0, 0, distrib.Ref{N: 1}, distrib.Sparse{N: 1 << 30}),
		&item{record: record{kind: kindMark}})
	if _, err := l.commit(items); err != nil {
		t.Fatal(err)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	_, err := history(t, dir).Restore(0, nil)
	if _, ok := errors.AsType[*DamageError](err); !ok {
		t.Error(err)
	}
}
