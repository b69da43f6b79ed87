package wire

import (
	"sync"
	"time"
)

// recently is how many seconds of sending a measurement goes back, about.
const recently = 1.0

// meter measures how fast bytes leave while there are any to send.
type meter struct {
	mu          sync.Mutex
	outstanding int64
	since       time.Time // of the last change, while there is something outstanding
	bytes, busy float64
	total       int64 // that have left
}

// begin notes that n bytes are to be sent from now on.
func (m *meter) begin(n int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.outstanding == 0 {
		m.since = now
	}
	m.outstanding += n
}

// left notes that n bytes have left.
func (m *meter) left(n int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy += now.Sub(m.since).Seconds()
	m.bytes += float64(n)
	m.total += n
	m.since = now
	m.outstanding -= n
	if m.busy > 2*recently {
		m.bytes /= 2
		m.busy /= 2
	}
}

// rate is bits a second, 0 if nothing was sent, and how many bytes wait.
func (m *meter) rate() (bps float64, outstanding int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy > 0 {
		bps = 8 * m.bytes / m.busy
	}
	return bps, m.outstanding
}

// sent is how many bytes have left in all.
func (m *meter) sent() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}
