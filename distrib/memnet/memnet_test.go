package memnet_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inbox notes what a node is handed.
type inbox struct {
	mu    sync.Mutex
	start time.Time
	got   []arrival
	downs map[distrib.NodeID]error
	hold  func(from distrib.NodeID, m *distrib.Msg) // called before a message is noted
}

type arrival struct {
	from distrib.NodeID
	m    *distrib.Msg
	at   time.Duration
}

func newInbox() *inbox {
	return &inbox{start: time.Now(), downs: map[distrib.NodeID]error{}}
}

func (in *inbox) Receive(from distrib.NodeID, m *distrib.Msg) {
	if in.hold != nil {
		in.hold(from, m)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.got = append(in.got, arrival{from, m, time.Since(in.start)})
}

func (in *inbox) Down(from distrib.NodeID, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if old, ok := in.downs[from]; ok {
		panic(fmt.Sprintf("down twice: %v, %v", old, err))
	}
	in.downs[from] = err
}

func (in *inbox) down(from distrib.NodeID) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.downs[from]
}

func (in *inbox) lost() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.downs)
}

func (in *inbox) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.got)
}

// network is n nodes with inboxes.
func network(n int, o memnet.Options) (*memnet.Network, []*inbox) {
	net := memnet.NewNetwork(n, o)
	boxes := make([]*inbox, n)
	for i := range boxes {
		boxes[i] = newInbox()
		net.Node(distrib.NodeID(i)).Serve(boxes[i])
	}
	return net, boxes
}

// pass lets a time pass, and all that happens in it be seen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func closeAll(net *memnet.Network, n int) {
	for i := range n {
		net.Node(distrib.NodeID(i)).Close()
	}
}

func body(n int) [][]byte { return [][]byte{make([]byte, n)} }

// send sends n bytes and returns where the time and the error of its Done will be.
func send(net *memnet.Network, from, to distrib.NodeID, c distrib.Class, n int) *sent {
	s := &sent{start: time.Now(), at: -1}
	net.Node(from).Send(to, &distrib.Msg{Class: c, Body: body(n), Done: s.done})
	return s
}

type sent struct {
	start time.Time
	at    time.Duration
	err   error
}

func (s *sent) done(err error) {
	if s.at >= 0 {
		panic("done twice")
	}
	s.at, s.err = time.Since(s.start), err
}

func near(t *testing.T, what string, have, want time.Duration) {
	t.Helper()
	if d := have - want; d < -time.Microsecond || d > time.Microsecond {
		t.Errorf("%s: %v, want %v", what, have, want)
	}
}

// TestTransferTime: latency and size over rate; the next message of a stream leaves
// while one flies.
func TestTransferTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, boxes := network(2, memnet.Options{Bps: 8e6, Latency: 10 * time.Millisecond})
		a := send(net, 0, 1, distrib.Updates, 1e6)
		b := send(net, 0, 1, distrib.Updates, 1e6)
		pass(time.Minute)
		near(t, "first", a.at, 1010*time.Millisecond)
		near(t, "second", b.at, 2010*time.Millisecond)
		if n := boxes[1].count(); n != 2 {
			t.Errorf("%d messages, want 2", n)
		}
		closeAll(net, 2)
	})
}

// TestSharing: max-min fairness. Two senders share node 2's downlink, and what the slower
// one cannot use, the other has.
func TestSharing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, _ := network(4, memnet.Options{Bps: 8e6})
		net.SetRate(0, 2e6, 8e6) // 250 kB/s up
		a := send(net, 0, 2, distrib.Updates, 250e3)
		b := send(net, 1, 2, distrib.Updates, 750e3)
		c := send(net, 2, 3, distrib.Updates, 1e6) // the uplink of 2 is its own
		pass(time.Minute)
		near(t, "slow sender", a.at, time.Second)
		near(t, "fast sender", b.at, time.Second)
		near(t, "other direction", c.at, time.Second)
		closeAll(net, 4)
	})
}

// TestClassesShare: two classes between two nodes flow side by side.
func TestClassesShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, _ := network(2, memnet.Options{Bps: 8e6})
		a := send(net, 0, 1, distrib.Updates, 1e6)
		b := send(net, 0, 1, distrib.Control, 100e3)
		pass(time.Minute)
		near(t, "bulk", a.at, 1100*time.Millisecond)
		near(t, "control", b.at, 200*time.Millisecond)
		closeAll(net, 2)
	})
}

