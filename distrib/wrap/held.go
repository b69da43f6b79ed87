package wrap

import (
	"errors"
	"sync"
	"time"

	"github.com/gomem/gomem/distrib"
)

// ErrClosed is what a message is refused with after Close.
var ErrClosed = errors.New("wrap: closed")

// held are messages that wait for their time, and the goroutines that wait with them.
type held struct {
	distrib.Transport
	mu     sync.Mutex
	closed bool
	wait   sync.WaitGroup
}

// Drop gives a node up.
func (h *held) Drop(node distrib.NodeID, why error) { distrib.Drop(h.Transport, node, why) }

// line is messages that go one after the other.
type line struct {
	items []item
	runs  bool
}

type item struct {
	to distrib.NodeID
	m  *distrib.Msg
	at time.Time // not before
}

// enter puts a message into a line, which next takes the next item out of while it
// holds the lock.
func (h *held) enter(l *line, it item, next func() (item, bool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		if it.m.Done != nil {
			go it.m.Done(ErrClosed)
		}
		return
	}
	l.items = append(l.items, it)
	if !l.runs {
		l.runs = true
		h.wait.Go(func() { h.run(l, next) })
	}
}

func (h *held) run(l *line, next func() (item, bool)) {
	for {
		h.mu.Lock()
		it, ok := next()
		l.runs = ok
		h.mu.Unlock()
		if !ok {
			return
		}
		time.Sleep(time.Until(it.at))
		h.Transport.Send(it.to, it.m)
	}
}

// Close sends what is held and ends.
func (h *held) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.wait.Wait()
	return h.Transport.Close()
}

// size is the bytes of a message.
func size(m *distrib.Msg) int {
	n := len(m.Head)
	for _, b := range m.Body {
		n += len(b)
	}
	return n
}
