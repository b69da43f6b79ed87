package collective

import (
	"errors"
	"sync"

	"github.com/gomem/gomem/distrib"
)

// rest is a transport for all classes but the one of collectives.
type rest struct {
	m       *Mux
	ready   chan struct{} // closed when there is a handler
	stopped chan struct{}

	mu    sync.Mutex
	h     distrib.Handler
	lost  []distrib.NodeID // before there was a handler
	errs  []error
	given bool
	shut  bool
}

func newRest(m *Mux) *rest {
	return &rest{m: m, ready: make(chan struct{}), stopped: make(chan struct{})}
}

// Transport is the transport without the class [distrib.Collective], for one other user,
// who closes it too.
func (m *Mux) Transport() distrib.Transport {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.rest.given {
		m.rest.given = true
		m.users++
	}
	return m.rest
}

var errClass = errors.New("collective: messages of class Collective go through a Group")

func (r *rest) Self() distrib.NodeID  { return r.m.t.Self() }
func (r *rest) Links() []distrib.Link { return r.m.t.Links() }

// Drop gives a node up.
func (r *rest) Drop(node distrib.NodeID, why error) { distrib.Drop(r.m.t, node, why) }

func (r *rest) Send(to distrib.NodeID, msg *distrib.Msg) {
	if msg.Class != distrib.Collective {
		r.m.t.Send(to, msg)
		return
	}
	if msg.Done != nil {
		msg.Done(errClass)
	}
}

// Serve delivers first what was lost before.
func (r *rest) Serve(h distrib.Handler) {
	r.mu.Lock()
	r.h = h
	r.mu.Unlock()
	go func() {
		for i, n := range r.lost { // nothing is added any more
			h.Down(n, r.errs[i])
		}
		close(r.ready)
	}()
}

// receive waits until there is a handler, as messages before Serve do.
func (r *rest) receive(from distrib.NodeID, msg *distrib.Msg) {
	select {
	case <-r.ready:
		r.h.Receive(from, msg)
	case <-r.stopped:
	}
}

func (r *rest) down(from distrib.NodeID, err error) {
	r.mu.Lock()
	h := r.h
	if h == nil {
		r.lost, r.errs = append(r.lost, from), append(r.errs, err)
	}
	r.mu.Unlock()
	if h != nil {
		h.Down(from, err)
	}
}

// stop lets go what waits for a handler.
func (r *rest) stop() { close(r.stopped) }

// Close ends the part of this user; the transport closes with the last.
func (r *rest) Close() error {
	r.mu.Lock()
	shut := r.shut
	r.shut = true
	r.mu.Unlock()
	if shut {
		return nil
	}
	return r.m.leave()
}
