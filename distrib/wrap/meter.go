package wrap

import (
	"sync/atomic"

	"github.com/gomem/gomem/distrib"
)

// Meter counts what goes through the transports that it wraps, by class; messages of a node
// to itself are not counted.
type Meter struct {
	sent, received, refused [distrib.Classes]count
}

type count struct{ messages, bytes atomic.Int64 }

// Count is messages and the bytes in them.
type Count struct{ Messages, Bytes int64 }

// Wrap is a [distrib.Wrap].
func (m *Meter) Wrap(t distrib.Transport) distrib.Transport { return &metered{t, m} }

// Sent is what was handed to a transport, [Meter.Refused] in it.
func (m *Meter) Sent(c distrib.Class) Count { return m.sent[c].count() }

// Refused is what did not arrive.
func (m *Meter) Refused(c distrib.Class) Count { return m.refused[c].count() }

// Received is what handlers were handed.
func (m *Meter) Received(c distrib.Class) Count { return m.received[c].count() }

func (c *count) count() Count { return Count{c.messages.Load(), c.bytes.Load()} }

func (c *count) add(bytes int) {
	c.messages.Add(1)
	c.bytes.Add(int64(bytes))
}

type metered struct {
	distrib.Transport
	m *Meter
}

// Send counts a message.
func (t *metered) Send(to distrib.NodeID, m *distrib.Msg) {
	if to == t.Self() || int(m.Class) >= distrib.Classes {
		t.Transport.Send(to, m)
		return
	}
	n, done, class := size(m), m.Done, m.Class
	t.m.sent[class].add(n)
	c := *m
	c.Done = func(err error) {
		if err != nil {
			t.m.refused[class].add(n)
		}
		if done != nil {
			done(err)
		}
	}
	t.Transport.Send(to, &c)
}

// Drop gives a node up.
func (t *metered) Drop(node distrib.NodeID, why error) { distrib.Drop(t.Transport, node, why) }

// Serve counts what is handed to the handler.
func (t *metered) Serve(h distrib.Handler) { t.Transport.Serve(&counting{h, t}) }

type counting struct {
	distrib.Handler
	t *metered
}

func (c *counting) Receive(from distrib.NodeID, m *distrib.Msg) {
	if from != c.t.Self() {
		c.t.m.received[m.Class].add(size(m))
	}
	c.Handler.Receive(from, m)
}
