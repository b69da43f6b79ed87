package wire

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// recently is how many seconds of sending a measurement goes back, about. The bytes of a fast
// time outweigh the seconds of a slow one after it, so that it takes several times as long until
// a way that has become slow is known as one.
const recently = 0.25

// meter measures how fast bytes arrive while there are any to send: by the socket's count of
// what was acknowledged, or, where the system has none, by what left.
type meter struct {
	mu          sync.Mutex
	outstanding int64
	since       time.Time // of the last change, while there is something outstanding
	total       int64     // bytes that have left
	leaving     pace
	sockets     [2]syscall.RawConn // gRPC's and that for bulk; nil: there is none
	arrived     [2]arrivals
	arriving    pace
}

// arrivals is what a socket counts: bytes that were acknowledged, and for how long there
// were any that were not.
type arrivals struct {
	bytes uint64
	busy  time.Duration
}

// pace is bytes and the seconds that they took.
type pace struct{ bytes, busy float64 }

func (p *pace) add(bytes, seconds float64) {
	p.bytes += bytes
	p.busy += seconds
	if p.busy > 2*recently {
		p.bytes /= 2
		p.busy /= 2
	}
}

// bps is bits a second, 0 if they are not known.
func (p *pace) bps() float64 {
	if p.busy > 0 {
		return 8 * p.bytes / p.busy
	}
	return 0
}

// follow begins to count what arrives by a connection, the i-th of the peer's.
func (m *meter) follow(c net.Conn, i int) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := s.SyscallConn(); err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sockets[i], m.arrived[i] = raw, arrivals{}
	}
}

// begin notes that n bytes are to be sent from now on.
func (m *meter) begin(n int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.since.IsZero() { // what has arrived until now is the connection's own
		for i, s := range m.sockets {
			m.arrived[i], _ = count(s)
		}
	}
	if m.outstanding == 0 {
		m.since = now
	}
	m.outstanding += n
}

// refuse notes that n bytes are not to be sent after all.
func (m *meter) refuse(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outstanding -= n
}

// left notes that n bytes have left.
func (m *meter) left(n int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaving.add(float64(n), now.Sub(m.since).Seconds())
	m.total += n
	m.since = now
	m.outstanding -= n
}

// rate is bits a second, 0 if it is not known, and how many bytes wait.
func (m *meter) rate() (bps float64, outstanding int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := false
	var bytes, busy float64
	for i, s := range m.sockets {
		a, ok := count(s)
		if !ok || m.since.IsZero() {
			continue
		}
		known = true
		bytes += float64(a.bytes - m.arrived[i].bytes)
		busy = max(busy, (a.busy - m.arrived[i].busy).Seconds()) // they are at the same time
		m.arrived[i] = a
	}
	if !known {
		return m.leaving.bps(), m.outstanding
	}
	m.arriving.add(bytes, busy)
	if m.arriving.busy == 0 && m.arriving.bytes > 0 { // in less than a tick of the kernel's clock
		return m.leaving.bps(), m.outstanding
	}
	return m.arriving.bps(), m.outstanding
}

// sent is how many bytes have left in all.
func (m *meter) sent() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}
