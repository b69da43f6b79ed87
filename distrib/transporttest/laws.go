package transporttest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomem/gomem/distrib"
)

// order: messages of a stream come once, whole and in order, between all nodes at once, to
// oneself too.
func (s *suite) order() {
	const nodes, each = 3, 60
	ts, boxes := s.open(nodes)
	done := newTally()
	for i := range uint64(each) {
		for _, t := range ts {
			for to := range distrib.NodeID(nodes) {
				for c := range distrib.Class(distrib.Classes) {
					t.Send(to, done.of(&distrib.Msg{Class: c, Tag: i,
						Body: [][]byte{pattern(i, int(i)*int(i)*17%9000)}}))
				}
			}
		}
	}
	done.all(s, "all arrive", isNil)
	for _, b := range boxes {
		for from := range distrib.NodeID(nodes) {
			for c := range distrib.Class(distrib.Classes) {
				b.until(s, "a message", func() bool { return b.count(from, c) == each })
				for i, m := range b.messages(from, c) {
					if m.Tag != uint64(i) || !same(m, nil, pattern(m.Tag, i*i*17%9000)) {
						s.Fatalf("message %d of node %d in class %d has tag %d", i, from, c, m.Tag)
					}
				}
			}
		}
	}
	closeAll(s, ts)
}

// sizes: heads and bodies of all sizes, in parts of all sizes, come as they were.
func (s *suite) sizes() {
	ts, boxes := s.open(2)
	type sent struct{ head, body []byte }
	var all []sent
	for i, n := range []int{0, 1, 2047, 2048, 2049, 8191, 1<<20 - 1, 1 << 20, 1<<20 + 1,
		3<<20 + 5} {
		for j, sizes := range [][]int{{1 << 30}, {1}, {2048, 1, 0, 3}, {100_000, 7}, {4096}} {
			if sizes[0] == 1 && n > 10_000 {
				continue
			}
			m := sent{pattern(uint64(i), (i*j*431)%(distrib.MaxHead+1)), pattern(uint64(j), n)}
			all = append(all, m)
			ts[0].Send(1, &distrib.Msg{Class: distrib.Updates, Tag: uint64(len(all)) << 40,
				Head: m.head, Body: split(m.body, sizes...)})
		}
	}
	b := boxes[1]
	b.until(s, "a message", func() bool { return b.count(0, distrib.Updates) == len(all) })
	for i, m := range b.messages(0, distrib.Updates) {
		if !same(m, all[i].head, all[i].body) || m.Tag != uint64(i+1)<<40 {
			s.Errorf("message %d, of %d and %d bytes, has changed", i, len(all[i].head),
				len(all[i].body))
		}
	}
	closeAll(s, ts)
}

// senders: those who send at the same time keep their own orders.
func (s *suite) senders() {
	const senders, each = 8, 50
	ts, boxes := s.open(2)
	var all sync.WaitGroup
	for w := range uint64(senders) {
		all.Go(func() {
			for i := range uint64(each) {
				ts[0].Send(1, &distrib.Msg{Class: distrib.Control, Tag: w<<32 | i})
			}
		})
	}
	all.Wait()
	b := boxes[1]
	b.until(s, "a message", func() bool { return b.count(0, distrib.Control) == senders*each })
	next := map[uint64]uint64{}
	for _, m := range b.messages(0, distrib.Control) {
		if w := m.Tag >> 32; uint64(uint32(m.Tag)) != next[w] {
			s.Fatalf("sender %d: %d came, %d is next", w, uint32(m.Tag), next[w])
		}
		next[m.Tag>>32]++
	}
	closeAll(s, ts)
}

// ownership: after Done the sender may write to its bytes, and the receiver may keep and
// write to its own.
func (s *suite) ownership() {
	for _, c := range []distrib.Class{distrib.ValuesOf, distrib.Collective} {
		s.ownershipOf(c)
	}
}

