package wire

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// count asks the kernel what a socket has counted.
func count(c syscall.RawConn) (a arrivals, ok bool) {
	if c == nil {
		return a, false
	}
	err := c.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if ok = err == nil; ok {
			a = arrivals{info.Bytes_acked, time.Duration(info.Busy_time) * time.Microsecond}
		}
	})
	return a, ok && err == nil
}

// promptly is a listener whose connections acknowledge what was read at once. The kernel
// would rather wait for up to 40 ms whether something goes back that can carry it along, and
// a sender that measures would take that for a slow way.
type promptly struct{ net.Listener }

// Accept waits for a connection.
func (l promptly) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return &prompt{c, raw}, nil
		}
	}
	return c, err
}

type prompt struct {
	net.Conn
	raw syscall.RawConn
}

// Read reads, and acknowledges it; the kernel forgets before the next time that it is to.
func (p *prompt) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if n > 0 {
		_ = p.raw.Control(func(fd uintptr) { // a connection that has ended owes nothing
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
		})
	}
	return n, err
}
