package lda

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
)

// shelvedIn is a drawn corpus whose words are in a file of a directory.
func shelvedIn(t *testing.T, dir string, d Drawing) *Corpus {
	t.Helper()
	c, err := Shelved(dir)
	if err == nil {
		err = d.Fill(c, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// empty fails if there is a file in a directory.
func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

// TestShelf: documents in files end as documents in memory do, with the same blocks, whatever
// becomes of the run in between.
func TestShelf(t *testing.T) {
	large := small
	large.Docs = 900 // several writes of the words' file
	for _, o := range []Options{{Topics: 8, Alpha: .1, Beta: .05},
		{Topics: 30, Alpha: .1, Beta: .05, Parts: 3, BlockTokens: 700, Threads: 2},
		{Topics: 8, Alpha: .1, Beta: .05, Parts: 5, BlockTokens: 1}} {
		want := started(t, drawn(t, large), o)
		first := swept(t, want, 2)
		middle := topicsOf(want)
		end := swept(t, want, 2)
		dir := t.TempDir()
		c := shelvedIn(t, dir, large)
		m := started(t, c, o)
		if got := swept(t, m, 2); got != first || !slices.Equal(topicsOf(m), middle) {
			t.Errorf("%+v: files end at %v, memory at %v", o, got, first)
		}
		cut, cancel := context.WithCancel(t.Context())
		cancel()
		if err := m.Sweep(cut); !errors.Is(err, context.Canceled) {
			t.Errorf("a sweep that is stopped ends with %v", err)
		}
		if err := m.Resume(2, middle); err != nil {
			t.Fatal(err)
		}
		if got := swept(t, m, 2); got != end || !slices.Equal(topicsOf(m), topicsOf(want)) {
			t.Errorf("%+v: files end at %v, memory at %v", o, got, end)
		}
		if err := errors.Join(m.Close(), c.Close()); err != nil {
			t.Error(err)
		}
		empty(t, dir)
	}
}

// TestShelvedWorkers: each worker has files of its own, and all come to what one comes to.
func TestShelvedWorkers(t *testing.T) {
	o := Options{Topics: 8, Alpha: .1, Beta: .05, Parts: 4, BlockTokens: 900}
	want := swept(t, started(t, drawn(t, small), o), 3)
	dir := t.TempDir()
	apart(t, 3, func(g *collective.Group) error {
		return sweptTo(shelvedIn(t, dir, small), o, g, want)
	})
	empty(t, dir)
}

// sweptTo sweeps a worker's corpus three times, and fails if that comes to something else.
func sweptTo(c *Corpus, o Options, g distrib.Group, want float64) error {
	m, err := New(c, o, g)
	if err != nil {
		return err
	}
	for range 3 {
		err = errors.Join(err, m.Sweep(context.Background()))
	}
	got, of := m.LogLikelihood(context.Background())
	if got != want {
		of = errors.Join(of, errors.New("the workers end elsewhere"))
	}
	return errors.Join(err, of, m.Close(), c.Close())
}

// TestShelfFails: what cannot be read or written is an error, of a sweep too.
func TestShelfFails(t *testing.T) {
	if _, err := Shelved(t.TempDir() + "/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	for _, spoil := range []func(m *Model) error{
		func(m *Model) error { return m.file.file.Close() },
		func(m *Model) error { return m.file.file.Truncate(100) },
		func(m *Model) error { return m.corpus.shelf.file.Truncate(100) }} {
		m := started(t, shelvedIn(t, t.TempDir(), small), Options{Topics: 4, Alpha: .1, Beta: .1,
			BlockTokens: 800})
		if err := spoil(m); err != nil {
			t.Fatal(err)
		}
		err := m.Sweep(t.Context())
		if err == nil || !strings.Contains(err.Error(), "documents on the disk") {
			t.Errorf("a spoilt file: %v", err)
		}
		_ = errors.Join(m.Close(), m.corpus.Close())
	}
}

// inUse is the bytes of memory that something is in.
func inUse() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// TestBytes: a model takes no more than is said, and not much less; in files less than in memory.
func TestBytes(t *testing.T) {
	d := Drawing{Docs: 4000, Length: 100, Vocab: 3000, Topics: 20, Seed: 1}
	o := Options{Topics: 300, Alpha: .1, Beta: .05, BlockTokens: 20_000}
	for _, c := range []*Corpus{drawn(t, d), shelvedIn(t, t.TempDir(), d)} {
		b := c.Bytes(o, Use{})
		before := inUse() - c.resident()
		m := started(t, c, o)
		swept(t, m, 2)
		table, err := m.Table(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := inUse() - before
		if got > b.held() || got < b.held()/2 {
			t.Errorf("%d bytes in use, %d are planned: %+v", got, b.held(), b)
		}
		runtime.KeepAlive(table)
		if err := errors.Join(m.Close(), c.Close()); err != nil {
			t.Error(err)
		}
	}
	c, shelf := drawn(t, d), shelvedIn(t, t.TempDir(), d)
	least := o
	least.BlockTokens = 1 << 10
	most := shelf.Bytes(o, Use{}).Total()
	if most >= c.Bytes(o, Use{}).Total() {
		t.Error("documents in files take no less than in memory")
	}
	if f, ok := shelf.Fitting(o, Use{}, most-1); !ok || f.BlockTokens != 1<<14 {
		t.Errorf("within a byte less: blocks of %d", f.BlockTokens)
	}
	if _, ok := shelf.Fitting(o, Use{}, shelf.Bytes(least, Use{}).Total()-1); ok {
		t.Error("a fit below the least")
	}
	if err := shelf.Close(); err != nil {
		t.Error(err)
	}
}
