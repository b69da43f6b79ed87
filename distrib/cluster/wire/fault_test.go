package wire_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/trust"
	"github.com/gomem/gomem/distrib/cluster/wire"
	"github.com/gomem/gomem/internal/longtest"
)

// proxy is a way between two nodes that can be bad.
type proxy struct {
	l      net.Listener
	to     string
	stuck  atomic.Pointer[chan struct{}] // nothing passes until it is closed
	change func([]byte)                  // nil: nothing
	conns  sync.Map
	all    sync.WaitGroup
}

// between starts a proxy before an address.
func between(t *testing.T, to string, change func([]byte)) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, to: to, change: change}
	p.all.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			p.join(c)
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.free()
		p.conns.Range(func(c, _ any) bool { return c.(net.Conn).Close() == nil || true })
		p.all.Wait()
	})
	return p
}

func (p *proxy) stick() { c := make(chan struct{}); p.stuck.Store(&c) }

func (p *proxy) free() {
	if c := p.stuck.Swap(nil); c != nil {
		close(*c)
	}
}

func (p *proxy) join(a net.Conn) {
	b, err := net.Dial("tcp", p.to)
	if err != nil {
		a.Close()
		return
	}
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		p.conns.Store(way[0], true)
		p.all.Go(func() {
			defer way[0].Close()
			defer way[1].Close()
			buf := make([]byte, 64<<10)
			for {
				n, err := way[0].Read(buf)
				if c := p.stuck.Load(); c != nil {
					<-*c
				}
				if p.change != nil {
					p.change(buf[:n])
				}
				if _, werr := way[1].Write(buf[:n]); err != nil || werr != nil {
					return
				}
			}
		})
	}
}

// apart is two nodes that see each other through proxies.
func apart(t *testing.T, o wire.Options, change func([]byte)) (a, b distrib.Transport, ha, hb *ends,
	ways [2]*proxy) {
	c := listen(t, 2, o)
	for i := range c.nodes {
		ways[i] = between(t, c.nodes[i].Addr, change)
		c.nodes[i].Addr = ways[i].l.Addr().String()
	}
	a, ha = open(t, c.ports[0], c.view(1, 0))
	b, hb = open(t, c.ports[1], c.view(1, 1))
	return a, b, ha, hb, ways
}

// TestCorrupted: bytes that change on the way are noticed, on both sides, and nothing of
// them is delivered.
func TestCorrupted(t *testing.T) {
	mark := strings.Repeat("gomem", 1000)
	change := func(b []byte) {
		if i := strings.Index(string(b), mark[:500]); i >= 0 {
			b[i+7] ^= 1
		}
	}
	a, _, ha, hb, _ := apart(t, wire.Options{}, change)
	a.Send(1, &distrib.Msg{Class: distrib.Updates, Body: [][]byte{[]byte(mark)}})
	var frame *wire.FrameError
	if err := hb.down(t); !errors.As(err, &frame) {
		t.Error(err)
	}
	err := ha.down(t)
	if !errors.Is(err, wire.ErrLost) || !strings.Contains(err.Error(), "corrupt") {
		t.Error(err)
	}
	if len(hb.msgs) > 0 {
		t.Error("a corrupt message was delivered")
	}
}

// TestSilence: a node that is not heard is down, on both sides, though no connection ends;
// also if it falls silent before all of its streams have come.
func TestSilence(t *testing.T) {
	t.Parallel()
	o := wire.Options{Idle: time.Second, Dead: 500 * time.Millisecond, Connect: 10 * time.Second}
	a, _, ha, hb, ways := apart(t, o, nil)
	a.Send(1, &distrib.Msg{})
	hb.message(t)
	for _, w := range ways {
		w.stick()
	}
	for _, e := range []*ends{ha, hb} {
		if err := e.down(t); !errors.Is(err, wire.ErrLost) {
			t.Error(err)
		}
	}
}