// TestTrace: a transfer goes on at the new rate.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, _ := network(2, memnet.Options{Bps: 8e6, Trace: []memnet.Rate{
			{At: 500 * time.Millisecond, Node: 0, Up: 2e6, Down: 2e6},
			{At: 1500 * time.Millisecond, Node: 0, Up: 8e6, Down: 8e6}}})
		a := send(net, 0, 1, distrib.Updates, 1e6)
		pass(time.Minute)
		near(t, "transfer", a.at, 1750*time.Millisecond)
		closeAll(net, 2)
	})
}

// TestSlowHandler: one that blocks holds its stream's sender back, and no other's.
func TestSlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, boxes := network(3, memnet.Options{Window: 2000})
		gate := make(chan struct{})
		boxes[2].hold = func(from distrib.NodeID, m *distrib.Msg) {
			if from == 0 && m.Class == distrib.Updates {
				<-gate
			}
		}
		var ours []*sent
		for range 4 {
			ours = append(ours, send(net, 0, 2, distrib.Updates, 1000))
		}
		class := send(net, 0, 2, distrib.Control, 5000)
		other := send(net, 1, 2, distrib.Updates, 1000)
		synctest.Wait()
		for i, want := range []bool{true, true, false, false} {
			if done := ours[i].at >= 0; done != want {
				t.Errorf("message %d done: %v, want %v", i, done, want)
			}
		}
		if class.at < 0 || other.at < 0 {
			t.Error("another stream was held back")
		}
		close(gate)
		synctest.Wait()
		if ours[3].at < 0 || boxes[2].count() != 6 {
			t.Errorf("%d messages after the handler went on, want 6", boxes[2].count())
		}
		closeAll(net, 3)
	})
}

// TestOwnership: the sender may write its bytes again after Done, and the receiver keeps
// what it got; what waits for Serve is there.
func TestOwnership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.NewNetwork(1, memnet.Options{})
		head, part := []byte("head"), []byte("one")
		net.Node(0).Send(0, &distrib.Msg{Tag: 7, Head: head, Body: [][]byte{part, []byte("two")},
			Done: func(error) { copy(head, "xxxx"); copy(part, "xxx") }})
		synctest.Wait()
		in := newInbox()
		net.Node(0).Serve(in)
		synctest.Wait()
		if len(in.got) != 1 {
			t.Fatalf("%d messages, want 1", len(in.got))
		}
		m := in.got[0].m
		if m.Tag != 7 || string(m.Head) != "head" || string(m.Body[0]) != "onetwo" {
			t.Errorf("got %d %q %q", m.Tag, m.Head, m.Body)
		}
		closeAll(net, 1)
	})
}

// TestRefused: bad messages, and those of nodes that have ended, go to Done alone.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, _ := network(2, memnet.Options{})
		refused := func(want error, to distrib.NodeID, m *distrib.Msg) {
			t.Helper()
			s := &sent{at: -1}
			m.Done = s.done
			net.Node(0).Send(to, m)
			synctest.Wait()
			if !errors.Is(s.err, want) {
				t.Errorf("refused with %v, want %v", s.err, want)
			}
		}
		refused(memnet.ErrMessage, 2, &distrib.Msg{})
		refused(memnet.ErrMessage, -1, &distrib.Msg{})
		refused(memnet.ErrMessage, 1, &distrib.Msg{Class: 99})
		refused(memnet.ErrMessage, 1, &distrib.Msg{Head: make([]byte, distrib.MaxHead+1)})
		net.Node(1).Close()
		refused(memnet.ErrClosed, 1, &distrib.Msg{})
		net.Node(0).Close()
		refused(memnet.ErrClosed, 0, &distrib.Msg{})
	})
}

