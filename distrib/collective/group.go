package collective

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/gomem/gomem/distrib"
)

// Group is a [distrib.Group] over a transport. Operations (the functions of this package)
// run on it one at a time, in the same order on all ranks; beside them, any goroutines may
// Send and Recv, one Recv at a time for a rank and tag.
//
// What a rank sends waits at the other one until it is taken, up to the window; then the
// sender waits. After an operation has failed, or a message was cut short, a group refuses
// further work with a *[PoisonedError], and so do those of the other members.
type Group struct {
	mux     *Mux
	id      uint64
	members []distrib.NodeID
	rank    int
	chunk   int
	window  int

	sending sync.Mutex // keeps the order of messages from the queues to the transport
	mu      sync.Mutex
	peers   []peer
	backlog int // pieces in the queues out
	waiters []*waiter
	idle    []*waiter
	frames  []*frame
	scratch []byte
	op      op
	running string // what operation runs
	seq     uint64
	err     error // why it refuses work
	told    bool  // the others know that
	closed  bool
	stats   Stats
}

// peer is what a group knows of a member.
type peer struct {
	node       distrib.NodeID
	ops, msgs  fifo[arrival] // that wait to be taken
	took, told uint64        // of the window: taken, and of that what the peer knows
	came       uint64        // of the window: everything
	sent, free uint64        // of its window: sent, and taken there
	out        fifo[piece]
	off        int // how much of the first piece has been sent
	flying     int // frames that the transport has
	bye        bool
	ans        bool   // it has answered the last probe
	seen       uint64 // the last operation that it has begun, by its answer
}

// piece is bytes to send, which stay as they are until the batch is flushed.
type piece struct {
	b     []byte
	tag   uint64
	head  head
	batch *batch
}

// batch counts what of some pieces is still on its way.
type batch struct {
	queued, flying int
	lenient        bool // about members that do not get it: if they are lost, Down tells
}

// Stats counts bytes of payload.
type Stats struct {
	Sent, Received int64 // since the beginning
	Held, PeakHeld int64 // that have come and wait to be taken
	Scratch        int64 // allocated by the group
}

func newGroup(m *Mux, members []distrib.NodeID, rank, chunk, window int) *Group {
	g := &Group{mux: m, members: slices.Clone(members), rank: rank, chunk: chunk, window: window,
		peers: make([]peer, len(members))}
	for i, n := range members {
		g.peers[i].node = n
	}
	return g
}

// Rank is this node's place among the members.
func (g *Group) Rank() int { return g.rank }

// Size is how many members there are.
func (g *Group) Size() int { return len(g.members) }

// Members are the nodes by rank.
func (g *Group) Members() []distrib.NodeID { return slices.Clone(g.members) }

// Stats are the counters so far.
func (g *Group) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}

// Err is why the group refuses work, nil if it does not.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

func (g *Group) rankOf(n distrib.NodeID) int { return slices.Index(g.members, n) }

// Send sends b under a tag. It returns when b may be used again, which may be before it has
// come; a message longer than the window waits for the other rank's Recv.
func (g *Group) Send(ctx context.Context, to int, tag uint64, b []byte) error {
	if to < 0 || to >= len(g.members) || to == g.rank {
		return fmt.Errorf("collective: rank %d of %d cannot send to %d", g.rank, g.Size(), to)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return &PoisonedError{g.err}
	}
	bt := new(batch)
	g.post(to, piece{b, tag, head{kind: userData, total: uint64(len(b))}, bt})
	err := g.wait(ctx, &want{batch: bt, what: "a message"})
	if err != nil {
		g.retract(bt, err)
	}
	return err
}

// notify sends b, which nobody changes, without waiting for anything. A member that has
// closed the group need not get it; that it has may be known to the transport, which refuses
// b, before its goodbye is.
func (g *Group) notify(to int, tag uint64, b []byte) {
	g.mu.Lock()
	h := head{kind: userData, total: uint64(len(b))}
	g.post(to, piece{b, tag, h, &batch{lenient: true}})
	g.mu.Unlock()
	g.pump()
}

// Recv waits for the next message of a rank and tag. One whose length is not that of b is
// an error, and stays.
func (g *Group) Recv(ctx context.Context, from int, tag uint64, b []byte) error {
	return g.recv(ctx, from, tag, b, false)
}

