package trust

import (
	"net"
	"sync"
	"time"
)

// Gate bounds what those who have not authenticated can cost: their connections are
// closed, without an answer, when there are too many or they come too fast. The zero
// value has the defaults. A gate may stand before several listeners.
type Gate struct {
	Waiting int     // connections that have not authenticated; 0: 256
	PerHost int     // of one host; 0: 128
	Rate    float64 // new ones a second of one host, after PerHost at once; 0: 256

	mu      sync.Mutex
	waiting int
	hosts   map[string]*visitor
	refused int64
}

// visitor is what is known of a host: its connections, and a bucket of those that it may
// still make at once.
type visitor struct {
	waiting int
	left    float64
	at      time.Time
}

// maxVisitors bounds the memory for hosts that have come.
const maxVisitors = 4096

// Listen puts the gate before a listener.
func (g *Gate) Listen(l net.Listener) net.Listener { return &gated{l, g} }

// Refused is how many connections were closed.
func (g *Gate) Refused() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

// Admit says that a connection has authenticated. One that no gate let in is left alone.
func Admit(c net.Conn) {
	if w, ok := c.(*waiting); ok {
		w.once.Do(w.release)
	}
}

type gated struct {
	net.Listener
	gate *Gate
}

// Accept waits for a connection that may come in.
func (l *gated) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := hostOf(c)
		if l.gate.enter(host, time.Now()) {
			return &waiting{Conn: c, release: func() { l.gate.leave(host) }}, nil
		}
		c.Close()
	}
}

// hostOf is where a connection comes from, without its port.
func hostOf(c net.Conn) string {
	addr := c.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}

// waiting is a connection that has not authenticated, until it is closed or admitted.
type waiting struct {
	net.Conn
	once    sync.Once
	release func()
}

func (w *waiting) Close() error {
	w.once.Do(w.release)
	return w.Conn.Close()
}

func (g *Gate) enter(host string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.visitor(host, now)
	if v == nil || v.left < 1 || v.waiting >= most(g.PerHost, 128) ||
		g.waiting >= most(g.Waiting, 256) {
		g.refused++
		return false
	}
	v.left--
	v.waiting++
	g.waiting++
	return true
}

func most(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

func (g *Gate) leave(host string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting--
	g.hosts[host].waiting--
}

// visitor is a host's, its bucket as full as it is now; nil if too many are known.
func (g *Gate) visitor(host string, now time.Time) *visitor {
	rate, burst := g.Rate, float64(most(g.PerHost, 128))
	if rate == 0 {
		rate = 256
	}
	if g.hosts == nil {
		g.hosts = map[string]*visitor{}
	}
	v := g.hosts[host]
	if v == nil {
		if len(g.hosts) >= maxVisitors {
			g.forget(now, time.Duration(burst/rate*float64(time.Second)))
		}
		if len(g.hosts) >= maxVisitors {
			return nil
		}
		v = &visitor{left: burst, at: now}
		g.hosts[host] = v
	}
	v.left = min(burst, v.left+float64(rate*now.Sub(v.at).Seconds()))
	v.at = now
	return v
}

// forget drops the hosts that have nothing open, and whose buckets are full again.
func (g *Gate) forget(now time.Time, full time.Duration) {
	for host, v := range g.hosts {
		if v.waiting == 0 && now.Sub(v.at) >= full {
			delete(g.hosts, host)
		}
	}
}
