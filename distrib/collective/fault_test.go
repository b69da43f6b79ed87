package collective

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// lostNode is the node that an error says is lost, -1 if none.
func lostNode(err error) distrib.NodeID {
	var lost *distrib.LostError
	if errors.As(err, &lost) && len(lost.Nodes) == 1 {
		return lost.Nodes[0]
	}
	return -1
}

// TestFaults is the table of what may befall a node in an all-reduce, after hivemind's: who
// gets what error after how long. On these links the reduction takes a second.
func TestFaults(t *testing.T) {
	const culprit = 2
	// What is under way to others has to leave before its bytes are the caller's again: a
	// window of 64 KiB at 1 MB a second.
	const drain = 80 * time.Millisecond
	lost := func(err error) bool { return lostNode(err) == culprit }
	stalled := func(err error) bool {
		var stall *distrib.StallError
		return errors.As(err, &stall) && slices.Equal(stall.Nodes, []distrib.NodeID{culprit}) ||
			err != nil && strings.Contains(err.Error(), "waits for node [2]")
	}
	fine := func(err error) bool { return err == nil }
	cancelled := func(err error) bool {
		var abort *AbortError
		return errors.As(err, &abort) && abort.Node == culprit &&
			strings.Contains(abort.Reason, "canceled")
	}
	for _, c := range []struct {
		name  string
		fault func(w *world, cancel func()) // while all run
		skip  bool                          // the culprit does not take part
		want  func(error) bool              // of the others
		own   func(error) bool              // of the culprit; nil: whatever
		most  time.Duration
	}{
		{"FAIL_BEFORE", func(w *world, _ func()) { w.net.Kill(culprit) }, true, lost, nil,
			drain},
		{"NEVER_COMES", func(*world, func()) {}, true, stalled, nil, time.Minute + time.Second},
		{"FAIL_SENDING", at(300*time.Millisecond, kill), false, lost, nil,
			300*time.Millisecond + drain},
		{"FAIL_REDUCING", at(800*time.Millisecond, kill), false, lost, nil,
			800*time.Millisecond + drain},
		{"SLOW_SENDING", func(w *world, _ func()) { w.net.SetRate(culprit, 4e5, 8e6) }, false,
			fine, fine, 25 * time.Second},
		{"SLOW_REDUCING", func(w *world, _ func()) { w.net.SetRate(culprit, 8e6, 4e5) }, false,
			fine, fine, 25 * time.Second},
		{"PAUSE", at(300*time.Millisecond, func(w *world, _ func()) {
			w.net.Pause(culprit, 3*time.Second)
		}), false, fine, fine, 5 * time.Second},
		{"CANCEL", at(300*time.Millisecond, func(_ *world, cancel func()) { cancel() }), false,
			cancelled, func(err error) bool { return errors.Is(err, context.Canceled) },
			500 * time.Millisecond},
		{"PARTITION", at(300*time.Millisecond, func(w *world, _ func()) {
			w.net.Partition(culprit)
		}), false, lost, nil, 5 * time.Second},
		{"ONE LINK", at(300*time.Millisecond, func(w *world, _ func()) {
			w.net.Fail(culprit, 3)
		}), false, func(err error) bool { return lostNode(err) >= 2 }, nil,
			400 * time.Millisecond},
	} {
		net := memnet.Options{Latency: time.Millisecond, Bps: 8e6, Timeout: 4 * time.Second}
		o := Options{Chunk: 8 << 10}
		inWorld(t, 5, net, o, func(w *world) {
			ctx, cancel := context.WithCancel(background)
			var side sync.WaitGroup
			side.Go(func() { c.fault(w, cancel) })
			var after []error
			errs := w.each(func(x *node) error {
				if x.rank == culprit && c.skip {
					return nil
				}
				mine := background
				if x.rank == culprit {
					mine = ctx
				}
				data := make([]float32, 150_000) // 600 KB, of which 8/5 are sent at 1 MB a second
				return AllReduce(mine, x.group, data, Sum)
			})
			took := w.passed()
			for r, err := range errs {
				t.Logf("| %s | %d | %v | %v |", c.name, r, took.Round(time.Millisecond), err)
			}
			if c.want(nil) == false {
				after = w.each(func(x *node) error { return Barrier(background, x.group) })
			}
			side.Wait()
			cancel()
			for r, err := range errs {
				if r != culprit && !c.want(err) || r == culprit && c.own != nil && !c.own(err) {
					t.Errorf("%s: rank %d: %v", c.name, r, err)
				}
			}
			var poisoned *PoisonedError
			for r, err := range after {
				if !errors.As(err, &poisoned) && r != culprit {
					t.Errorf("%s: rank %d goes on: %v", c.name, r, err)
				}
			}
			if took > c.most {
				t.Errorf("%s: it took %v, more than %v", c.name, took, c.most)
			}
		})
	}
}