// TestClose sends what was queued first; the peer hears of it after the last message.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, boxes := network(2, memnet.Options{Bps: 8e6, Latency: time.Millisecond})
		boxes[1].hold = func(distrib.NodeID, *distrib.Msg) { time.Sleep(time.Second) }
		a := send(net, 0, 1, distrib.Updates, 1e6)
		b := send(net, 0, 1, distrib.Updates, 1e6)
		start := time.Now()
		net.Node(0).Close()
		near(t, "close", time.Since(start), 2001*time.Millisecond)
		synctest.Wait()
		if a.err != nil || b.err != nil || boxes[1].lost() > 0 {
			t.Errorf("%v, %v, down: %v", a.err, b.err, boxes[1].lost())
		}
		pass(time.Minute)
		if boxes[1].count() != 2 || !errors.Is(boxes[1].down(0), memnet.ErrClosed) {
			t.Errorf("%d messages, then down: %v", boxes[1].count(), boxes[1].lost())
		}
		net.Node(1).Close()
		synctest.Wait()
		if boxes[0].lost() > 0 {
			t.Errorf("a closed node is told %v", boxes[0].lost())
		}
	})
}

// TestKill: what was under way is refused, and all are told.
func TestKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, boxes := network(3, memnet.Options{Bps: 8e6, Latency: time.Second})
		a := send(net, 0, 1, distrib.Updates, 1e6)
		b := send(net, 1, 2, distrib.Updates, 1e5) // flies when node 1 dies
		time.Sleep(500 * time.Millisecond)
		net.Kill(1)
		synctest.Wait()
		if !errors.Is(a.err, memnet.ErrKilled) || !errors.Is(b.err, memnet.ErrKilled) {
			t.Errorf("refused with %v, %v", a.err, b.err)
		}
		for _, i := range []int{0, 2} {
			if err := boxes[i].down(1); !errors.Is(err, memnet.ErrLost) {
				t.Errorf("node %d is told %v", i, err)
			}
		}
		if err := boxes[1].down(0); !errors.Is(err, memnet.ErrKilled) {
			t.Errorf("the killed node is told %v", err)
		}
		c := send(net, 0, 2, distrib.Updates, 1e6)
		pass(time.Minute)
		if c.err != nil || boxes[2].count() != 1 {
			t.Errorf("the others: %v, %d messages", c.err, boxes[2].count())
		}
		closeAll(net, 3)
	})
}

// TestPartition: traffic stands still, goes on where it was when healed, and fails when
// that takes too long.
func TestPartition(t *testing.T) {
	for _, timeout := range []time.Duration{0, 20 * time.Second, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			net, boxes := network(3, memnet.Options{Bps: 8e6, Timeout: timeout})
			a := send(net, 0, 1, distrib.Updates, 1e6)
			b := send(net, 2, 1, distrib.Control, 100)
			time.Sleep(500 * time.Millisecond)
			net.Partition(0)
			pass(10 * time.Second)
			net.Heal()
			pass(time.Minute)
			if timeout == 5*time.Second {
				near(t, "failure", a.at, 5500*time.Millisecond)
				if !errors.Is(a.err, memnet.ErrTimeout) ||
					!errors.Is(boxes[1].down(0), memnet.ErrTimeout) ||
					!errors.Is(boxes[0].down(2), memnet.ErrTimeout) {
					t.Errorf("%v, %v, %v", a.err, boxes[1].lost(), boxes[0].lost())
				}
			} else {
				near(t, "transfer", a.at, 11*time.Second+100*time.Microsecond)
			}
			if b.err != nil {
				t.Errorf("inside a part: %v", b.err)
			}
			closeAll(net, 3)
		})
	}
}

// TestPause: a stopped process neither sends nor handles.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, boxes := network(2, memnet.Options{Latency: time.Millisecond,
			Timeout: 5 * time.Second})
		a := send(net, 0, 1, distrib.Updates, 100)
		net.Pause(1, 3*time.Second)
		b := send(net, 1, 0, distrib.Updates, 100)
		pass(time.Minute)
		near(t, "out", b.at, 3001*time.Millisecond)
		near(t, "handled", boxes[1].got[0].at, 3*time.Second)
		if a.err != nil || boxes[0].lost() > 0 {
			t.Errorf("%v, %v", a.err, boxes[0].lost())
		}
		closeAll(net, 2)
	})
}

// TestLoss: with certain loss the first message ends its way, for both.
func TestLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, boxes := network(2, memnet.Options{Loss: 1})
		a := send(net, 0, 1, distrib.Updates, 100)
		synctest.Wait()
		if !errors.Is(a.err, memnet.ErrLost) || !errors.Is(boxes[0].down(1), memnet.ErrLost) ||
			!errors.Is(boxes[1].down(0), memnet.ErrLost) {
			t.Errorf("%v, %v, %v", a.err, boxes[0].lost(), boxes[1].lost())
		}
		closeAll(net, 2)
	})
}

