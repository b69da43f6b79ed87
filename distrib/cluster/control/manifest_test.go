package control

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
)

// newest is the manifest that a job has.
func newest(t *testing.T, c *Control) (m manifest) {
	t.Helper()
	r, err := c.get(t.Context(), c.key("ckpt"))
	if err == nil && len(r.Kvs) > 0 {
		err = json.Unmarshal(r.Kvs[0].Value, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSaved: a node of the newest view notes a checkpoint, also while another view has come that it
// is in; one that is out does not, and hears of those who go on, if there are any.
func TestSaved(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	all, wire := cabled(t, quick(one(t)))
	if _, _, err := start(t, joinable(all[0], 3)).Saved(t.Context(), 1, ""); !errors.Is(err,
		ErrNotJoined) {
		t.Errorf("who has not joined: %v", err)
	}
	if id := all[0].ID(); len(id) != 32 || id != all[2].ID() {
		t.Errorf("ids %q and %q", id, all[2].ID())
	}
	saves := func(c *Control, step int, path string) {
		t.Helper()
		until, next, err := c.Saved(t.Context(), step, path)
		if left := time.Until(until); err != nil || next != 0 || left > c.cfg.TTL {
			t.Errorf("node %d, step %d: for %v, then %d; %v", c.cfg.Rank, step, left, next, err)
		}
	}
	saves(all[2], 7, "run/7")
	saves(all[0], 8, "")
	if m := newest(t, all[0]); m != (manifest{7, 1, 2, "run/7"}) {
		t.Errorf("the newest: %+v", m)
	}
	if err := all[1].Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	next(t, all[0])
	all[0].member.mu.Lock()
	all[0].member.view.Epoch = 1 // it has not heard of it
	all[0].member.mu.Unlock()
	saves(all[0], 9, "run/9")
	if m := newest(t, all[0]); m != (manifest{9, 2, 0, "run/9"}) {
		t.Errorf("the newest: %+v", m)
	}
	here := alive(t, all[2])
	wire.plug(false)
	await(t, here, "the node that is cut off")
	want(t, next(t, all[1]), 2, 1, 0, 1, 2)
	want(t, next(t, all[1]), 3, 1, 0, 1)
	wire.plug(true)
	until, epoch, err := all[2].Saved(t.Context(), 10, "run/10")
	if !until.IsZero() || epoch != 3 || err != nil {
		t.Errorf("who is out: until %v, epoch %d, %v", until, epoch, err)
	}
	if m := newest(t, all[0]); m.Step != 9 {
		t.Errorf("the newest: %+v", m)
	}
	all[1].Close()
	all[0].member.close(ErrClosed)
	if until, epoch, err = all[2].Saved(t.Context(), 10, "run/10"); !until.IsZero() || epoch != 0 ||
		err != nil {
		t.Errorf("when nobody goes on: until %v, epoch %d, %v", until, epoch, err)
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
