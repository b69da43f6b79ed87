package memnet

import (
	"bytes"
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gomem/gomem/distrib"
)

// stream is the messages of one class from one node to another.
type stream struct {
	from, to *Node
	class    distrib.Class
	draws    *rand.Rand
	number   int  // of the network's streams
	place    int  // among those that flow
	flies    int  // among those that have something in flight
	touched  bool // it is to be looked at, by the network
	waits    bool // and by its receiver

	out    []*distrib.Msg // with the sender
	flows  bool           // the first one is under way
	left   float64        // bytes of it that have not left
	rate   float64        // bytes a second
	flight []flying
	in     []*distrib.Msg // arrived, not handled
	held   int            // bytes that have left and are not handled
	serves bool           // a goroutine hands messages to the handler
}

// flying is the receiver's copy of a message that has left.
type flying struct {
	m    *distrib.Msg
	at   time.Duration
	done func(error)
}

func newStream(from, to *Node, class distrib.Class) *stream {
	way := uint64(from.id)<<32 | uint64(to.id)<<8 | uint64(class)
	return &stream{from: from, to: to, class: class,
		draws: rand.New(rand.NewPCG(from.net.o.Seed, way))}
}

// size is what a message costs on the wire, and is never nothing, so that a window holds
// a bounded number of messages.
func (s *stream) size(m *distrib.Msg) int {
	n := len(m.Head) + s.from.net.o.Overhead
	for _, b := range m.Body {
		n += len(b)
	}
	return max(n, 1)
}

// ready reports whether the first message may be under way. One that is larger than the
// window waits until nothing else is in it.
func (s *stream) ready() bool {
	if len(s.out) == 0 || s.from.net.silent(s.from, s.to) {
		return false
	}
	return s.held == 0 || s.held+s.size(s.out[0]) <= s.from.net.o.Window
}

// leave ends the first message's transfer, and begins the next one's, which has had the
// time that the first one did not need.
func (s *stream) leave(now time.Duration) {
	m, n := s.out[0], s.from.net
	s.out = slices.Delete(s.out, 0, 1)
	size := s.size(m)
	s.held += size
	s.from.sent.add(s, size)
	fly := flying{m: copied(m), at: now, done: m.Done}
	if s.from != s.to {
		fly.at += n.latency(s.from.id, s.to.id) + s.jitter()
		if k := len(s.flight); k > 0 {
			fly.at = max(fly.at, s.flight[k-1].at)
		}
	}
	s.flight = append(s.flight, fly)
	if len(s.flight) == 1 {
		heap.Push(&n.flying, s)
	}
	if s.from != s.to && s.draws.Float64() < n.o.Loss {
		n.fail(s.from, s.to, ErrLost)
		return
	}
	spare := min(s.left, 0)
	s.left = 0
	if s.flow(s.ready()); s.flows {
		s.left = float64(s.size(s.out[0])) + spare
	}
}

func (s *stream) jitter() time.Duration {
	if s.from.net.o.Jitter <= 0 {
		return 0
	}
	return time.Duration(s.draws.Int64N(int64(s.from.net.o.Jitter) + 1))
}

// copied is a message as it arrives: its bytes are the receiver's, in one piece.
func copied(m *distrib.Msg) *distrib.Msg {
	c := &distrib.Msg{Class: m.Class, Tag: m.Tag, Head: bytes.Clone(m.Head)}
	if b := bytes.Join(m.Body, nil); len(b) > 0 {
		c.Body = [][]byte{b}
	}
	return c
}

// land is the arrival of what has flown longest.
func (s *stream) land() {
	f := s.flight[0]
	s.flight = slices.Delete(s.flight, 0, 1)
	s.to.received.add(s, s.size(f.m))
	s.in = append(s.in, f.m)
	s.from.unsent--
	s.to.comes(s)
	s.from.tell(f.done, nil)
}

// drop refuses what the receiver does not have.
func (s *stream) drop(err error) {
	for _, m := range s.out {
		s.from.tell(m.Done, err)
	}
	for _, f := range s.flight {
		s.held -= s.size(f.m)
		s.from.tell(f.done, err)
	}
	n := s.from.net
	if len(s.flight) > 0 {
		heap.Remove(&n.flying, s.flies)
	}
	s.from.unsent -= len(s.out) + len(s.flight)
	s.flow(false)
	s.out, s.flight, s.left = nil, nil, 0
	n.touch(s)
}

// serve hands what has arrived to the handler, until there is no more.
func (s *stream) serve(h distrib.Handler) {
	for m := s.take(nil); m != nil; m = s.take(m) {
		h.Receive(s.from.id, m)
	}
}

// take gives room for what was handled, and returns what is next.
func (s *stream) take(handled *distrib.Msg) (next *distrib.Msg) {
	s.to.net.locked(func() {
		if handled != nil {
			s.held -= s.size(handled)
			s.to.net.touch(s)
		}
		if s.serves = len(s.in) > 0 && s.to.serving(); s.serves {
			next = s.in[0]
			s.in = slices.Delete(s.in, 0, 1)
			return
		}
		s.to.comes(s) // nobody serves it
	})
	return next
}
