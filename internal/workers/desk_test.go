package workers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desks are those of n workers on a network in memory.
func desks(t *testing.T, n int, o DeskOptions) (*memnet.Network, []*Desk) {
	t.Helper()
	net := memnet.NewNetwork(n, memnet.Options{Latency: time.Millisecond})
	var members []distrib.NodeID
	for i := range n {
		members = append(members, distrib.NodeID(i))
	}
	var out []*Desk
	for i := range n {
		d, err := NewDesk(net.Node(distrib.NodeID(i)), members, o)
		if err != nil {
			t.Fatal(err)
		}
		d.Start()
		out = append(out, d)
	}
	return net, out
}

// all runs workers side by side.
func all(n int, do func(rank int)) {
	var wg sync.WaitGroup
	for rank := range n {
		wg.Go(func() { do(rank) })
	}
	wg.Wait()
}

// TestDesk: what all have told is heard by all, by rank and in order, also when some tell
// much more before others have told anything, and also what is long.
func TestDesk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, ds := desks(t, 4, DeskOptions{})
		long := strings.Repeat("x", 3*piece+1)
		all(4, func(rank int) {
			for i := range 50 {
				if rank == 2 && i == 0 {
					time.Sleep(time.Second)
				}
				says := fmt.Sprint(rank, i)
				if i == 10 {
					says += long
				}
				if err := ds[rank].Tell(t.Context(), []byte(says)); err != nil {
					t.Error(err)
				}
				if i < 5 {
					continue // by as much the others may be ahead
				}
				heard(t, ds[rank], i-5, long)
			}
			for i := 45; i < 50; i++ {
				heard(t, ds[rank], i, long)
			}
			ds[rank].Leave(nil)
		})
		for rank := range ds {
			net.Node(distrib.NodeID(rank)).Close()
		}
	})
}

func heard(t *testing.T, d *Desk, i int, long string) {
	said, err := d.Hear(t.Context())
	if err != nil || len(said) != 4 {
		t.Fatal(said, err)
	}
	for rank, b := range said {
		want := fmt.Sprint(rank, i)
		if i == 10 {
			want += long
		}
		if string(b) != want {
			t.Errorf("worker %d said %.20q, want %.20q", rank, b, want)
		}
	}
}

// TestGive: what is given to one is heard by that one, and by the others as
// nothing.
func TestGive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, ds := desks(t, 3, DeskOptions{})
		all(3, func(rank int) {
			for to := range ds {
				says := fmt.Sprint(rank, to)
				if err := ds[rank].Give(t.Context(), to, []byte(says)); err != nil {
					t.Error(err)
				}
				said, err := ds[rank].Hear(t.Context())
				if err != nil || len(said) != 3 {
					t.Error(said, err)
				}
				for from, b := range said {
					want := ""
					if to == rank {
						want = fmt.Sprint(from, to)
					}
					if string(b) != want {
						t.Errorf("worker %d says %q to %d, %d hears %q", from, want, to, rank, b)
					}
				}
			}
			ds[rank].Leave(nil)
		})
		for rank := range ds {
			net.Node(distrib.NodeID(rank)).Close()
		}
	})
}

// TestLost: who is killed is gone without a word, sooner or later; who fails, is done or is
// there is not.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, ds := desks(t, 5, DeskOptions{})
		ds[1].Leave(errors.New("no data"))
		ds[2].Leave(nil)
		net.Kill(0)
		go func() {
			time.Sleep(patience / 2)
			net.Kill(3)
		}()
		for rank, want := range []bool{true, false, false, true, false} {
			if have := ds[4].Lost(rank); have != want {
				t.Errorf("worker %d is gone without a word: %v", rank, have)
			}
		}
		for rank := range ds {
			net.Node(distrib.NodeID(rank)).Close()
		}
	})
}