func kill(w *world, _ func()) { w.net.Kill(2) }

func at(d time.Duration, f func(*world, func())) func(*world, func()) {
	return func(w *world, cancel func()) {
		time.Sleep(d)
		f(w, cancel)
	}
}

// TestStallsAreNamed: it is the rank that is missing that everybody names, not the
// neighbour that waits for it in turn; first to the log, in the end as an error.
func TestStallsAreNamed(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	o := Options{Stall: 5 * time.Second, Timeout: 20 * time.Second, Log: func(s string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, s)
	}}
	inWorld(t, 6, memnet.Options{Latency: time.Millisecond}, o, func(w *world) {
		errs := w.each(func(x *node) error {
			if err := Barrier(background, x.group); err != nil {
				return err
			}
			if x.rank == 4 {
				time.Sleep(time.Hour)
				return Barrier(background, x.group)
			}
			data := make([]float32, 100_000)
			return AllReduce(background, x.group, data, Sum)
		})
		first := 0
		for r, err := range errs {
			var stall *distrib.StallError
			if errors.As(err, &stall) && r != 4 {
				first++
			}
			if !strings.Contains(fmt.Sprint(err), "stalled: all-reduce of 400000 bytes waits for "+
				"node [4] at clock 2") {
				t.Errorf("rank %d: %v", r, err)
			}
		}
		if first == 0 {
			t.Error("nobody has a StallError")
		}
	})
	if len(lines) != 2*5 {
		t.Errorf("%d lines, want 10: %q", len(lines), lines)
	}
	for i, l := range lines {
		want := "stalled: all-reduce of 400000 bytes waits for node [4] at clock 2 for "
		if l != want+[]string{"5s", "10s"}[i/5] {
			t.Error(l)
		}
	}
}

// TestMismatch: nodes in different operations are told so at once.
func TestMismatch(t *testing.T) {
	x := func(n int) []float32 { return make([]float32, n) }
	all := func(x *node, n int) error {
		return AllReduce(background, x.group, make([]float32, n), Sum)
	}
	for _, c := range []struct {
		name       string
		one, other func(*node) error
		want       string
	}{
		{"length", func(n *node) error { return all(n, 10) },
			func(n *node) error { return all(n, 12) },
			"operation 1 is all-reduce of 40 bytes here and all-reduce of 48 bytes on node 1: " +
				"all nodes must run the same"},
		{"kind", func(n *node) error { return Barrier(background, n.group) },
			func(n *node) error { return Broadcast(background, n.group, x(1), 1) },
			"operation 1 is barrier here and broadcast of 4 bytes on node 1: " +
				"all nodes must run the same"},
		{"parts", func(n *node) error {
			return AllToAllV(background, n.group, [][]float32{x(1), x(2)}, [][]float32{x(1), x(2)})
		}, func(n *node) error {
			return AllToAllV(background, n.group, [][]float32{x(3), x(1)}, [][]float32{x(2), x(1)})
		}, "operation 1 is all-to-all (8 bytes from one to the other) here and all-to-all " +
			"(12 bytes from one to the other) on node 1: all nodes must run the same"},
		{"number", func(n *node) error { return Barrier(background, n.group) },
			func(n *node) error {
				n.group.seq++ // as if it had run one that sends nothing
				return Barrier(background, n.group)
			}, "operation 1 is barrier here and barrier (its operation 2) on node 1: " +
				"all nodes must run the same"},
	} {
		inWorld(t, 2, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
			errs := w.each(func(x *node) error {
				if x.rank == 0 {
					return c.one(x)
				}
				return c.other(x)
			})
			if errs[0] == nil || errs[0].Error() != c.want {
				t.Errorf("%s: %v\nand %v, want\n%s", c.name, errs[0], errs[1], c.want)
			}
			if w.passed() > 5*time.Millisecond {
				t.Errorf("%s: after %v", c.name, w.passed())
			}
		})
	}
}

