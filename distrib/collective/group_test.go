package collective

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// TestSendRecv: messages of one tag keep their order, those of others wait; longer ones than
// the window, too.
func TestSendRecv(t *testing.T) {
	o := Options{Chunk: 64, Window: 256}
	inWorld(t, 3, memnet.Options{Latency: time.Millisecond}, o, func(w *world) {
		message := func(tag, i int) []byte {
			b := make([]byte, tag*i%7*20)
			for j := range b {
				b[j] = byte(tag + i*3 + j)
			}
			return b
		}
		w.must(func(x *node) error {
			n := x.group.Size()
			to, from := (x.rank+1)%n, (x.rank+2)%n
			sent := make(chan error, 1)
			go func() {
				for i := range 8 {
					for tag := range 4 {
						err := x.group.Send(background, to, uint64(tag), message(tag, i))
						if err != nil {
							sent <- err
							return
						}
					}
				}
				sent <- x.group.Send(background, to, 9, make([]byte, 5000))
			}()
			for i := range 8 {
				for _, tag := range []int{2, 0, 3, 1} { // not as they are sent
					want := message(tag, i)
					got := make([]byte, len(want))
					if err := x.group.Recv(background, from, uint64(tag), got); err != nil {
						return err
					}
					if !slices.Equal(got, want) {
						return fmt.Errorf("tag %d, message %d: %v, want %v", tag, i, got, want)
					}
				}
			}
			if err := x.group.Recv(background, from, 9, make([]byte, 5000)); err != nil {
				return err
			}
			return <-sent
		})
	})
}

// TestRecvOfAnotherLength: is an error, and the message stays.
func TestRecvOfAnotherLength(t *testing.T) {
	inWorld(t, 2, memnet.Options{}, Options{}, func(w *world) {
		w.must(func(x *node) error {
			if x.rank == 0 {
				return x.group.Send(background, 1, 5, []byte("four"))
			}
			err := x.group.Recv(background, 0, 5, make([]byte, 3))
			want := "collective: a message of 4 bytes from node 0 where 3 are expected (tag 5)"
			if err == nil || err.Error() != want {
				return fmt.Errorf("%v, want %s", err, want)
			}
			b := make([]byte, 4)
			if err := x.group.Recv(background, 0, 5, b); err != nil || string(b) != "four" {
				return fmt.Errorf("%q %v", b, err)
			}
			return nil
		})
	})
}