// TestLeave: who fails says why, and all the others' waits end with that, in no time; who
// is done harms nobody but those who wait for more; who is killed is named.
func TestLeave(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(net *memnet.Network, d *Desk)
		want string
	}{
		"failed": {func(_ *memnet.Network, d *Desk) { d.Leave(errors.New("no data")) },
			"worker 1 failed: no data"},
		"second hand": {func(_ *memnet.Network, d *Desk) {
			d.Leave(fmt.Errorf("step: %w", &LeftError{Rank: 2, Why: "no disk"}))
		}, "worker 2 failed: no disk"},
		"gone, second hand": {func(_ *memnet.Network, d *Desk) {
			d.Leave(fmt.Errorf("step: %w", &LeftError{Rank: 2, Err: errSilent}))
		}, "worker 2 is gone: it does not answer"},
		"done":   {func(_ *memnet.Network, d *Desk) { d.Leave(nil) }, "worker 1 has ended already"},
		"killed": {func(net *memnet.Network, d *Desk) { net.Kill(1) }, "worker 1 is gone: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net, ds := desks(t, 3, DeskOptions{})
				began := time.Now()
				all(3, func(rank int) {
					if rank == 1 {
						time.Sleep(time.Second)
						c.end(net, ds[1])
						return
					}
					if err := ds[rank].Tell(t.Context(), nil); err != nil {
						t.Error(err)
					}
					ctx, release := ds[rank].Within(t.Context())
					defer release()
					_, err := ds[rank].Hear(ctx)
					left, ok := errors.AsType[*LeftError](err)
					if !ok || left.Told != strings.HasSuffix(name, "second hand") ||
						!strings.HasPrefix(err.Error(), c.want) {
						t.Errorf("%d hears %v, want %s", rank, err, c.want)
					}
					if name == "done" {
						return
					}
					<-ctx.Done()
					if cause := context.Cause(ctx); cause.Error() != err.Error() {
						t.Errorf("%d: a context ends with %v", rank, cause)
					}
					if err := ds[rank].Tell(t.Context(), nil); err == nil {
						t.Errorf("%d tells after the end", rank)
					}
				})
				if took := time.Since(began); took > 1100*time.Millisecond {
					t.Errorf("took %v", took)
				}
				for rank := range ds {
					net.Node(distrib.NodeID(rank)).Close()
				}
			})
		})
	}
}

// TestToldAndLeft: what a worker has told last is heard, however soon after it the worker
// leaves, at whatever moment another one looks.
func TestToldAndLeft(t *testing.T) {
	net := memnet.NewNetwork(2, memnet.Options{})
	t.Cleanup(func() { _ = net.Node(0).Close() })
	told := &distrib.Msg{Class: distrib.Control, Tag: deskTag, Head: []byte{tell}}
	left := &distrib.Msg{Class: distrib.Control, Tag: deskTag, Head: []byte{leave}}
	for range 4000 {
		d, err := NewDesk(net.Node(0), []distrib.NodeID{0, 1}, DeskOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Give(t.Context(), 0, nil); err != nil {
			t.Fatal(err)
		}
		var gone sync.WaitGroup
		gone.Go(func() { d.Receive(1, told); d.Receive(1, left) })
		if _, err := d.Hear(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone.Wait()
	}
}

// TestGivenUp: who waits for others ends when the group is given up here, and not when it looks
// again whom it waits for.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ds := desks(t, 2, DeskOptions{})
		why, began := errors.New("others are there"), time.Now()
		time.AfterFunc(time.Second, func() { ds[0].fail(why) })
		_, err := ds[0].Hear(t.Context())
		if took := time.Since(began); !errors.Is(err, why) || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// TestDeskStalls: who is waited for is named after a while, and then less and less often;
// a wait has an end if that was asked for, and always when its context does.
func TestDeskStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		net, ds := desks(t, 4, DeskOptions{Timeout: time.Minute,
			Log: func(s string) { lines = append(lines, s) }})
		if err := ds[3].Tell(t.Context(), nil); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		_, err := ds[0].Hear(t.Context())
		stall, ok := errors.AsType[*distrib.StallError](err)
		if !ok || fmt.Sprint(stall.Nodes) != "[0 1 2]" {
			t.Errorf("%v", err)
		}
		want := "waiting for worker 0, 1 and 2 since 10s"
		if len(lines) != 4 || lines[0] != want {
			t.Errorf("%q, want %q first", lines, want)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		if _, err := ds[0].Hear(ctx); err == nil || err.Error() != "enough" {
			t.Errorf("%v", err)
		}
		for rank := range ds {
			net.Node(distrib.NodeID(rank)).Close()
		}
	})
}