// TestCloseInPeace: a rank that has done its part may close at once; what it has sent is
// not lost, and what still needs it fails.
func TestCloseInPeace(t *testing.T) {
	net := memnet.Options{Latency: time.Millisecond, Jitter: 50 * time.Millisecond}
	for seed := range uint64(20) {
		net.Seed = seed
		inWorld(t, 7, net, Options{}, func(w *world) {
			w.must(func(x *node) error {
				for range 3 {
					if err := Barrier(background, x.group); err != nil {
						return err
					}
				}
				return x.mux.Close()
			})
		})
	}
	inWorld(t, 3, memnet.Options{}, Options{}, func(w *world) {
		errs := w.each(func(x *node) error {
			if x.rank == 1 {
				return x.mux.Close()
			}
			return Barrier(background, x.group)
		})
		if lostNode(errs[0]) != 1 || lostNode(errs[2]) != 1 {
			t.Errorf("%v", errs)
		}
		for _, i := range []int{0, 2} { // that it closes is told, or found out in sending to it
			if !strings.Contains(errs[i].Error(), "closed") {
				t.Errorf("%v", errs)
			}
		}
	})
}

// behind hands over what has come a second late.
type behind struct {
	distrib.Transport
	h distrib.Handler
}

func (b *behind) Serve(h distrib.Handler) {
	b.h = h
	b.Transport.Serve(b)
}

func (b *behind) Receive(from distrib.NodeID, m *distrib.Msg) {
	time.Sleep(time.Second)
	b.h.Receive(from, m)
}

func (b *behind) Down(from distrib.NodeID, err error) { b.h.Down(from, err) }

// TestNotifyOfClosed: a notice that the transport refuses, since its rank is not there any
// more, fails nobody if the rank has said goodbye, and does if it is lost.
func TestNotifyOfClosed(t *testing.T) {
	for _, peace := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			net := memnet.NewNetwork(2, memnet.Options{})
			var muxes [2]*Mux
			var groups [2]*Group
			for i := range muxes {
				var err error
				muxes[i], err = NewMux(&behind{Transport: net.Node(distrib.NodeID(i))}, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if groups[i], err = muxes[i].Group(0, 1); err != nil {
					t.Fatal(err)
				}
			}
			if peace {
				muxes[1].Close()
			} else {
				net.Kill(1)
			}
			groups[0].notify(1, 0, []byte("news"))
			time.Sleep(2 * time.Second)
			if err := groups[0].Err(); (err == nil) != peace {
				t.Errorf("in peace: %v: %v", peace, err)
			}
			muxes[0].Close()
			muxes[1].Close()
		})
	}
}

// TestGroupsAreChecked: what cannot be a group or an operation is refused.
func TestGroupsAreChecked(t *testing.T) {
	inWorld(t, 2, memnet.Options{}, Options{}, func(w *world) {
		x := w.nodes[0]
		g := x.group
		f := make([]float32, 4)
		for i, err := range []error{
			second(x.mux.Group(1)), second(x.mux.Group(0, 1, 0)),
			g.Send(background, 0, 0, nil), g.Send(background, 2, 0, nil),
			g.Recv(background, -1, 0, nil),
			AllReduce(background, g, []int32{1}, Mean), AllReduce(background, g, f, 7),
			Broadcast(background, g, f, 2), PushPull(background, g, f, 0, Sum),
			PushPull(background, g, f, 3, Sum),
			AllToAll(background, g, f[:3], f[:3]), AllToAll(background, g, f[:2], f[1:3]),
			AllToAllV(background, g, [][]float32{f}, [][]float32{f, f}),
			AllToAllV(background, g, [][]float32{f[:1], nil}, [][]float32{nil, f}),
		} {
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%d: %v", i, err)
			}
		}
		if err := g.Err(); err != nil {
			t.Errorf("the group fails by it: %v", err)
		}
		for _, o := range []Options{{Chunk: 100}, {Chunk: MaxChunk * 2}, {Chunk: -64},
			{Chunk: 128, Window: 255}, {Stall: -1}, {Timeout: -1}} {
			if _, err := NewMux(nil, o); err == nil {
				t.Errorf("%+v is taken", o)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// TestBusy: a second operation at the same time is refused, and the first goes on.
func TestBusy(t *testing.T) {
	inWorld(t, 2, memnet.Options{Latency: time.Second}, Options{}, func(w *world) {
		w.must(func(x *node) error {
			first := make(chan error)
			go func() { first <- Barrier(background, x.group) }()
			time.Sleep(time.Millisecond)
			var busy *BusyError
			if err := Barrier(background, x.group); !errors.As(err, &busy) {
				return fmt.Errorf("a second one: %v", err)
			}
			return <-first
		})
	})
}
