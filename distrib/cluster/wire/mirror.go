package wire

import (
	"bytes"
	"sync"

	"github.com/gomem/gomem/distrib"
)

// mirror is the way from a node to itself: a queue of each class.
type mirror struct {
	t      *transport
	queues [distrib.Classes]queue
	all    sync.WaitGroup
}

func newMirror(t *transport) *mirror {
	m := &mirror{t: t}
	for i := range m.queues {
		m.queues[i].init()
	}
	return m
}

func (m *mirror) start() {
	for i := range m.queues {
		m.all.Go(func() { m.run(&m.queues[i]) })
	}
}

func (m *mirror) send(msg *distrib.Msg) {
	if err := m.queues[msg.Class].put(msg); err != nil {
		m.t.calls.add(msg.Done, err)
	}
}

// run hands a copy of each message to the handler.
func (m *mirror) run(q *queue) {
	for {
		msg, ok := q.get(m.t.ctx)
		if !ok || !m.t.ready() {
			m.refuse(q, msg)
			return
		}
		c := &distrib.Msg{Class: msg.Class, Tag: msg.Tag, Head: bytes.Clone(msg.Head)}
		if b := bytes.Join(msg.Body, nil); len(b) > 0 {
			c.Body = [][]byte{b}
		}
		m.t.handler.Receive(m.t.view.Self, c)
		m.t.calls.add(msg.Done, nil)
	}
}

func (m *mirror) refuse(q *queue, first *distrib.Msg) {
	rest := q.end(ErrClosed)
	if first != nil {
		rest = append([]*distrib.Msg{first}, rest...)
	}
	for _, msg := range rest {
		m.t.calls.add(msg.Done, ErrClosed)
	}
}

// close ends the queues, and waits until they are empty if somebody handles them.
func (m *mirror) close() {
	for i := range m.queues {
		m.queues[i].last()
	}
	select {
	case <-m.t.served:
		m.all.Wait()
	default: // nobody ever will
	}
}

// end is after the transport's context: what waits is refused.
func (m *mirror) end() {
	for i := range m.queues {
		m.refuse(&m.queues[i], nil)
	}
}

// queue is messages that wait for one goroutine.
type queue struct {
	mu      sync.Mutex
	msgs    []*distrib.Msg
	no      error         // what further messages are refused with
	changed chan struct{} // has an element after a change
}

func (q *queue) init() { q.changed = make(chan struct{}, 1) }

func (q *queue) put(m *distrib.Msg) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.no != nil {
		return q.no
	}
	q.msgs = append(q.msgs, m)
	q.poke()
	return nil
}

func (q *queue) poke() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// last lets no further messages in.
func (q *queue) last() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.no == nil {
		q.no = ErrClosed
	}
	q.poke()
}

// end refuses further messages with an error, and returns those that wait.
func (q *queue) end(err error) []*distrib.Msg {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.no == nil {
		q.no = err
	}
	rest := q.msgs
	q.msgs = nil
	q.poke()
	return rest
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.msgs) == 0
}

// done is the channel of a context.
type done interface{ Done() <-chan struct{} }

// get waits for the next message; !ok: there will be none, or the context has ended.
func (q *queue) get(ctx done) (m *distrib.Msg, ok bool) {
	for {
		q.mu.Lock()
		if len(q.msgs) > 0 {
			m = q.msgs[0]
			q.msgs[0] = nil
			q.msgs = q.msgs[1:]
			q.mu.Unlock()
			return m, true
		}
		no := q.no
		q.mu.Unlock()
		if no != nil {
			return nil, false
		}
		select {
		case <-q.changed:
		case <-ctx.Done():
			return nil, false
		}
	}
}