// TestLinks: goodput is what a way had while it was used.
func TestLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, _ := network(3, memnet.Options{Bps: 8e6, Window: 1e6})
		for range 3 {
			send(net, 0, 1, distrib.Updates, 1e6)
		}
		if l := net.Node(0).Links(); !l[0].Congested || l[1].Congested {
			t.Errorf("congested: %+v", l)
		}
		pass(10 * time.Second)
		net.SetRate(1, 8e6, 1e6)
		for range 20 {
			send(net, 0, 1, distrib.Updates, 1e5)
		}
		pass(time.Minute)
		l := net.Node(0).Links()
		if len(l) != 2 || l[0].Bps < 1e6 || l[0].Bps > 1.2e6 || l[1].Bps != 0 {
			t.Errorf("links %+v", l)
		}
		closeAll(net, 3)
	})
}

// TestExactlyOnceInOrder: whatever the network is like, every message of a stream comes
// once, in order, and every Done is called once; bytes are counted.
func TestExactlyOnceInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) { drawTraffic(rt) })
	})
}

func drawTraffic(rt *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(rt, "nodes")
	net, boxes := network(n, memnet.Options{
		Seed:    rapid.Uint64().Draw(rt, "seed"),
		Latency: time.Duration(rapid.IntRange(0, 3).Draw(rt, "latency")) * time.Millisecond,
		Jitter:  time.Duration(rapid.IntRange(0, 9).Draw(rt, "jitter")) * time.Millisecond,
		Bps:     float64(rapid.IntRange(0, 3).Draw(rt, "mbps")) * 1e6,
		Window:  rapid.IntRange(1, 5000).Draw(rt, "window"),
	})
	slow := time.Duration(rapid.IntRange(0, 2).Draw(rt, "slow")) * time.Millisecond
	for _, b := range boxes {
		b.hold = func(distrib.NodeID, *distrib.Msg) { time.Sleep(slow) }
	}
	node := rapid.IntRange(0, n-1)
	next := map[[3]int]uint64{}
	var all []*sent
	crossed := int64(0)
	for range rapid.IntRange(0, 60).Draw(rt, "messages") {
		from, to := node.Draw(rt, "from"), node.Draw(rt, "to")
		class := rapid.IntRange(0, distrib.Classes-1).Draw(rt, "class")
		size := rapid.IntRange(1, 3000).Draw(rt, "size")
		s := &sent{at: -1}
		key := [3]int{from, to, class}
		net.Node(distrib.NodeID(from)).Send(distrib.NodeID(to), &distrib.Msg{
			Class: distrib.Class(class), Tag: next[key], Body: body(size), Done: s.done})
		next[key]++
		all = append(all, s)
		if from != to {
			crossed += int64(size)
		}
		time.Sleep(time.Duration(rapid.IntRange(0, 1).Draw(rt, "gap")) * time.Millisecond)
	}
	pass(time.Hour)
	for i, s := range all {
		if s.at < 0 || s.err != nil {
			rt.Fatalf("message %d: done %v, %v", i, s.at >= 0, s.err)
		}
	}
	checkOrder(rt, boxes, next)
	var bytes int64
	for i := range n {
		out, _ := net.Node(distrib.NodeID(i)).Stats()
		bytes += out.Total().Bytes
	}
	if bytes != crossed {
		rt.Fatalf("%d bytes counted, %d sent", bytes, crossed)
	}
	closeAll(net, n)
}

func checkOrder(rt *rapid.T, boxes []*inbox, next map[[3]int]uint64) {
	for to, b := range boxes {
		seen := map[[3]int]uint64{}
		for _, a := range b.got {
			key := [3]int{int(a.from), to, int(a.m.Class)}
			if a.m.Tag != seen[key] {
				rt.Fatalf("stream %v: message %d comes after %d", key, a.m.Tag, seen[key])
			}
			seen[key]++
		}
		for key, n := range next {
			if key[1] == to && seen[key] != n {
				rt.Fatalf("stream %v: %d of %d messages", key, seen[key], n)
			}
		}
	}
}
