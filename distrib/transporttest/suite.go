package transporttest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
)

// Network makes the transports that are tested.
type Network struct {
	// New makes the transports of a view of nodes 0 to n-1. What they hold is released
	// when t ends.
	New func(t *testing.T, n int) []distrib.Transport
	// Kill ends a node of the last New as if its process were killed; nil: nobody can.
	Kill func(t *testing.T, node distrib.NodeID)
	// Window is the most bytes of a stream that may be under way or wait at the receiver.
	Window int
	// In runs a test, as in a bubble of testing/synctest; nil: as it is.
	In func(t *testing.T, test func(*testing.T))
}

// Run runs all tests on a network.
func Run(t *testing.T, n Network) {
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"order", (*suite).order},
		{"sizes", (*suite).sizes},
		{"senders", (*suite).senders},
		{"ownership", (*suite).ownership},
		{"pressure", (*suite).pressure},
		{"late", (*suite).late},
		{"refused", (*suite).refused},
		{"close", (*suite).closes},
		{"closing both", (*suite).closesBoth},
		{"kill", (*suite).kill},
		{"drop", (*suite).drop},
		{"links", (*suite).links},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := n.In
			if in == nil {
				in = func(t *testing.T, test func(*testing.T)) { test(t) }
			}
			in(t, func(t *testing.T) { c.test(&suite{t, n}) })
		})
	}
}

type suite struct {
	*testing.T
	net Network
}

// patience is how long something that must come may take.
const patience = time.Minute

// within waits for a channel.
func within[T any](s *suite, what string, c <-chan T) (v T) {
	s.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		s.Fatalf("%s did not come", what)
	}
	return v
}

// inbox is a handler that keeps what comes.
type inbox struct {
	mu      sync.Mutex
	got     map[way][]*distrib.Msg
	downs   map[distrib.NodeID][]error
	late    []string // what came after Down
	changed chan struct{}
	block   func(from distrib.NodeID, m *distrib.Msg) // may be nil
}

// way is a stream as its receiver sees it.
type way struct {
	from  distrib.NodeID
	class distrib.Class
}

func newInbox() *inbox {
	return &inbox{got: map[way][]*distrib.Msg{}, downs: map[distrib.NodeID][]error{},
		changed: make(chan struct{}, 1)}
}

// Receive keeps a message.
func (b *inbox) Receive(from distrib.NodeID, m *distrib.Msg) {
	if b.block != nil {
		b.block(from, m)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.downs[from]) > 0 {
		b.late = append(b.late, fmt.Sprintf("a message of node %d after its end", from))
	}
	w := way{from, m.Class}
	b.got[w] = append(b.got[w], m)
	b.poke()
}

// Down keeps the end of a node.
func (b *inbox) Down(from distrib.NodeID, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.downs[from] = append(b.downs[from], err)
	b.poke()
}

func (b *inbox) poke() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// until waits for a condition of what has come.
func (b *inbox) until(s *suite, what string, ok func() bool) {
	s.Helper()
	for give := time.After(patience); ; {
		b.mu.Lock()
		yes := ok()
		b.mu.Unlock()
		if yes {
			return
		}
		select {
		case <-b.changed:
		case <-give:
			s.Fatalf("%s did not come", what)
		}
	}
}

func (b *inbox) count(from distrib.NodeID, c distrib.Class) int { return len(b.got[way{from, c}]) }

// messages is what has come on a way.
func (b *inbox) messages(from distrib.NodeID, c distrib.Class) []*distrib.Msg {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got[way{from, c}]
}

// open makes n nodes with an inbox each.
func (s *suite) open(n int) ([]distrib.Transport, []*inbox) {
	ts := s.net.New(s.T, n)
	boxes := make([]*inbox, n)
	for i, t := range ts {
		boxes[i] = newInbox()
		t.Serve(boxes[i])
	}
	return ts, boxes
}

func closeAll(s *suite, ts []distrib.Transport) {
	var all sync.WaitGroup
	for _, t := range ts {
		all.Go(func() {
			if err := t.Close(); err != nil {
				s.Error(err)
			}
		})
	}
	all.Wait()
}

// tally counts the calls of Done of messages.
type tally struct {
	mu    sync.Mutex
	calls map[*distrib.Msg][]error
	left  int
	zero  chan struct{}
}

func newTally() *tally {
	return &tally{calls: map[*distrib.Msg][]error{}, zero: make(chan struct{}, 1)}
}

// of has a message counted.
func (c *tally) of(m *distrib.Msg) *distrib.Msg {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left++
	m.Done = func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls[m] = append(c.calls[m], err)
		if c.left--; c.left == 0 {
			select {
			case c.zero <- struct{}{}:
			default:
			}
		}
	}
	return m
}

func (c *tally) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// refused is how many messages were.
func (c *tally) refused() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, errs := range c.calls {
		if errs[0] != nil {
			n++
		}
	}
	return n
}

// all waits for every Done, and checks that each was called once, with or without an error.
func (c *tally) all(s *suite, what string, ok func(error) bool) {
	s.Helper()
	within(s, "Done of all messages", c.zero)
	c.mu.Lock()
	defer c.mu.Unlock()
	for m, errs := range c.calls {
		if len(errs) != 1 || !ok(errs[0]) {
			s.Errorf("%s: Done of message %d of class %d: %v", what, m.Tag, m.Class, errs)
		}
	}
}

func isNil(err error) bool  { return err == nil }
func notNil(err error) bool { return err != nil }

// pattern is n bytes that no other message has.
func pattern(seed uint64, n int) []byte {
	b := make([]byte, n+8)
	for i := 0; i < n; i += 8 {
		seed = seed*6364136223846793005 + 1442695040888963407
		binary.LittleEndian.PutUint64(b[i:], seed^seed>>29)
	}
	return b[:n:n]
}

// split cuts bytes into parts of odd sizes, some of them empty.
func split(b []byte, sizes ...int) [][]byte {
	parts := [][]byte{}
	for i := 0; len(b) > 0; i++ {
		n := min(sizes[i%len(sizes)], len(b))
		parts = append(parts, b[:n])
		b = b[n:]
	}
	return append(parts, nil)
}

func same(m *distrib.Msg, head, body []byte) bool {
	return bytes.Equal(m.Head, head) && bytes.Equal(bytes.Join(m.Body, nil), body)
}