func (s *suite) ownershipOf(c distrib.Class) {
	s.Helper()
	const each = 20
	ts, boxes := s.open(2)
	for _, to := range []distrib.NodeID{0, 1} {
		done := newTally()
		for i := range uint64(each) {
			head, body := pattern(i, 64), pattern(i, 300_000)
			m := done.of(&distrib.Msg{Class: c, Tag: i, Head: head,
				Body: split(body, 100_000, 3)})
			counted := m.Done
			m.Done = func(err error) {
				clear(head)
				clear(body)
				counted(err)
			}
			ts[0].Send(to, m)
		}
		done.all(s, "all arrive", isNil)
		b := boxes[to]
		b.until(s, "a message", func() bool { return b.count(0, c) == each })
		for i, m := range b.messages(0, c) {
			if !same(m, pattern(uint64(i), 64), pattern(uint64(i), 300_000)) {
				s.Fatalf("message %d has changed with the sender's bytes", i)
			}
			for _, p := range m.Body {
				clear(p)
			}
		}
	}
	closeAll(s, ts)
}

// pressure: while a handler blocks, its stream does, and in the end Done does not come;
// other classes go on.
func (s *suite) pressure() {
	for _, c := range []distrib.Class{distrib.Updates, distrib.Collective} {
		s.pressureOf(c)
	}
}

func (s *suite) pressureOf(c distrib.Class) {
	s.Helper()
	ts := s.net.New(s.T, 2)
	release, entered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b := newInbox()
	b.block = func(_ distrib.NodeID, m *distrib.Msg) {
		if m.Class == c {
			once.Do(func() { close(entered) })
			<-release
		}
	}
	ts[0].Serve(newInbox())
	ts[1].Serve(b)
	const size = 1 << 20
	total := 4*s.net.Window/size + 64
	done := newTally()
	for i := range uint64(total) {
		ts[0].Send(1, done.of(&distrib.Msg{Class: c, Tag: i,
			Body: [][]byte{make([]byte, size)}}))
	}
	within(s, "the first message", entered)
	for i := range uint64(100) { // enough of them for what may flow to have flowed
		ts[0].Send(1, &distrib.Msg{Class: distrib.Control, Tag: i})
		b.until(s, "a message of another class",
			func() bool { return b.count(0, distrib.Control) == int(i)+1 })
	}
	if n := done.count(); n == total {
		s.Errorf("all %d messages of 1 MiB are done, and none is handled", n)
	}
	close(release)
	done.all(s, "all arrive", isNil)
	b.until(s, "a message", func() bool { return b.count(0, c) == total })
	closeAll(s, ts)
}

// late: what comes before Serve waits for it.
func (s *suite) late() {
	ts := s.net.New(s.T, 2)
	ts[0].Serve(newInbox())
	for i := range uint64(10) {
		ts[0].Send(1, &distrib.Msg{Class: distrib.Collective, Tag: i})
	}
	b := newInbox()
	ts[1].Serve(b)
	b.until(s, "a message", func() bool { return b.count(0, distrib.Collective) == 10 })
	closeAll(s, ts)
}

// refused: what cannot be sent is told to Done, once, and not by the goroutine that sends.
func (s *suite) refused() {
	ts, _ := s.open(2)
	done := newTally()
	var held sync.Mutex
	bad := func(to distrib.NodeID, m *distrib.Msg) {
		counted := done.of(m).Done
		m.Done = func(err error) {
			held.Lock() // whoever sends may hold what Done needs
			defer held.Unlock()
			counted(err)
		}
		held.Lock()
		defer held.Unlock()
		ts[0].Send(to, m)
	}
	bad(2, &distrib.Msg{})
	bad(-1, &distrib.Msg{})
	bad(1, &distrib.Msg{Class: distrib.Class(distrib.Classes)})
	bad(1, &distrib.Msg{Head: make([]byte, distrib.MaxHead+1)})
	bad(0, &distrib.Msg{Head: make([]byte, distrib.MaxHead+1)})
	ts[0].Send(9, &distrib.Msg{}) // nobody asks
	done.all(s, "refused", notNil)
	closeAll(s, ts)
}

