package trust_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib/cluster/trust"
)

// pipes is a listener in memory, whose guests come from addresses that they choose.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

type guest struct {
	net.Conn
	from string
}

func (g guest) RemoteAddr() net.Addr { return address(g.from) }

type address string

func (address) Network() string  { return "pipe" }
func (a address) String() string { return string(a) }

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return address("server") }

func (p *pipes) dial(from string) net.Conn {
	a, b := net.Pipe()
	p.conns <- guest{b, from}
	return a
}

// TestSlowloris: who connects and says nothing, or little by little, is hung up on within
// seconds, and holds nobody else up.
func TestSlowloris(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := must(trust.New("j"))(t)
		id := must(a.Identity("rank 0"))(t)
		l := newPipes()
		served := make(chan error)
		go func() { served <- (&trust.Server{Authority: a, Identity: id}).Serve(l) }()
		start := time.Now()
		silent, slow := l.dial("a:1"), l.dial("b:1")
		tired := make(chan struct{})
		go func() { // an endless record, a byte a second
			defer close(tired)
			for _, err := slow.Write([]byte{22, 3, 1, 64, 0}); err == nil; {
				time.Sleep(time.Second)
				_, err = slow.Write([]byte{0})
			}
		}()
		for _, c := range []net.Conn{silent, slow} {
			if n, err := io.Copy(io.Discard, c); n > 64 { // an alert at most
				t.Error(n, err)
			}
			if d := time.Since(start); d > 6*time.Second {
				t.Error("held for", d)
			}
		}
		<-tired
		l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// TestManyConnections: ten thousand of them cost no more than the gate's bounds, and who
// comes from elsewhere gets in.
func TestManyConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &trust.Gate{Waiting: 100, PerHost: 50, Rate: 10}
		p := newPipes()
		l := gate.Listen(p)
		var in []net.Conn
		done := make(chan struct{})
		go func() {
			defer close(done)
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				in = append(in, c)
			}
		}()
		for range 10_000 {
			p.dial("mallory:1")
		}
		p.dial("alice:1")
		synctest.Wait()
		if len(in) != 51 || gate.Refused() != 9950 {
			t.Errorf("%d in, %d refused", len(in), gate.Refused())
		}
		for _, c := range in[:50] {
			c.Close()
			c.Close() // once more says nothing new
		}
		p.dial("mallory:2") // no connection is open, but they came too fast
		synctest.Wait()
		if len(in) != 51 {
			t.Error("too fast, and let in")
		}
		time.Sleep(time.Second)
		for range 20 {
			p.dial("mallory:3")
		}
		synctest.Wait()
		if len(in) != 61 {
			t.Errorf("%d let in after a second, 10 may", len(in)-51)
		}
		for i := range 10_000 {
			p.dial("host" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + ":1")
		}
		synctest.Wait()
		if len(in) != 50+100 {
			t.Errorf("%d wait, 100 may", len(in)-50)
		}
		for _, c := range in[51:] {
			trust.Admit(c)
		}
		p.dial("bob:1")
		synctest.Wait()
		if len(in) != 151 {
			t.Error("there is room, and nobody was let in")
		}
		p.Close()
		<-done
	})
}

// TestGarbage: what is no request is not answered.
func TestGarbage(t *testing.T) {
	o := open(t)
	sized := func(b string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(b)))) + b
	}
	good := "gomem join 1\n" + string(secretBytes(o))
	for name, text := range map[string]string{
		"nothing":            "",
		"no length":          "x",
		"a length too far":   "\xff\xff\xff\xff",
		"another protocol":   "GET / HTTP/1.1\r\n\r\n",
		"half":               sized(good)[:30],
		"no request":         sized(good) + sized("x"),
		"an endless request": sized(good) + "\x00\xff\xff\xff" + strings.Repeat("x", 1<<16),
		"another version":    sized("gomem join 2\n" + string(secretBytes(o))),
	} {
		conn, err := tls.Dial("tcp", o.address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, text) // may be hung up on before the end
		_ = conn.CloseWrite()
		if b, _ := io.ReadAll(conn); len(b) > 0 {
			t.Errorf("%s: answered %q", name, b)
		}
		conn.Close()
	}
	for _, name := range []string{strings.Repeat("n", 65), "a\nb"} {
		if _, _, err := trust.Join(t.Context(), o.address, o.authority.Token(), name); err == nil {
			t.Errorf("%q has joined", name)
		}
	}
}

func secretBytes(o *office) []byte { return trust.Secret(o.authority.Token()) }

// TestJoinWaits: nobody there is tried again, and named when time is up.
func TestJoinWaits(t *testing.T) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	a := must(trust.New("j"))(t)
	_, _, err := trust.Join(ctx, address, a.Token(), "rank 7")
	if err == nil || errors.Is(err, trust.ErrRefused) || !strings.Contains(err.Error(), address) ||
		!strings.Contains(err.Error(), "rank 7") {
		t.Error(err)
	}
}
