package memnet

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gomem/gomem/distrib"
)

// What a message is refused with, and what a handler is told of a peer.
var (
	ErrClosed  = errors.New("memnet: closed")
	ErrKilled  = errors.New("memnet: killed")
	ErrLost    = errors.New("memnet: connection lost")
	ErrTimeout = errors.New("memnet: nothing heard for too long")
	ErrMessage = errors.New("memnet: not a message that can be sent")
)

// Options are a network's. The zero value is a network without limits or delays.
type Options struct {
	Seed uint64 // of losses and jitter

	Latency time.Duration // of every way, in one direction
	Jitter  time.Duration // at most that much more, drawn for every message
	// LatencyOf is that of each way; nil: all have Latency.
	LatencyOf func(from, to distrib.NodeID) time.Duration

	Bps   float64 // of every uplink and every downlink, bits a second; 0: no limit
	Trace []Rate  // how rates change, in order of At

	Window   int           // bytes a stream may have sent that are not handled; 0: 4 MiB
	Overhead int           // bytes that every message costs besides its own
	Loss     float64       // the probability that a message ends the way between its nodes
	Timeout  time.Duration // how long a way may be silent before it fails; 0: for ever
}

// Rate is a change of a node's links, bits a second; 0: no limit.
type Rate struct {
	At       time.Duration // after the network's start
	Node     distrib.NodeID
	Up, Down float64
}

const defaultWindow = 4 << 20

// Network connects some nodes.
type Network struct {
	o     Options
	start time.Time

	mu       sync.Mutex
	nodes    []*Node
	streams  []*stream // that were ever used
	flowing  []*stream // of these, those that flow
	touched  []*stream // those that may begin or cease to
	flying   flights   // those that have something in flight
	awake    []*Node   // those that may have something to do
	closing  []*Node   // those that end once they have sent everything
	stale    bool      // rates are to be found again
	troubled bool      // something is cut or paused, or was when it was looked at last
	due      bool      // something has changed, of which nothing has followed yet
	flowed   time.Duration
	alarm    *time.Timer
	alarmAt  time.Duration
	cuts     map[pair]time.Duration // since when
	trace    int                    // the next of Options.Trace
}

type pair struct{ a, b distrib.NodeID } // a < b

func pairOf(a, b distrib.NodeID) pair { return pair{min(a, b), max(a, b)} }

// New returns the transports of n nodes that a network connects.
func New(n int, o Options) []distrib.Transport {
	net := NewNetwork(n, o)
	ts := make([]distrib.Transport, n)
	for i := range ts {
		ts[i] = net.Node(distrib.NodeID(i))
	}
	return ts
}

// NewNetwork returns a network of n nodes. Its time starts now.
func NewNetwork(n int, o Options) *Network {
	if o.Window == 0 {
		o.Window = defaultWindow
	}
	net := &Network{o: o, start: time.Now(), cuts: map[pair]time.Duration{}}
	for i := range n {
		net.nodes = append(net.nodes, newNode(net, distrib.NodeID(i), n))
	}
	net.locked(func() {})
	return net
}

// Node is the transport of a node.
func (n *Network) Node(id distrib.NodeID) *Node { return n.nodes[id] }

// SetRate changes the links of a node, bits a second; 0: no limit.
func (n *Network) SetRate(id distrib.NodeID, up, down float64) {
	n.onceSettled(func() { n.setRate(Rate{Node: id, Up: up, Down: down}) })
}

func (n *Network) setRate(r Rate) {
	n.nodes[r.Node].up, n.nodes[r.Node].down = r.Up/8, r.Down/8
	n.stale = true
}

func (n *Network) now() time.Duration { return time.Since(n.start) }

// locked changes the network. What follows from that happens at the same time, but later: once
// for all that changes before, since many nodes change something at a time.
func (n *Network) locked(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	n.flow(now)
	change()
	n.soon()
}

// soon has happen what follows from a change.
func (n *Network) soon() {
	if !n.due {
		n.due = true
		go n.settled(func() {})
	}
}

// settled looks at the network, once what follows from all changes before has happened.
func (n *Network) settled(look func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	n.flow(now)
	if n.due {
		n.settle(now)
	}
	look()
}

// onceSettled changes the network, once what follows from all changes before has happened.
func (n *Network) onceSettled(change func()) {
	n.settled(func() {
		change()
		n.soon()
	})
}

// settle does all that is to be done now, and sets the alarm for what comes next.
func (n *Network) settle(now time.Duration) {
	n.due = false
	for {
		n.retrace(now)
		n.recheck(now)
		n.arrive(now)
		n.admit()
		n.share()
		if !n.complete(now) && !n.retire() {
			break
		}
	}
	awake := n.awake
	n.awake = nil
	for _, node := range awake {
		node.awake = false
		node.wake()
	}
	n.setAlarm(n.next(now), now)
}

// touch has a stream looked at.
func (n *Network) touch(s *stream) {
	if !s.touched {
		s.touched = true
		n.touched = append(n.touched, s)
	}
}

// rouse has a node looked at.
func (n *Network) rouse(node *Node) {
	if !node.awake {
		node.awake = true
		n.awake = append(n.awake, node)
	}
}

// recheck looks at everything while something is cut or paused, and once after that.
func (n *Network) recheck(now time.Duration) {
	before := n.troubled
	n.troubled = len(n.cuts) > 0 || slices.ContainsFunc(n.nodes, (*Node).isPaused)
	if !n.troubled && !before {
		return
	}
	n.expire(now)
	for _, s := range n.streams {
		n.touch(s)
	}
	for _, node := range n.nodes {
		n.rouse(node)
	}
}

func (n *Network) retrace(now time.Duration) {
	for n.trace < len(n.o.Trace) && n.o.Trace[n.trace].At <= now {
		n.setRate(n.o.Trace[n.trace])
		n.trace++
	}
}

// setAlarm makes the network look again at a time, or never.
func (n *Network) setAlarm(at, now time.Duration) {
	if n.alarm != nil && at == n.alarmAt {
		return
	}
	if n.alarm != nil {
		n.alarm.Stop()
		n.alarm = nil
	}
	if n.alarmAt = at; at != never {
		n.alarm = time.AfterFunc(at-now, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			now := n.now()
			if n.alarmAt > now {
				return // it was set anew
			}
			n.alarm = nil
			n.flow(now)
			n.settle(now)
		})
	}
}

func (n *Network) latency(from, to distrib.NodeID) time.Duration {
	if n.o.LatencyOf != nil {
		return n.o.LatencyOf(from, to)
	}
	return n.o.Latency
}

func (n *Network) check(from *Node, to distrib.NodeID, m *distrib.Msg) error {
	switch {
	case to < 0 || int(to) >= len(n.nodes):
		return fmt.Errorf("%w: there is no node %d", ErrMessage, to)
	case int(m.Class) >= distrib.Classes:
		return fmt.Errorf("%w: there is no class %d", ErrMessage, m.Class)
	case len(m.Head) > distrib.MaxHead:
		return fmt.Errorf("%w: a head of %d bytes, more than %d", ErrMessage, len(m.Head),
			distrib.MaxHead)
	case from.err != nil:
		return from.err
	case from.closing:
		return ErrClosed
	}
	return from.peers[to].err
}