// TestWindow: a sender waits when the window is full, and what waits is no more than that;
// groups beside it go on.
func TestWindow(t *testing.T) {
	o := Options{Chunk: 1 << 10, Window: 4 << 10}
	inWorld(t, 2, memnet.Options{Latency: time.Millisecond}, o, func(w *world) {
		w.must(func(x *node) error {
			beside, err := x.mux.Group(0, 1)
			if err != nil {
				return err
			}
			if x.rank == 0 {
				done := make(chan error)
				go func() { done <- x.group.Send(background, 1, 0, make([]byte, 10<<10)) }()
				if err := Barrier(background, beside); err != nil {
					return err
				}
				return <-done
			}
			time.Sleep(time.Second)
			if s := x.group.Stats(); s.Held != 4<<10 {
				return fmt.Errorf("%d bytes wait, want the window", s.Held)
			}
			if err := Barrier(background, beside); err != nil {
				return err
			}
			if err := x.group.Recv(background, 0, 0, make([]byte, 10<<10)); err != nil {
				return err
			}
			if s := x.group.Stats(); s.PeakHeld != 4<<10 || s.Held != 0 || s.Received != 10<<10 {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
	})
}

// TestEndOfContext: a Recv that nothing has come for leaves the group as it was; a message
// that was cut short does not.
func TestEndOfContext(t *testing.T) {
	inWorld(t, 2, memnet.Options{}, Options{Chunk: 64, Window: 128}, func(w *world) {
		x := w.nodes[0]
		short := func() context.Context {
			ctx, cancel := context.WithTimeout(background, time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		err := x.group.Recv(short(), 1, 0, make([]byte, 3))
		if !errors.Is(err, context.DeadlineExceeded) || x.group.Err() != nil {
			t.Errorf("%v, %v", err, x.group.Err())
		}
		err = x.group.Send(short(), 1, 0, make([]byte, 1000))
		if !errors.Is(err, context.DeadlineExceeded) || x.group.Err() == nil {
			t.Errorf("%v, %v", err, x.group.Err())
		}
		if err := Barrier(background, x.group); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the reason", err)
		}
		if err := Barrier(background, w.nodes[1].group); err == nil ||
			!strings.Contains(err.Error(), "deadline exceeded") {
			t.Errorf("the other one: %v", err)
		}
	})
}

// TestBytesOnTheWire: what the essay and the formulas say, to the byte.
func TestBytesOnTheWire(t *testing.T) {
	const length = 1 << 15 // float32: 128 KiB, a ring
	for n := 1; n <= 9; n++ {
		small := 1000 // by doubling
		d := bits.Len(uint(n)) - 1
		extra := n - 1<<d
		cases := []struct {
			name string
			do   func(*node) error
			want int64 // all ranks together
		}{
			{"ring", func(x *node) error {
				return AllReduce(background, x.group, make([]float32, length), Sum)
			}, int64(4 * 2 * (n - 1) * length)},
			{"push-pull", func(x *node) error {
				return PushPull(background, x.group, make([]float32, length), n, Sum)
			}, int64(4 * 2 * (n - 1) * length)},
			{"one server", func(x *node) error {
				return PushPull(background, x.group, make([]float32, length), 1, Sum)
			}, int64(4 * 2 * (n - 1) * length)},
			{"doubling", func(x *node) error {
				return AllReduce(background, x.group, make([]float32, small), Sum)
			}, int64(4 * small * (d<<d + 2*extra))},
			{"gather", func(x *node) error {
				return AllGather(background, x.group, make([]float32, length))
			}, int64(4 * (n - 1) * length)},
			{"broadcast", func(x *node) error {
				return Broadcast(background, x.group, make([]float32, length), n/2)
			}, int64(4 * (n - 1) * length)},
			{"barrier", func(x *node) error { return Barrier(background, x.group) }, 0},
		}
		inWorld(t, n, memnet.Options{}, Options{}, func(w *world) {
			var before int64
			for _, c := range cases {
				w.must(c.do)
				var sum int64
				for _, x := range w.nodes {
					sum += x.group.Stats().Sent
				}
				if sum-before != c.want {
					t.Errorf("%s of %d: %d bytes, want %d", c.name, n, sum-before, c.want)
				}
				before = sum
			}
			for _, x := range w.nodes { // the ring's are spread evenly
				if s := x.group.Stats(); n > 1 && s.Sent == 0 {
					t.Errorf("rank %d of %d sends nothing", x.rank, n)
				}
			}
		})
	}
}

// inbox takes what a mux leaves to others.
type inbox struct {
	mu   sync.Mutex
	got  []string
	down []distrib.NodeID
}

func (b *inbox) Receive(from distrib.NodeID, m *distrib.Msg) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, fmt.Sprint(from, " ", m.Class, " ", m.Tag))
}

func (b *inbox) Down(from distrib.NodeID, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = append(b.down, from)
}

// TestOtherClasses: go through to one other user, who may come later; the transport is
// closed by the last.
func TestOtherClasses(t *testing.T) {
	inWorld(t, 3, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
		t0, t1 := w.nodes[0].mux.Transport(), w.nodes[1].mux.Transport()
		if t0.Self() != 0 || len(t0.Links()) != 2 {
			t.Errorf("self %d, links %v", t0.Self(), t0.Links())
		}
		var refused error
		t0.Send(1, &distrib.Msg{Class: distrib.Collective, Done: func(err error) { refused = err }})
		if refused == nil {
			t.Error("a message of class Collective went past the groups")
		}
		t0.Send(1, &distrib.Msg{Class: distrib.Updates, Tag: 1})
		t0.Send(1, &distrib.Msg{Class: distrib.Updates, Tag: 2})
		w.must(func(x *node) error { return Barrier(background, x.group) })
		w.net.Kill(2)
		time.Sleep(time.Second)
		var b inbox
		t1.Serve(&b)
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []string{"0 1 1", "0 1 2"}; !slices.Equal(b.got, want) {
			t.Errorf("%q, want %q", b.got, want)
		}
		if len(b.down) != 1 || b.down[0] != 2 {
			t.Errorf("%v are down, want 2", b.down)
		}
		w.nodes[0].mux.Close()
		done := make(chan error, 1)
		t0.Send(1, &distrib.Msg{Class: distrib.Control, Done: func(err error) { done <- err }})
		if err := <-done; err != nil {
			t.Errorf("the transport is closed under its other user: %v", err)
		}
		t0.Close()
		t0.Close()
		t1.Close()
	})
}

// TestLateGroups: what comes for a group before there is one waits for it.
func TestLateGroups(t *testing.T) {
	inWorld(t, 3, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
		w.must(func(x *node) error {
			time.Sleep(time.Duration(x.rank) * time.Second)
			for range 3 {
				g, err := x.mux.Group(2, 0, 1)
				if err != nil {
					return err
				}
				v := []int64{int64(x.rank), int64(g.Rank())}
				if err := AllReduce(background, g, v, Sum); err != nil {
					return err
				}
				if v[0] != 3 || v[1] != 3 || !slices.Equal(g.Members(), members(3)[2:3:3]) &&
					len(g.Members()) != 3 {
					return fmt.Errorf("%v %v", v, g.Members())
				}
				if err := g.Close(); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// TestStrangers: a node that does not speak the protocol is as good as lost.
func TestStrangers(t *testing.T) {
	good := (&head{kind: opData}).append(nil)
	swapped := slices.Clone(good)
	swapped[2], swapped[3] = swapped[3], swapped[2]
	for _, c := range []struct {
		head []byte
		want string
	}{
		{nil, "a message that is none of a collective"},
		{good[:headSize-1], "a message that is none of a collective"},
		{make([]byte, headSize), "a message that is none of a collective"},
		{append([]byte{byte(kinds)}, good[1:]...), "a message that is none of a collective"},
		{make([]byte, headSize+maxLabel+1), "a message that is none of a collective"},
		{swapped, "its byte order is another one"},
	} {
		inWorld(t, 2, memnet.Options{}, Options{}, func(w *world) {
			w.net.Node(1).Send(0, &distrib.Msg{Class: distrib.Collective, Head: c.head})
			err := Barrier(background, w.nodes[0].group)
			if lostNode(err) != 1 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%x: %v, want %s", c.head, err, c.want)
			}
		})
	}
}

// TestTooMuchIsRefused: a node whose window is larger fills no memory here.
func TestTooMuchIsRefused(t *testing.T) {
	inWorld(t, 2, memnet.Options{}, Options{Chunk: 64, Window: 128}, func(w *world) {
		h := head{kind: userData, group: w.nodes[0].group.id, total: 1000}
		for range 3 {
			w.net.Node(1).Send(0, &distrib.Msg{Class: distrib.Collective, Head: h.append(nil),
				Body: [][]byte{make([]byte, 64)}})
		}
		time.Sleep(time.Second)
		g := w.nodes[0].group
		if err := g.Err(); err == nil || !strings.Contains(err.Error(), "other Options") {
			t.Error(err)
		}
		if s := g.Stats(); s.PeakHeld != 128 {
			t.Errorf("%d bytes wait", s.PeakHeld)
		}
	})
}

// FuzzHead: what comes from the network is read or refused, and what is read is what was
// written.
func FuzzHead(f *testing.F) {
	f.Add((&head{kind: abort, group: 1, took: 2, sig: 3, check: 4, total: 5}).append(nil))
	f.Add((&head{kind: opData, label: "exchange w f32[4]"}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHead(b)
		if err != nil {
			return
		}
		again, err := parseHead(h.append(nil))
		if err != nil || again != h {
			t.Errorf("%+v, then %+v, %v", h, again, err)
		}
		parseReason(string(b), int(h.total))
		_ = describe(h.sig)
	})
}