// closes: Close sends what was queued; then the others are told, once, after all of it;
// the node that was closed refuses, and its handler is not called any more.
func (s *suite) closes() {
	const each = 30
	ts, boxes := s.open(3)
	done := newTally()
	for i := range uint64(each) {
		ts[0].Send(1, done.of(&distrib.Msg{Class: distrib.Class(i % 4), Tag: i,
			Body: [][]byte{pattern(i, 200_000)}}))
	}
	if err := ts[0].Close(); err != nil {
		s.Error(err)
	}
	done.all(s, "what was queued arrives", isNil)
	for _, b := range boxes[1:] {
		b.until(s, "the end of node 0", func() bool { return len(b.downs[0]) > 0 })
	}
	total := 0
	for c := range distrib.Class(distrib.Classes) {
		total += len(boxes[1].messages(0, c))
	}
	if total != each {
		s.Errorf("%d of %d messages came before the end", total, each)
	}
	after := newTally()
	ts[0].Send(1, after.of(&distrib.Msg{}))
	ts[0].Send(0, after.of(&distrib.Msg{}))
	ts[1].Send(0, after.of(&distrib.Msg{}))
	after.all(s, "nobody is there", notNil)
	ts[1].Send(2, &distrib.Msg{}) // the others go on
	boxes[2].until(s, "a message", func() bool { return boxes[2].count(1, distrib.Control) == 1 })
	if err := ts[0].Close(); err != nil {
		s.Errorf("closed again: %v", err)
	}
	closeAll(s, ts[1:])
	s.once(boxes[1:], 0)
	boxes[0].mu.Lock()
	defer boxes[0].mu.Unlock()
	if len(boxes[0].got)+len(boxes[0].downs) > 0 {
		s.Errorf("a closed node was told of %v", boxes[0].downs)
	}
}

// once checks that nodes were told of a node's end once, with an error, and of nothing
// after it.
func (s *suite) once(boxes []*inbox, node distrib.NodeID) {
	s.Helper()
	for i, b := range boxes {
		b.mu.Lock()
		if errs := b.downs[node]; len(errs) != 1 || errs[0] == nil || len(b.late) > 0 {
			s.Errorf("box %d was told of the end of node %d: %v, %v", i, node, errs, b.late)
		}
		b.mu.Unlock()
	}
}

// closesBoth: nodes that send to each other and close at the same time lose nothing.
func (s *suite) closesBoth() {
	const each = 10
	ts, boxes := s.open(2)
	for i := range uint64(each) {
		for n, t := range ts {
			t.Send(distrib.NodeID(1-n), &distrib.Msg{Tag: i, Body: [][]byte{pattern(i, 100_000)}})
		}
	}
	for n, b := range boxes {
		b.until(s, "a message", func() bool {
			return b.count(distrib.NodeID(1-n), distrib.Control) == each
		})
	}
	closeAll(s, ts)
}

// kill: the end of a process is told to all others, once and after what it had sent;
// those who wait for it are refused.
func (s *suite) kill() {
	if s.net.Kill == nil {
		s.Skip("nobody can be killed")
	}
	ts := s.net.New(s.T, 3)
	boxes := []*inbox{newInbox(), newInbox(), newInbox()}
	stuck := make(chan struct{})
	var first atomic.Bool
	boxes[2].block = func(distrib.NodeID, *distrib.Msg) {
		if first.CompareAndSwap(false, true) {
			<-stuck
		}
	}
	hold, held := make(chan struct{}), make(chan struct{})
	boxes[1].block = func(from distrib.NodeID, m *distrib.Msg) {
		if from == 2 && m.Class == distrib.ValuesOf {
			close(held)
			<-hold
		}
	}
	for i, t := range ts {
		t.Serve(boxes[i])
	}
	ts[2].Send(1, &distrib.Msg{})
	ts[2].Send(1, &distrib.Msg{Class: distrib.ValuesOf})
	ts[2].Send(0, &distrib.Msg{})
	within(s, "a message", held)
	for _, b := range boxes[:2] {
		b.until(s, "a message", func() bool { return b.count(2, distrib.Control) == 1 })
	}
	done := newTally()
	total := 2*s.net.Window>>20 + 32
	for i := range uint64(total) {
		ts[0].Send(2, done.of(&distrib.Msg{Class: distrib.Updates, Tag: i,
			Body: [][]byte{make([]byte, 1<<20)}}))
	}
	s.net.Kill(s.T, 2)
	boxes[0].until(s, "the end of node 2", func() bool { return len(boxes[0].downs[2]) > 0 })
	for i := range 50 { // the end comes after what is being handled, however long that takes
		ts[0].Send(1, &distrib.Msg{})
		boxes[1].until(s, "a message", func() bool {
			return boxes[1].count(0, distrib.Control) == i+1 && len(boxes[1].downs[2]) == 0
		})
	}
	close(hold)
	boxes[1].until(s, "the end of node 2", func() bool { return len(boxes[1].downs[2]) > 0 })
	ts[0].Send(2, done.of(&distrib.Msg{Tag: uint64(total)}))
	any := func(error) bool { return true }
	done.all(s, "all are told", any)
	if done.refused() == 0 {
		s.Error("nothing was refused")
	}
	close(stuck)
	closeAll(s, ts[:2])
	s.once(boxes[:2], 2)
	_ = ts[2].Close() // it has ended already
}

