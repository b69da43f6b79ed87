package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
)

// TestSilentServer: a client leaves a server that keeps its connections and answers nothing, with
// its lease and what it watches, and comes back to it when it answers again.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	all := three(t, elects(one(t)), nil)
	cfg := all[0].cfg
	cfg.Rank, cfg.Servers = 3, slices.Clone(cfg.Servers)
	var cables []*cable
	for i, s := range cfg.Servers {
		cables = append(cables, newCable(t, s.Client))
		cfg.Servers[i].Client = cables[i].addr()
	}
	c := start(t, cfg)
	l, err := grant(t.Context(), c, "the node", cfg.TTL, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, wire := range cables {
		end := "http://" + wire.addr()
		asked := func(yes bool) {
			t.Helper()
			for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
				c.sentry.mu.Lock()
				is := slices.Contains(c.sentry.used, end)
				c.sentry.mu.Unlock()
				if is == yes {
					t.Logf("server %d, asked %v: after %v", i, yes, time.Since(began))
					return
				}
				if time.Since(began) > soon {
					t.Fatalf("server %d, asked %v: not so", i, yes)
				}
			}
		}
		asked(true)
		s, err := c.state(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var seen []chan error // of watches, of which one would be at each server
		for range 3 {
			ch := make(chan error, 1)
			go func() { ch <- c.changed(t.Context(), c.key("kv", ""), s.revision, soon) }()
			seen = append(seen, ch)
		}
		time.Sleep(100 * time.Millisecond) // they are under way
		wire.plug(false)
		asked(false)
		if err := all[0].Put(t.Context(), "x", []byte(strings.Repeat("y", i))); err != nil {
			t.Fatal(err)
		}
		for _, ch := range seen {
			if err := <-ch; err != nil {
				t.Error(err)
			}
		}
		for range 5 {
			if _, err := c.Get(t.Context(), "x"); err != nil {
				t.Error(err)
			}
		}
		wire.plug(true)
		asked(true)
	}
	if err := l.ctx.Err(); err != nil {
		t.Error("the lease is lost")
	}
	l.revoke(ErrClosed)
}

// TestAllSilent: of servers that are all silent none is left, and what a question came to that was
// put before another server's counts for nothing.
func TestAllSilent(t *testing.T) {
	c := start(t, one(t))
	s, err := newSentry(&c.cfg)
	if err != nil {
		t.Fatal(err)
	}
	ends := []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}
	s.client, s.ends, s.used = c.client, ends, ends
	a, b := &post{}, &post{}
	s.posts = map[string]*post{ends[0]: a, ends[1]: b}
	now := time.Now()
	s.note(ends[0], a, now, true)
	s.note(ends[1], b, now.Add(time.Second), false)
	if !slices.Equal(s.used, ends) {
		t.Errorf("used %v: nobody has answered since", s.used)
	}
	s.note(ends[0], a, now.Add(2*time.Second), true)
	s.note(ends[1], b, now.Add(time.Second), false)
	if !slices.Equal(s.used, ends[:1]) {
		t.Errorf("used %v: the second is silent", s.used)
	}
	a.silent = true
	s.apply()
	if !slices.Equal(s.used, ends) {
		t.Errorf("used %v: nobody answers", s.used)
	}
	s.note(ends[1], b, now.Add(3*time.Second), true)
	if !slices.Equal(s.used, ends[1:]) {
		t.Errorf("used %v: the second answers again", s.used)
	}
}
