package memnet

import (
	"time"

	"github.com/gomem/gomem/distrib"
)

// cut stops all traffic between two nodes.
func (n *Network) cut(a, b distrib.NodeID) {
	if _, ok := n.cuts[pairOf(a, b)]; !ok && a != b {
		n.cuts[pairOf(a, b)] = n.flowed
	}
}

// Partition stops all traffic between some nodes and the others, until [Network.Heal].
func (n *Network) Partition(some ...distrib.NodeID) {
	inside := map[distrib.NodeID]bool{}
	for _, id := range some {
		inside[id] = true
	}
	n.onceSettled(func() {
		for a := range n.nodes {
			for b := range a {
				if inside[distrib.NodeID(a)] != inside[distrib.NodeID(b)] {
					n.cut(distrib.NodeID(a), distrib.NodeID(b))
				}
			}
		}
	})
}

// Heal lets traffic flow again everywhere that has not failed yet.
func (n *Network) Heal() {
	n.onceSettled(func() { clear(n.cuts) })
}

// Pause stops a node for a time: nothing leaves it, arrives at it or is handled by it.
// What its handler does already goes on.
func (n *Network) Pause(id distrib.NodeID, d time.Duration) {
	n.onceSettled(func() {
		node := n.nodes[id]
		if !node.isPaused() {
			node.paused = n.flowed
		}
		node.resumes = max(node.resumes, n.flowed+d)
	})
}

// Kill ends a node at once: what it has not delivered is refused, the others are told
// that their connections to it are lost, and it that it is killed.
func (n *Network) Kill(id distrib.NodeID) {
	n.onceSettled(func() {
		node := n.nodes[id]
		if node.err == nil {
			node.resumes = 0
			node.end(ErrKilled)
		}
	})
}

// Drop ends the way to a node that is known to be gone, as [Network.Fail] does.
func (n *Node) Drop(node distrib.NodeID, why error) {
	n.net.locked(func() {
		if to := int(node); to >= 0 && to < len(n.net.nodes) && node != n.id {
			n.net.sever(n, n.net.nodes[to], why, ErrLost)
		}
	})
}

// Fail ends the way between two nodes.
func (n *Network) Fail(a, b distrib.NodeID) {
	n.onceSettled(func() { n.fail(n.nodes[a], n.nodes[b], ErrLost) })
}

// fail ends the way between two nodes. What has arrived is handled still, unless its
// node has ended.
func (n *Network) fail(a, b *Node, err error) { n.sever(a, b, err, err) }

// sever is fail with what each of the two is told.
func (n *Network) sever(a, b *Node, atA, atB error) {
	for _, way := range []struct {
		from, to *Node
		err      error
	}{{a, b, atA}, {b, a, atB}} {
		from, to, err := way.from, way.to, way.err
		n.rouse(from)
		p := &from.peers[to.id]
		for _, s := range p.streams {
			if s == nil {
				continue
			}
			s.drop(err)
			if to.err != nil {
				s.in = nil
			}
		}
		if p.err != nil {
			continue
		}
		if p.err = err; err == ErrKilled && from.err == nil {
			p.err = ErrLost
		}
		if from != to {
			from.untold++
		}
	}
}

// silent reports whether nothing passes between two nodes now.
func (n *Network) silent(a, b *Node) bool {
	if a.isPaused() || b.isPaused() {
		return true
	}
	_, cut := n.cuts[pairOf(a.id, b.id)]
	return cut
}

// quiet is since when nothing has passed between two nodes that are silent.
func (n *Network) quiet(a, b *Node) time.Duration {
	since := never
	for _, node := range []*Node{a, b} {
		if node.isPaused() {
			since = min(since, node.paused)
		}
	}
	if cut, ok := n.cuts[pairOf(a.id, b.id)]; ok {
		since = min(since, cut)
	}
	return since
}

// deadlines calls f for each way that is silent, with when it fails.
func (n *Network) deadlines(f func(a, b *Node, at time.Duration)) {
	if n.o.Timeout <= 0 {
		return
	}
	for i, a := range n.nodes {
		for _, b := range n.nodes[:i] {
			if a.peers[b.id].err == nil && n.silent(a, b) {
				f(a, b, n.quiet(a, b)+n.o.Timeout)
			}
		}
	}
}

// expire fails the ways that have been silent for too long.
func (n *Network) expire(now time.Duration) {
	n.deadlines(func(a, b *Node, at time.Duration) {
		if at <= now {
			n.fail(a, b, ErrTimeout)
		}
	})
}

// expires is when the next way fails, if nothing changes.
func (n *Network) expires() time.Duration {
	at := never
	n.deadlines(func(_, _ *Node, when time.Duration) { at = min(at, when) })
	return at
}