// links: they are those to the other nodes that are there, with a rate once there was
// something to measure.
func (s *suite) links() {
	ts, boxes := s.open(3)
	for i := range uint64(20) {
		ts[0].Send(1, &distrib.Msg{Tag: i, Body: [][]byte{make([]byte, 1<<20)}})
	}
	b := boxes[1]
	b.until(s, "a message", func() bool { return b.count(0, distrib.Control) == 20 })
	for give := time.Now().Add(patience); ts[0].Links()[0].Bps == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(give) {
			s.Fatal("20 MiB were sent, and no rate is known")
		}
	}
	links := ts[0].Links()
	if len(links) != 2 || links[0].To != 1 || links[1].To != 2 || links[1].Bps != 0 {
		s.Errorf("%+v", links)
	}
	if err := ts[2].Close(); err != nil {
		s.Error(err)
	}
	boxes[0].until(s, "the end of node 2", func() bool { return len(boxes[0].downs[2]) > 0 })
	if links := ts[0].Links(); len(links) != 1 || links[0].To != 1 {
		s.Errorf("%+v", links)
	}
	closeAll(s, ts[:2])
}

// drop: a node that is said to be gone is down, once, with the reason; who waits for it is refused
// with that, and the others go on. It is told that its connection is lost.
func (s *suite) drop() {
	ts := s.net.New(s.T, 3)
	d, ok := ts[0].(distrib.Dropper)
	if !ok {
		s.Skip("nobody can be given up")
	}
	boxes := []*inbox{newInbox(), newInbox(), newInbox()}
	stuck := make(chan struct{})
	boxes[2].block = func(distrib.NodeID, *distrib.Msg) { <-stuck }
	for i, t := range ts {
		t.Serve(boxes[i])
	}
	gone, refused := errors.New("it is gone"), make(chan error, 1)
	for range 2*s.net.Window>>20 + 32 {
		ts[0].Send(2, &distrib.Msg{Class: distrib.Updates, Body: [][]byte{make([]byte, 1<<20)}})
	}
	ts[0].Send(2, &distrib.Msg{Class: distrib.Updates, Done: func(err error) { refused <- err }})
	d.Drop(2, gone)
	if err := within(s, "a refusal", refused); !errors.Is(err, gone) {
		s.Error("who waits hears: ", err)
	}
	d.Drop(2, errors.New("it is gone again"))
	boxes[0].until(s, "the end of node 2, and why", func() bool {
		return len(boxes[0].downs[2]) > 0 && errors.Is(boxes[0].downs[2][0], gone)
	})
	close(stuck)
	boxes[2].until(s, "the end of node 0", func() bool { return len(boxes[2].downs[0]) > 0 })
	ts[0].Send(1, &distrib.Msg{})
	boxes[1].until(s, "a message", func() bool { return boxes[1].count(0, distrib.Control) == 1 })
	closeAll(s, ts)
	s.once(boxes[:1], 2)
}
