package lab

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// sw hands frames from link to link. A kernel's bridge is faster, but not every kernel can lose
// packets of a bridge, and none those of one direction alone without a classifier.
type sw struct {
	ports []*port
	all   sync.WaitGroup
}

// port is the outer end of a node's link.
type port struct {
	file *os.File

	mu              sync.Mutex
	leaving, coming float64 // the parts that are lost
	chance          *rand.Rand
}

// header is how many bytes say, before a frame, what its sender has left to be done: its sum.
const header = 10

// maxSeen is the largest frame, with its header; there are none much larger than a wire's.
const maxSeen = 4 << 10

// newSwitch joins interfaces.
func newSwitch(names []string) (*sw, error) {
	s := &sw{}
	for i, name := range names {
		f, err := capture(name)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.ports = append(s.ports, &port{file: f, chance: rand.New(rand.NewPCG(uint64(i), 1))})
	}
	for i := range s.ports {
		s.all.Go(func() { s.run(i) })
	}
	return s, nil
}

// capture is a socket that reads and writes the frames of an interface.
func capture(name string) (*os.File, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	const every = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00 // in the network's order
	const kind = unix.SOCK_RAW | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	fd, err := unix.Socket(unix.AF_PACKET, kind, every)
	if err != nil {
		return nil, err
	}
	for _, option := range []int{unix.PACKET_VNET_HDR, unix.PACKET_IGNORE_OUTGOING} {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, option, 1); err != nil {
			unix.Close(fd)
			return nil, err
		}
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
	at := &unix.SockaddrLinklayer{Protocol: every, Ifindex: i.Index}
	if err := unix.Bind(fd, at); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// run hands on what comes from a node, until the switch is closed.
func (s *sw) run(from int) {
	b := make([]byte, maxSeen)
	for {
		n, err := s.ports[from].file.Read(b)
		if err != nil {
			return
		}
		if n < header+14 || s.ports[from].loses(true) {
			continue
		}
		to := b[header : header+6]
		for i, p := range s.ports {
			alone := to[0]&1 == 0 // else it is for all
			if i == from || alone && int(to[5]) != i || p.loses(false) {
				continue
			}
			_, _ = p.file.Write(b[:n]) // a link that is full loses what comes
		}
	}
}

func (p *port) loses(leaving bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	part := p.coming
	if leaving {
		part = p.leaving
	}
	return part > 0 && p.chance.Float64() < part
}

func (s *sw) lose(node int, leaving, coming float64) {
	p := s.ports[node]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving, p.coming = leaving, coming
}

func (s *sw) close() {
	for _, p := range s.ports {
		p.file.Close()
	}
	s.all.Wait()
}
