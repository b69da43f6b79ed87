package wire

import (
	"io"
	"net"
	"testing"
	"time"
)

// TestArrivals: what a socket has taken has arrived only when the other end's kernel has
// it, and as long as it does not read, no more than its buffers hold.
func TestArrivals(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := promptly{l}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var m meter
	m.follow(a, 0)
	const size = 64 << 20 // more than the buffers
	m.begin(size, time.Now())
	wrote := make(chan error, 1)
	go func() {
		_, err := a.Write(make([]byte, size))
		wrote <- err
	}()
	if n := arrived(t, &m, 1); n >= size {
		t.Errorf("nobody reads, and %d bytes have arrived", n)
	}
	if _, err := io.CopyN(io.Discard, b, size); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if n := arrived(t, &m, size); n > size+1 {
		t.Errorf("%d bytes have arrived, of %d", n, size)
	}
}

// arrived waits until so many bytes have, and a rate is known.
func arrived(t *testing.T, m *meter, least uint64) uint64 {
	t.Helper()
	for give := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if bps, _ := m.rate(); m.arrived[0].bytes >= least && bps > 0 {
			return m.arrived[0].bytes
		}
		if time.Now().After(give) {
			t.Fatalf("%d bytes have arrived, at an unknown rate", m.arrived[0].bytes)
		}
	}
}
