package memnet

import (
	"slices"
	"time"

	"github.com/gomem/gomem/distrib"
)

// Node is the transport of one node of a [Network].
type Node struct {
	net   *Network
	id    distrib.NodeID
	peers []peer

	handler  distrib.Handler
	up, down float64       // bytes a second, 0: no limit
	paused   time.Duration // when the pause began
	resumes  time.Duration // when it ends
	closing  bool
	closed   chan struct{}
	err      error // why nothing goes any more
	calls    []func()
	calling  bool
	awake    bool      // it is to be looked at
	unsent   int       // messages from it that have not arrived
	waiting  []*stream // to it, of which something may have to be handled
	untold   int       // peers that are down, of which its handler was not told

	sent, received Stats
}

// peer is what a node knows of another one.
type peer struct {
	streams [distrib.Classes]*stream // to it
	err     error
	told    bool // the handler was told

	bytes, busy float64 // that went, in how many seconds: lately
	measured    time.Duration
}

// Stats counts what went over a node's link one way, by class.
type Stats [distrib.Classes]Count

// Count is messages and their bytes, [Options.Overhead] among them.
type Count struct{ Messages, Bytes int64 }

func (st *Stats) add(s *stream, size int) {
	if s.from != s.to {
		st[s.class].Messages++
		st[s.class].Bytes += int64(size)
	}
}

// Total is the count over all classes.
func (st *Stats) Total() Count {
	var sum Count
	for _, c := range st {
		sum.Messages += c.Messages
		sum.Bytes += c.Bytes
	}
	return sum
}

func newNode(net *Network, id distrib.NodeID, n int) *Node {
	return &Node{net: net, id: id, peers: make([]peer, n), closed: make(chan struct{}),
		up: net.o.Bps / 8, down: net.o.Bps / 8}
}

// Self is the node's number.
func (n *Node) Self() distrib.NodeID { return n.id }

// Stats counts what has left and what has arrived.
func (n *Node) Stats() (sent, received Stats) {
	n.net.settled(func() { sent, received = n.sent, n.received })
	return sent, received
}

// Send queues a message. Its Done is called when it has arrived, or was refused, and
// never before Send returns or by the goroutine that called it.
func (n *Node) Send(to distrib.NodeID, m *distrib.Msg) {
	n.net.locked(func() {
		if err := n.net.check(n, to, m); err != nil {
			n.tell(m.Done, err)
			return
		}
		s := n.peers[to].streams[m.Class]
		if s == nil {
			s = newStream(n, n.net.nodes[to], m.Class)
			n.peers[to].streams[m.Class] = s
			s.number = len(n.net.streams)
			n.net.streams = append(n.net.streams, s)
		}
		s.out = append(s.out, m)
		n.unsent++
		n.net.touch(s)
	})
}

// Serve starts to deliver messages to a handler. It panics when called twice.
func (n *Node) Serve(h distrib.Handler) {
	n.net.locked(func() {
		if n.handler != nil {
			panic("memnet: Serve was called before")
		}
		n.handler = h
		n.net.rouse(n)
	})
}

// serving reports whether the handler may be called.
func (n *Node) serving() bool {
	return n.handler != nil && (n.err == nil || n.err == ErrKilled) && !n.isPaused()
}

func (n *Node) isPaused() bool { return n.resumes > n.net.flowed }

// Links says how fast messages went to each other node lately, while there were any; a
// way is congested if more than a window of bytes waits for it.
func (n *Node) Links() []distrib.Link {
	var links []distrib.Link
	n.net.settled(func() {
		for to := range n.peers {
			p := &n.peers[to]
			if distrib.NodeID(to) == n.id || p.err != nil {
				continue
			}
			l := distrib.Link{To: distrib.NodeID(to), Congested: p.queued() > n.net.o.Window}
			if p.busy > 0 {
				l.Bps = 8 * p.bytes / p.busy
			}
			links = append(links, l)
		}
	})
	return links
}

func (p *peer) queued() int {
	n := 0
	for _, s := range p.streams {
		if s != nil {
			for _, m := range s.out {
				n += s.size(m)
			}
		}
	}
	return n
}

// recently is how many seconds of sending a measurement goes back, about.
const recently = 1.0

// measure notes that a stream flowed for d seconds.
func (p *peer) measure(bytes, d float64, now time.Duration) {
	p.bytes += float64(bytes)
	if p.measured != now {
		p.measured = now
		p.busy += d
	}
	if p.busy > 2*recently {
		p.bytes /= 2
		p.busy /= 2
	}
}

// Close sends what was queued, as far as its receivers are there, and ends; no call of
// the handler begins after it. The other nodes are told that this one is down. Behind a
// partition that has no timeout it waits for [Network.Heal].
func (n *Node) Close() error {
	n.net.locked(func() {
		if !n.closing {
			n.closing = true
			n.net.closing = append(n.net.closing, n)
		}
	})
	<-n.closed
	return nil
}

// retire ends the nodes that were closed and have sent everything, and reports whether
// there were any.
func (n *Network) retire() bool {
	some := false
	n.closing = slices.DeleteFunc(n.closing, func(node *Node) bool {
		if node.err == nil && node.unsent == 0 {
			node.end(ErrClosed)
			some = true
		}
		return node.err != nil
	})
	return some
}

func (n *Node) end(err error) {
	n.err = err
	for _, other := range n.net.nodes {
		n.net.fail(n, other, err)
	}
	close(n.closed)
}

// tell has a function called with an error, after what was to be called before, and by a
// goroutine that holds nothing.
func (n *Node) tell(done func(error), err error) {
	if done != nil {
		n.calls = append(n.calls, func() { done(err) })
		n.net.rouse(n)
	}
}

// comes has a stream to a node looked at, which may have something to be handled.
func (n *Node) comes(s *stream) {
	if !s.waits {
		s.waits = true
		n.waiting = append(n.waiting, s)
	}
	n.net.rouse(n)
}

// wake starts the goroutines of a node that have something to do.
func (n *Node) wake() {
	if len(n.calls) > 0 && !n.calling {
		n.calling = true
		go n.call()
	}
	if !n.serving() {
		return
	}
	for _, s := range n.waiting {
		if s.waits = false; len(s.in) > 0 && !s.serves {
			s.serves = true
			go s.serve(n.handler)
		}
	}
	n.waiting = n.waiting[:0]
	n.tellDown()
}

// tellDown tells the handler of peers that are down, once it has handled what came from them.
func (n *Node) tellDown() {
	for _, other := range n.net.nodes {
		if n.untold == 0 {
			return
		}
		p := &n.peers[other.id]
		if p.err == nil || p.told || other == n || other.serves(n) {
			continue
		}
		p.told = true
		n.untold--
		go n.handler.Down(other.id, p.err)
	}
}

// serves reports whether something from a node is being handled by another.
func (n *Node) serves(to *Node) bool {
	return slices.ContainsFunc(n.peers[to.id].streams[:], func(s *stream) bool {
		return s != nil && s.serves
	})
}

func (n *Node) call() {
	for {
		var calls []func()
		n.net.mu.Lock()
		calls, n.calls = n.calls, nil
		n.calling = len(calls) > 0
		n.net.mu.Unlock()
		if len(calls) == 0 {
			return
		}
		for _, f := range calls {
			f()
		}
	}
}
