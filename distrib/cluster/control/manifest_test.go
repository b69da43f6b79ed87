package control

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/longtest"
)

func part(rank int, clock distrib.Clock) File {
	return File{Node: distrib.NodeID(rank), Path: fmt.Sprintf("/data/%d-%d", clock, rank),
		Bytes: 7, Sum: "crc32c:1"}
}

// saved has some nodes say that they have saved, one after the other.
func saved(t *testing.T, clock distrib.Clock, all ...*Control) (last bool) {
	t.Helper()
	for _, c := range all {
		var err error
		if last, err = c.Saved(t.Context(), clock, part(c.cfg.Rank, clock)); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

// TestManifest: a checkpoint is there when the last part is, and never before; who is
// out completes none.
func TestManifest(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	all := job(t, quick(one(t)), 3, 3, 3)
	if _, err := all[0].Newest(t.Context()); !errors.Is(err, ErrNoKey) {
		t.Errorf("a newest checkpoint of none: %v", err)
	}
	if saved(t, 100, all[2], all[0]) {
		t.Error("complete with two parts of three")
	}
	if ms, err := all[1].Manifests(t.Context()); err != nil || len(ms) > 0 {
		t.Errorf("manifests %v, %v", ms, err)
	}
	if !saved(t, 100, all[1]) || !saved(t, 20, all...) {
		t.Error("not complete with three parts of three")
	}
	want := []Manifest{
		{Clock: 20, Epoch: 1, Files: []File{part(0, 20), part(1, 20), part(2, 20)}},
		{Clock: 100, Epoch: 1, Files: []File{part(0, 100), part(1, 100), part(2, 100)}},
	}
	ms, err := all[1].Manifests(t.Context())
	if d := cmp.Diff(want, ms); d != "" || err != nil {
		t.Errorf("manifests: %v\n%s", err, d)
	}
	saved(t, 200, all[2], all[0])
	all[2].abandon()
	for _, c := range all[:2] {
		next(t, c)
	}
	if saved(t, 200, all[0]) || !saved(t, 200, all[1]) {
		t.Error("the parts of an epoch complete a checkpoint of another")
	}
	m, err := all[0].Newest(t.Context())
	if d := cmp.Diff(Manifest{Clock: 200, Epoch: 2, Files: []File{part(0, 200), part(1, 200)}},
		m); d != "" || err != nil {
		t.Errorf("the newest: %v\n%s", err, d)
	}
	if err := all[0].Forget(t.Context(), 200); err != nil {
		t.Fatal(err)
	}
	if m, err := all[0].Newest(t.Context()); err != nil || m.Clock != 100 {
		t.Errorf("the newest after the last was forgotten: %+v, %v", m, err)
	}
	if _, err := all[2].Saved(t.Context(), 300, File{}); err == nil {
		t.Error("a node that is out saves")
	}
}

// TestManifestTogether: all nodes at once, and every checkpoint is completed, reported by
// one of them at least.
func TestManifestTogether(t *testing.T) {
	t.Parallel()
	all := job(t, quick(one(t)), 3, 3, 3)
	for clock := range distrib.Clock(20) {
		done, errs := make(chan bool, 3), make(chan error, 3)
		for i, c := range all {
			go func() {
				ok, err := c.Saved(t.Context(), clock, part(i, clock))
				done <- ok
				errs <- err
			}()
		}
		any := false
		for range all {
			any = <-done || any
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
		if m, err := all[0].Newest(t.Context()); err != nil || m.Clock != clock || !any {
			t.Fatalf("clock %d: %+v, %v, reported %v", clock, m, err, any)
		}
	}
}

// TestStop reaches everybody.
func TestStop(t *testing.T) {
	t.Parallel()
	a := start(t, one(t))
	b := start(t, joinable(a, 1))
	got := make(chan string, 1)
	go func() {
		why, err := b.Stopped(t.Context())
		if err != nil {
			why = err.Error()
		}
		got <- why
	}()
	if err := a.Stop(t.Context(), "enough"); err != nil {
		t.Fatal(err)
	}
	select {
	case why := <-got:
		if why != "enough" {
			t.Errorf("stopped: %s", why)
		}
	case <-time.After(soon):
		t.Error("nobody stops")
	}
	if err := a.Resume(t.Context()); err != nil {
		t.Error(err)
	}
}
