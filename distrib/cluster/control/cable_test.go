package control

import (
	"io"
	"net"
	"sync"
	"testing"
)

// cable is a way to a server that can be taken out: what is under way stays in it, as in
// a network that loses everything, and connections are not closed.
type cable struct {
	l    net.Listener
	to   string
	mu   sync.Mutex
	cond *sync.Cond
	out  bool
	over bool
	all  []net.Conn
}

func newCable(t *testing.T, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{l: l, to: to}
	c.cond = sync.NewCond(&c.mu)
	go c.accept()
	t.Cleanup(c.end)
	return c
}

func (c *cable) addr() string { return c.l.Addr().String() }

// plug takes the cable out, or puts it in again.
func (c *cable) plug(in bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = !in
	c.cond.Broadcast()
}

func (c *cable) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.cond.Broadcast()
	c.l.Close()
	for _, conn := range c.all {
		conn.Close()
	}
}

// pass waits while the cable is out.
func (c *cable) pass() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.out && !c.over {
		c.cond.Wait()
	}
	return !c.over
}

func (c *cable) hold(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		conn.Close()
		return false
	}
	c.all = append(c.all, conn)
	return true
}

func (c *cable) accept() {
	for {
		a, err := c.l.Accept()
		if err != nil || !c.hold(a) {
			return
		}
		go func() {
			if !c.pass() {
				return
			}
			b, err := net.Dial("tcp", c.to)
			if err != nil || !c.hold(b) {
				a.Close()
				return
			}
			go c.pump(a, b)
			c.pump(b, a)
		}()
	}
}

func (c *cable) pump(to io.WriteCloser, from io.Reader) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !c.pass() {
			return
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}
