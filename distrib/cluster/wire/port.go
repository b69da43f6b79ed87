package wire

import (
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/trust"
)

// version is that of frames, greetings and connections: nodes of two refuse each other.
const version = "2"

// method is the only one that there is.
const method = "/gomem.Wire/" + version

// Port is where a node listens, for one view after the other.
type Port struct {
	o      Options
	server *grpc.Server
	addr   net.Addr
	served chan error
	once   sync.Once
	err    error // of having served

	mu      sync.Mutex
	current *transport // nil: no view is open
	past    int64      // the last epoch that was closed; -1: none
}

// Listen opens a port at an address, host:port with port 0 for any. Without TLS it must be
// of loopback, unless Options.Insecure says otherwise.
func Listen(address string, o Options) (*Port, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.Server == nil {
		if err := trust.Plain(address, o.Insecure); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return serve(l, o), nil
}

// serve answers what comes from a listener.
func serve(l net.Listener, o Options) *Port {
	p := &Port{o: o, addr: l.Addr(), past: -1, served: make(chan error, 1)}
	creds := sorting{secured(o.Server), p.bulk}
	p.server = grpc.NewServer(grpc.Creds(creds), grpc.ForceServerCodecV2(codec{}),
		grpc.UnknownServiceHandler(p.stream), grpc.ConnectionTimeout(o.Handshake),
		grpc.MaxRecvMsgSize(maxFrame), grpc.MaxConcurrentStreams(4*uint32(distrib.Classes)),
		grpc.MaxHeaderListSize(8<<10), grpc.InitialWindowSize(int32(o.Window)),
		grpc.InitialConnWindowSize(int32(o.Window)*int32(distrib.Classes)),
		grpc.ReadBufferSize(bufferSize), grpc.WriteBufferSize(bufferSize),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: o.Idle, Timeout: o.Dead}))
	go func() { p.served <- p.server.Serve(o.Gate.Listen(promptly{l})) }()
	return p
}

// bufferSize is how many bytes a read or a write of a connection is for.
const bufferSize = 256 << 10

// Addr is the address that the port listens at.
func (p *Port) Addr() string { return p.addr.String() }

// Open begins an epoch: a transport between this node and the others of a view, whose
// addresses are ports'. It connects in the background, to nodes that may still be in an
// earlier epoch; one that does not come in time is down. The transport of the epoch before
// must have been closed.
func (p *Port) Open(v distrib.View) (distrib.Transport, error) {
	t, err := newTransport(p, v)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		return nil, fmt.Errorf("epoch %d is open still, %d cannot begin", p.current.view.Epoch,
			v.Epoch)
	}
	p.current = t
	t.start() // before a stream can come in
	return t, nil
}

// Close stops to listen. Transports should have been closed before: what is open ends.
func (p *Port) Close() error {
	p.mu.Lock()
	t := p.current
	p.mu.Unlock()
	if t != nil {
		t.end()
	}
	p.once.Do(func() {
		p.server.Stop()
		p.err = <-p.served
	})
	return p.err
}

// leave ends an epoch.
func (p *Port) leave(t *transport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == t {
		p.current, p.past = nil, t.view.Epoch
	}
}

// stream is one that comes in: who is in the same epoch of the same view is let in.
func (p *Port) stream(_ any, s grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(s)
	h, err := heard(s.Context())
	if name != method || err != nil {
		return status.Error(codes.Unimplemented, "this is a port of gomem, whose transport is of "+
			"version "+version)
	}
	if err := p.o.vouched(s.Context(), h.from); err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	t, r := p.admit(h)
	if t == nil && r == nil {
		return answer(ErrClosed)
	}
	if r != nil {
		trailer, err := r.status()
		s.SetTrailer(trailer)
		return err
	}
	return t.incoming(h, s)
}

// admit is the transport that a stream is for, or why it is not let in; neither if the
// transport was closed.
func (p *Port) admit(h hello) (*transport, *refusal) {
	p.mu.Lock()
	t, past := p.current, p.past
	p.mu.Unlock()
	switch {
	case t == nil && past == h.epoch:
		return nil, nil
	case t == nil:
		return nil, &refusal{epoch: past}
	case t.view.Epoch != h.epoch:
		return nil, &refusal{epoch: t.view.Epoch}
	case t.sum != h.view:
		return nil, &refusal{epoch: h.epoch, view: t.sum}
	case t.view.Self != h.to || t.peers[h.from] == nil:
		return nil, &refusal{epoch: h.epoch, view: h.view,
			what: fmt.Sprintf("node %d asks for node %d, and this is node %d: is an address wrong?",
				h.from, h.to, t.view.Self)}
	}
	return t, nil
}

// welcome is the header of a stream that was let in.
func welcome() metadata.MD { return metadata.Pairs("gomem", "1") }