// TestDrop: a node that does not answer, and of which it is known that it is gone, is down at once
// with the reason; what was to be sent to it is refused, and Close does not wait for it.
func TestDrop(t *testing.T) {
	never := wire.Options{Idle: time.Hour, Dead: time.Hour, Linger: time.Hour}
	a, b, ha, hb, ways := apart(t, never, nil)
	// A stream that is made later is told of a Close.
	for c := range distrib.Class(distrib.Classes) {
		a.Send(1, &distrib.Msg{Class: c})
		hb.message(t)
		b.Send(0, &distrib.Msg{Class: c})
		ha.message(t)
	}
	for _, w := range ways {
		w.stick()
	}
	done := make(chan error, 2)
	for _, c := range []distrib.Class{distrib.Updates, distrib.Collective} {
		a.Send(1, &distrib.Msg{Class: c, Body: [][]byte{make([]byte, 64<<20)},
			Done: func(err error) { done <- err }})
	}
	gone := errors.New("it is gone")
	a.(distrib.Dropper).Drop(1, gone)
	if err := ha.down(t); !errors.Is(err, gone) {
		t.Error(err)
	}
	for range 2 {
		if err := <-done; !errors.Is(err, gone) {
			t.Error(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	for _, w := range ways { // it was there after all
		w.free()
	}
	if err := hb.down(t); !errors.Is(err, wire.ErrLost) {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// TestPause: three seconds of silence are no reason to give a node up, with the defaults.
func TestPause(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("takes seconds: GOMEM_LONG=1")
	}
	t.Parallel()
	a, _, ha, hb, ways := apart(t, wire.Options{}, nil)
	a.Send(1, &distrib.Msg{})
	hb.message(t)
	for _, w := range ways {
		w.stick()
		time.AfterFunc(3*time.Second, w.free)
	}
	a.Send(1, &distrib.Msg{Tag: 1})
	if m := hb.message(t); m.Tag != 1 || len(ha.downs) > 0 {
		t.Error("given up")
	}
}

// TestStrangers: who has no certificate of the job gets nothing but the handshake's error;
// a member of another job is told to be down, with the reason.
func TestStrangers(t *testing.T) {
	c := listen(t, 1, encrypted(t))
	c.ports = append(c.ports, listen(t, 1, encrypted(t)).ports[0])
	c.nodes = append(c.nodes, distrib.Node{ID: 1, Addr: c.ports[1].Addr()})
	for i, p := range c.ports {
		_, e := open(t, p, c.view(1, i))
		if err := e.down(t); !errors.Is(err, wire.ErrUntrusted) {
			t.Error(err)
		}
	}
	conn, err := tls.Dial("tcp", c.nodes[0].Addr, &tls.Config{InsecureSkipVerify: true,
		NextProtos: []string{"h2"}})
	if err == nil { // in TLS 1.3 the client's side of the handshake ends before the server's
		defer conn.Close()
		if n, err := io.Copy(io.Discard, conn); n > 0 || err == nil {
			t.Errorf("%d bytes for a stranger: %v", n, err)
		}
	}
	plain, err := net.Dial("tcp", c.nodes[0].Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_, _ = io.WriteString(plain, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if n, _ := io.Copy(io.Discard, plain); n > 7 { // an alert
		t.Errorf("%d bytes for a stranger", n)
	}
}

// TestBadStreams: what is no stream of a node of this view, or has frames that are too
// long, is refused, and the nodes go on.
func TestBadStreams(t *testing.T) {
	c := listen(t, 2, wire.Options{MaxMessage: 1 << 20})
	a, _ := open(t, c.ports[0], c.view(1, 0))
	_, hb := open(t, c.ports[1], c.view(1, 1))
	conn, err := grpc.NewClient("passthrough:///"+c.nodes[1].Addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, method := range []string{"/gomem.Wire/Stream", "/gomem.Wire/Other", "/x/y"} {
		err := conn.Invoke(t.Context(), method, nil, nil)
		if err == nil {
			t.Errorf("%s was answered", method)
		}
	}
	done := make(chan error, 1)
	a.Send(1, &distrib.Msg{Body: [][]byte{make([]byte, 1<<20+1)},
		Done: func(err error) { done <- err }})
	if err := <-done; !errors.Is(err, wire.ErrMessage) {
		t.Error(err)
	}
	a.Send(1, &distrib.Msg{Tag: 3})
	if m := hb.message(t); m.Tag != 3 {
		t.Error(m.Tag)
	}
}

// TestTooLong: a message that is longer than its receiver takes, and a frame that is
// longer than any, end the sender's node there, and nothing of them is delivered.
func TestTooLong(t *testing.T) {
	c := listen(t, 1, wire.Options{})
	little := listen(t, 1, wire.Options{MaxMessage: 1 << 20})
	c.ports, c.nodes = append(c.ports, little.ports[0]), append(c.nodes,
		distrib.Node{ID: 1, Addr: little.nodes[0].Addr})
	a, _ := open(t, c.ports[0], c.view(1, 0))
	_, hb := open(t, c.ports[1], c.view(1, 1))
	a.Send(1, &distrib.Msg{Body: [][]byte{make([]byte, 2<<20)}})
	var frame *wire.FrameError
	if err := hb.down(t); !errors.As(err, &frame) {
		t.Error(err)
	}

	c = listen(t, 1, wire.Options{})
	c.nodes = append(c.nodes, distrib.Node{ID: 1, Addr: "127.0.0.1:1"})
	_, h := open(t, c.ports[0], c.view(1, 0))
	v := c.view(1, 1)
	if err := wire.SendRaw(t.Context(), c.nodes[0].Addr, v, make([]byte, 2<<20)); err == nil {
		t.Error("a frame of 2 MiB was taken")
	}
	if err := h.down(t); !errors.Is(err, wire.ErrLost) || !strings.Contains(err.Error(), "larger") {
		t.Error(err)
	}
	if len(h.msgs)+len(hb.msgs) > 0 {
		t.Error("something was delivered")
	}
}

// TestSlowConnections: who connects and says nothing is hung up on, and holds nobody up.
func TestSlowConnections(t *testing.T) {
	for name, o := range map[string]wire.Options{"plain": {}, "TLS": encrypted(t)} {
		o.Handshake = 500 * time.Millisecond
		c := listen(t, 2, o)
		conn, err := net.Dial("tcp", c.nodes[1].Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		a, _ := open(t, c.ports[0], c.view(1, 0))
		_, hb := open(t, c.ports[1], c.view(1, 1))
		a.Send(1, &distrib.Msg{})
		hb.message(t)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := io.Copy(io.Discard, conn); n > 64 || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %d bytes, %v", name, n, err) // HTTP/2's settings come first if plain
		}
	}
}

// TestManyConnections: thousands of connections at once are closed by the gate; those of
// members that are open go on, and new ones get in when it is over.
func TestManyConnections(t *testing.T) {
	many := longtest.Count(1000, 10_000)
	gate := &trust.Gate{Waiting: 64, PerHost: 32, Rate: 1e9}
	o := encrypted(t)
	o.Gate, o.Handshake = gate, 2*time.Second
	c := listen(t, 2, o)
	a, _ := open(t, c.ports[0], c.view(1, 0))
	b, hb := open(t, c.ports[1], c.view(1, 1))
	a.Send(1, &distrib.Msg{})
	hb.message(t)
	var conns []net.Conn
	for i := range many {
		conn, err := net.Dial("tcp", c.nodes[1].Addr)
		if err != nil {
			t.Fatal(err)
		}
		if i%8 > 0 {
			conn.Close()
		} else if conns = append(conns, conn); len(conns) > 256 {
			conns[0].Close()
			conns = conns[1:]
		}
	}
	if gate.Refused() == 0 {
		t.Error("all were let in")
	}
	a.Send(1, &distrib.Msg{Tag: 1})
	if m := hb.message(t); m.Tag != 1 {
		t.Error(m.Tag)
	}
	for _, conn := range conns {
		conn.Close()
	}
	for _, tr := range []distrib.Transport{a, b} {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
	a, _ = open(t, c.ports[0], c.view(2, 0))
	_, hb = open(t, c.ports[1], c.view(2, 1))
	a.Send(1, &distrib.Msg{Tag: 2})
	if m := hb.message(t); m.Tag != 2 {
		t.Error(m.Tag)
	}
}