// recv is Recv; a calm one waits for as long as it takes.
func (g *Group) recv(ctx context.Context, from int, tag uint64, b []byte, calm bool) error {
	if from < 0 || from >= len(g.members) || from == g.rank {
		return fmt.Errorf("collective: rank %d of %d cannot receive from %d", g.rank, g.Size(),
			from)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.peers[from]
	for off, first := 0, true; first || off < len(b); first = false {
		w := &want{from: from, user: true, tag: tag, what: "a message", calm: calm}
		if err := g.wait(ctx, w); err != nil {
			if off > 0 {
				g.fail(err)
			}
			return err
		}
		a := *p.msgs.at(w.found)
		if n := size(a.msg); a.head.total != uint64(len(b)) || n > len(b)-off {
			return fmt.Errorf("collective: a message of %d bytes from node %d where %d are "+
				"expected (tag %d)", a.head.total, p.node, len(b), tag)
		}
		p.msgs.remove(w.found)
		for _, s := range a.msg.Body {
			off += copy(b[off:], s)
		}
		g.take(from, size(a.msg))
		release(a.msg)
	}
	return nil
}

// post queues a piece. The group is locked.
func (g *Group) post(to int, p piece) {
	p.batch.queued++
	g.backlog++
	g.peers[to].out.push(p)
}

// pump hands the transport what the windows allow, one chunk to each peer in turn. The
// group is not locked.
func (g *Group) pump() {
	g.sending.Lock()
	defer g.sending.Unlock()
	for progress := true; progress; {
		progress = false
		for i := range g.peers {
			g.mu.Lock()
			f := g.next(i)
			more := g.backlog > 0
			g.mu.Unlock()
			if f != nil {
				g.mux.t.Send(g.peers[i].node, &f.msg)
				progress = true
			}
			if !more {
				return
			}
		}
	}
}

// next is the next message to a peer, nil if there is none or its window is full. The group
// is locked.
func (g *Group) next(to int) *frame {
	p := &g.peers[to]
	if p.out.len() == 0 {
		return nil
	}
	pc := p.out.at(0)
	n := min(len(pc.b)-p.off, g.chunk)
	if p.sent-p.free+cost(n) > uint64(g.window) {
		return nil
	}
	p.sent += cost(n)
	p.told = p.took
	f := g.frame(to)
	f.batch = pc.batch
	h := pc.head
	h.group, h.took = g.id, p.took
	f.fill(&h, pc.tag, pc.b[p.off:p.off+n])
	pc.batch.flying++
	p.flying++
	g.stats.Sent += int64(n)
	if p.off += n; p.off == len(pc.b) {
		pc.batch.queued--
		g.backlog--
		p.off = 0
		p.out.remove(0)
	}
	return f
}

// take notes that a message was used up, and gives its sender room for more now and then.
// The group is locked, but not while the transport is called.
func (g *Group) take(from, n int) {
	p := &g.peers[from]
	p.took += cost(n)
	g.stats.Held -= int64(n)
	if p.took-p.told < uint64(g.window)/2 || p.bye {
		return
	}
	p.told = p.took
	f := g.frame(from)
	f.fill(&head{kind: credit, group: g.id, took: p.took}, 0, nil)
	g.mu.Unlock()
	g.mux.t.Send(p.node, &f.msg)
	g.mu.Lock()
}

// receive takes what came from a member. The group is locked.
func (g *Group) receive(a arrival) {
	from := g.rankOf(a.from)
	if from < 0 || g.closed {
		return
	}
	p := &g.peers[from]
	p.free = max(p.free, min(a.head.took, p.sent))
	switch a.head.kind {
	case opData:
		g.arrive(p, &p.ops, a)
	case userData:
		g.arrive(p, &p.msgs, a)
	case abort:
		g.aborted(a)
	case bye:
		p.bye = true
	case progress:
		p.ans, p.seen = true, a.msg.Tag
	}
	g.wake()
}

// arrive queues data.
func (g *Group) arrive(p *peer, q *fifo[arrival], a arrival) {
	n := size(a.msg)
	if p.came+cost(n)-p.took > uint64(g.window) {
		g.fail(fmt.Errorf("node %d sends more than the window of %d bytes: it has other Options",
			p.node, g.window))
		return
	}
	p.came += cost(n)
	g.stats.Received += int64(n)
	g.stats.Held += int64(n)
	g.stats.PeakHeld = max(g.stats.PeakHeld, g.stats.Held)
	q.push(a)
}

// retract ends a batch that was given up: nothing more of it is sent, and nobody reads its
// bytes when it returns. A transfer of which a part has gone cannot be taken back, so the
// group fails then. The group is locked.
func (g *Group) retract(bt *batch, err error) {
	for i := range g.peers {
		p := &g.peers[i]
		for j := p.out.len() - 1; j >= 0; j-- {
			if p.out.at(j).batch != bt {
				continue
			}
			if j == 0 && p.off > 0 {
				g.fail(err)
				p.off = 0
			}
			p.out.remove(j)
			bt.queued--
			g.backlog--
		}
	}
	g.settle(bt)
}

// settle waits until the transport has nothing of a batch. It cannot be hurried: who
// returned earlier would let the caller change bytes that are being read.
func (g *Group) settle(bt *batch) {
	w := g.waiter()
	for bt.flying > 0 {
		g.mu.Unlock()
		<-w.c
		g.mu.Lock()
	}
	g.release(w)
}

// Abort gives up the group: what runs on it here or elsewhere fails.
func (g *Group) Abort(reason error) {
	g.mu.Lock()
	g.fail(reason)
	g.mu.Unlock()
	g.tell()
}

// Close says goodbye: the others' operations that need this rank fail from now on, and what
// it has sent before is not lost.
func (g *Group) Close() error {
	g.mux.mu.Lock()
	delete(g.mux.groups, g.id)
	g.mux.gone[g.id] = true
	g.mux.mu.Unlock()
	g.mu.Lock()
	closed := g.closed
	g.fail(errClosed)
	g.closed, g.told = true, true
	g.mu.Unlock()
	if !closed {
		g.toAll(head{kind: bye, group: g.id}, "")
	}
	return nil
}
