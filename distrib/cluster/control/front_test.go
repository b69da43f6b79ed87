package control

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
)

// TestFlood: connections without a certificate cost no more than a gate lets wait, where
// clients come in and where peers do. Nodes of the job come in as before, once the flood has
// ended, also while some still wait.
func TestFlood(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	ca := newAuthority(t)
	cfg := quick(one(t))
	cfg.TLS = ca.node(t, time.Now().Add(time.Hour))
	a := start(t, cfg)
	flood(t, a.server.gate)
	good := joinable(a, 1)
	good.Servers[0].Client = strings.TrimPrefix(a.ends[0], "https://")
	good.TLS = ca.node(t, time.Now().Add(time.Hour))
	joinAll(t, []*Control{a, start(t, good)}, 2, 2)

	all := three(t, quick(one(t)), func(int) TLS { return ca.node(t, time.Now().Add(time.Hour)) })
	for _, c := range all {
		flood(t, c.server.side)
	}
	if err := all[0].Put(t.Context(), "x", []byte("y")); err != nil {
		t.Error(err)
	}
}

// flood is connections to a front that show no certificate: those that its gate does not let
// wait are closed at once and unanswered, and those that say something else than TLS get an
// alert and nothing more. Some of them stay.
func flood(t *testing.T, f *front) {
	t.Helper()
	const flood, mayWait = 400, 128
	addr := f.listener.Addr().String()
	var conns []net.Conn
	for range flood {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		conns = append(conns, c)
	}
	for end := time.Now().Add(soon); time.Now().Before(end) &&
		f.gated.Refused() < flood-mayWait; time.Sleep(10 * time.Millisecond) {
	}
	waiting := 0
	for _, c := range conns {
		if err := c.SetReadDeadline(time.Now().Add(5 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := c.Read(b); err == nil {
			t.Fatalf("who says nothing gets %x", b)
		} else if os.IsTimeout(err) {
			waiting++
		}
	}
	if waiting > mayWait || f.gated.Refused() < flood-mayWait {
		t.Errorf("%d wait, %d are refused", waiting, f.gated.Refused())
	}
	for _, c := range conns[10:] {
		c.Close()
	}
	for _, says := range []string{"GET / HTTP/1.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		strings.Repeat("\x16\x03\x01\xff\xff", 1000)} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, says)
		_ = c.SetReadDeadline(time.Now().Add(soon))
		answer, _ := io.ReadAll(c)
		if c.Close(); len(answer) > 7 || len(answer) > 0 && answer[0] != 0x15 {
			t.Errorf("%q is answered %q", says[:10], answer)
		}
	}
}

// TestFrontAlone: nobody but its owner gets to etcd past the front, and what is open ends
// with the server.
func TestFrontAlone(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cfg := quick(one(t))
	cfg.TLS = ca.node(t, time.Now().Add(time.Hour))
	a := start(t, cfg)
	info, err := os.Stat(a.server.temp.Path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("etcd's socket is in a directory of %v, %v", info.Mode(), err)
	}
	own := ca.node(t, time.Now().Add(time.Hour))
	config, err := own.client()
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{"h2"}
	c, err := tls.Dial("tcp", strings.TrimPrefix(a.ends[0], "https://"), config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a.server.gate.close()
	_ = c.SetReadDeadline(time.Now().Add(soon))
	if b, err := io.ReadAll(c); os.IsTimeout(err) || bytes.Contains(b, []byte("HTTP/1")) {
		t.Errorf("open after its server: %q, %v", b, err)
	}
	a.server.gate.close() // again is nothing
	none := &TLS{CA: []byte("no"), Cert: []byte("no")}
	if f, err := newFront("127.0.0.1:0", "", none, nil); err == nil {
		f.close()
		t.Error("certificates that are none are taken")
	}
}
