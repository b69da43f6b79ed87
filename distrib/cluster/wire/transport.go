package wire

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/gomem/gomem/distrib"
)

// transport is a node's side of an epoch.
type transport struct {
	port  *Port
	o     Options
	view  distrib.View
	sum   string // of the view
	peers map[distrib.NodeID]*peer
	order []*peer // by number
	self  *mirror
	ctx   context.Context
	stop  context.CancelFunc

	served  chan struct{} // closed by Serve
	handler distrib.Handler

	mu      sync.Mutex
	closing bool
	calls   calls
}

func newTransport(p *Port, v distrib.View) (*transport, error) {
	t := &transport{port: p, o: p.o, view: v, sum: sumView(v), served: make(chan struct{}),
		peers: map[distrib.NodeID]*peer{}}
	t.ctx, t.stop = context.WithCancel(context.Background())
	here := false
	for _, n := range v.Nodes {
		if n.ID == v.Self {
			here = true
			continue
		}
		if t.peers[n.ID] != nil || n.ID < 0 {
			return nil, fmt.Errorf("the view of epoch %d has node %d twice, or a number below 0",
				v.Epoch, n.ID)
		}
		t.peers[n.ID] = newPeer(t, n)
		t.order = append(t.order, t.peers[n.ID])
	}
	if !here || v.Epoch < 0 {
		return nil, fmt.Errorf("the view of epoch %d does not have this node, %d", v.Epoch, v.Self)
	}
	slices.SortFunc(t.order, func(a, b *peer) int { return cmp.Compare(a.node.ID, b.node.ID) })
	t.self = newMirror(t)
	return t, nil
}

// start connects to all others.
func (t *transport) start() {
	for _, p := range t.order {
		p.start()
	}
	t.self.start()
}

// Self is this node's number in the view.
func (t *transport) Self() distrib.NodeID { return t.view.Self }

// Send queues a message.
func (t *transport) Send(to distrib.NodeID, m *distrib.Msg) {
	if err := t.check(to, m); err != nil {
		t.calls.add(m.Done, err)
		return
	}
	if to == t.view.Self {
		t.self.send(m)
		return
	}
	t.peers[to].outs[m.Class].send(m)
}

func (t *transport) check(to distrib.NodeID, m *distrib.Msg) error {
	size := int64(0)
	for _, b := range m.Body {
		size += int64(len(b))
	}
	switch {
	case to != t.view.Self && t.peers[to] == nil:
		return fmt.Errorf("%w: there is no node %d in epoch %d", ErrMessage, to, t.view.Epoch)
	case int(m.Class) >= distrib.Classes:
		return fmt.Errorf("%w: there is no class %d", ErrMessage, m.Class)
	case len(m.Head) > distrib.MaxHead:
		return fmt.Errorf("%w: a head of %d bytes, more than %d", ErrMessage, len(m.Head),
			distrib.MaxHead)
	case size > t.o.MaxMessage:
		return fmt.Errorf("%w: a body of %d bytes, more than %d", ErrMessage, size, t.o.MaxMessage)
	}
	if t.leaving() {
		return ErrClosed
	}
	return nil
}

// leaving reports whether Close was called; who leaves is not told that others do.
func (t *transport) leaving() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closing
}

// Serve starts to deliver. It panics when called twice.
func (t *transport) Serve(h distrib.Handler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.handler != nil {
		panic("wire: Serve was called before")
	}
	t.handler = h
	close(t.served)
}

// Links says how fast bytes arrived at each node that is not down, lately and while there
// were any to send; where the system does not count that, how fast they left. A way is
// congested if more than a window of bytes waits for it.
func (t *transport) Links() []distrib.Link {
	var links []distrib.Link
	for _, p := range t.order {
		if p.failed() != nil {
			continue
		}
		bps, waiting := p.meter.rate()
		links = append(links, distrib.Link{To: p.node.ID, Bps: bps,
			Congested: waiting > int64(t.o.Window)})
	}
	return links
}

// Close sends what was queued, waits until its receivers have handled it or are gone, and
// ends; no call of the handler begins after it.
func (t *transport) Close() error {
	t.mu.Lock()
	again := t.closing
	t.closing = true
	t.mu.Unlock()
	if !again {
		t.self.close()
		var all sync.WaitGroup
		for _, p := range t.order {
			for _, o := range p.outs {
				all.Go(o.close)
			}
		}
		all.Wait()
		t.end()
	}
	<-t.ctx.Done()
	return nil
}

// end breaks off what is left.
func (t *transport) end() {
	t.mu.Lock()
	t.closing = true
	t.mu.Unlock()
	t.stop()
	for _, p := range t.order {
		p.fail(ErrClosed)
	}
	t.self.end()
	for _, p := range t.order {
		p.gone.Wait()
	}
	t.port.leave(t)
}

// Drop gives a node up of which it is known by other ways than this one that it is gone: a
// process that is stopped keeps its connections, and would be missed here only by its silence.
func (t *transport) Drop(node distrib.NodeID, why error) {
	if p := t.peers[node]; p != nil {
		p.fail(why)
	}
}

// ready waits until the handler is there; it reports whether there is one, and the
// transport not closed.
func (t *transport) ready() bool {
	select {
	case <-t.ctx.Done():
		return false
	case <-t.served:
		return t.ctx.Err() == nil
	}
}

// incoming is a stream of a peer; it ends with the peer, whatever the handler does.
func (t *transport) incoming(h hello, s grpc.ServerStream) error {
	p := t.peers[h.from]
	if err := p.enter(h.class); err != nil {
		trailer, refusal := (&refusal{epoch: h.epoch, view: h.view, what: err.Error()}).status()
		s.SetTrailer(trailer)
		return refusal
	}
	if err := s.SendHeader(welcome()); err != nil {
		p.exit(err)
		return err
	}
	ended := make(chan error, 1)
	go func() {
		a := &assembly{class: h.class, most: t.o.MaxMessage}
		err := p.receive(a, func() error {
			if err := s.RecvMsg(a); err != nil {
				return err
			}
			return a.err
		})
		p.exit(err)
		ended <- err
	}()
	select {
	case err := <-ended:
		return answer(err)
	case <-p.ctx.Done():
		return answer(p.failed())
	}
}
