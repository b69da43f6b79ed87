package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gomem/gomem/distrib"
)

// ErrLost is a connection that broke. It is not made again within an epoch: what was under
// way may or may not have arrived, which only a new epoch can settle.
var ErrLost = errors.New("the connection broke")

// peer is another node of the view: a connection to it, with a stream of each class, and
// its streams to here.
type peer struct {
	t      *transport
	node   distrib.Node
	ctx    context.Context // until it is down
	cancel context.CancelFunc
	outs   [distrib.Classes]*out
	meter  meter
	conn   *grpc.ClientConn // set before anything runs
	known  chan struct{}    // a stream of gRPC's was let in
	knows  sync.Once
	closed chan struct{}  // conn is, and gRPC does not read what was to be sent any more
	loops  sync.WaitGroup // its streams that are read
	gone   sync.WaitGroup // what runs for it here, but for the handler

	mu      sync.Mutex
	err     error // why it is down
	entered [distrib.Classes]bool
	ended   int // streams of it that ended as they should
}

func newPeer(t *transport, n distrib.Node) *peer {
	p := &peer{t: t, node: n, closed: make(chan struct{}), known: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(t.ctx)
	for c := range p.outs {
		p.outs[c] = newOut(p, distrib.Class(c))
	}
	return p
}

func (p *peer) start() {
	o := p.t.o
	conn, err := grpc.NewClient("passthrough:///"+p.node.Addr,
		grpc.WithTransportCredentials(secured(o.client(p.node.ID))), grpc.WithNoProxy(),
		grpc.WithContextDialer(p.dial),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{}),
			grpc.MaxCallSendMsgSize(maxFrame), grpc.MaxCallRecvMsgSize(maxFrame)),
		grpc.WithReadBufferSize(bufferSize), grpc.WithWriteBufferSize(bufferSize),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 5 * time.Second,
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6,
				Jitter: 0.2, MaxDelay: time.Second}}))
	if err != nil {
		close(p.closed)
		p.fail(err)
		return
	}
	p.conn = conn
	for _, o := range p.outs {
		p.gone.Go(o.run)
	}
	late := time.AfterFunc(o.Connect+o.Idle, p.expect) // the way there says more, if it fails
	context.AfterFunc(p.ctx, func() { late.Stop() })
}

// dial connects, and has the meter look at the connection.
func (p *peer) dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err == nil {
		p.meter.follow(c, 0)
	}
	return c, err
}

// expect demands that all streams of the peer are there: of one that never came, nobody
// would notice that it is silent.
func (p *peer) expect() {
	p.mu.Lock()
	missing := slices.Contains(p.entered[:], false)
	p.mu.Unlock()
	if missing {
		p.fail(fmt.Errorf("%w: no stream from %s came within %v", ErrLost, p.node.Addr,
			p.t.o.Connect+p.t.o.Idle))
	}
}

// wasThere reports whether a stream to the peer or from it has come.
func (p *peer) wasThere() bool {
	select {
	case <-p.known:
		return true
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.entered[:], true)
}

// failed is why the peer is down; nil if it is not.
func (p *peer) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// fail is the end of a peer, once: nothing is sent to it any more, what waits is refused,
// and the handler is told after it has handled what had arrived.
func (p *peer) fail(err error) {
	p.mu.Lock()
	first := p.err == nil
	if first {
		p.err = err
		p.cancel()
		p.gone.Add(1) // before anybody who finds it down can wait
	}
	p.mu.Unlock()
	if !first {
		return
	}
	go func() {
		defer p.gone.Done()
		if p.conn != nil {
			_ = p.conn.Close() // it has no more to say
			close(p.closed)
		}
		for _, o := range p.outs {
			o.refuse(err)
		}
	}()
	go func() {
		p.loops.Wait()
		if p.t.ready() && !p.t.leaving() {
			p.t.handler.Down(p.node.ID, err)
		}
	}()
}

// enter lets a stream of the peer in, one of each class.
func (p *peer) enter(c distrib.Class) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return fmt.Errorf("node %d is down here: %w", p.node.ID, p.err)
	case p.entered[c]:
		return fmt.Errorf("node %d has a stream of class %d here", p.node.ID, c)
	}
	p.entered[c] = true
	p.loops.Add(1)
	return nil
}

// exit is the end of such a stream. When all have ended as they should, the peer has
// closed its transport.
func (p *peer) exit(err error) {
	if err == nil {
		p.mu.Lock()
		if p.ended++; p.ended == len(p.entered) {
			err = ErrClosed
		}
		p.mu.Unlock()
	}
	if err == ErrLost { // the answer to a stream from here may say why
		select {
		case <-p.ctx.Done():
		case <-time.After(reason):
		}
	}
	if err != nil {
		p.fail(err)
	}
	p.loops.Done()
}

// reason is how long the reason for an end may be behind the end.
const reason = 100 * time.Millisecond

// receive hands a stream's messages to the handler, one after the other.
func (p *peer) receive(a *assembly, next func() error) error {
	if !p.t.ready() {
		return ErrClosed
	}
	for {
		err := next()
		if err == io.EOF && a.m == nil {
			return nil
		}
		if err != nil {
			return lost(err)
		}
		if m := a.done(); m != nil && p.t.ctx.Err() == nil {
			p.t.handler.Receive(p.node.ID, m)
		}
	}
}

// lost is the end of a stream as the handler is told.
func lost(err error) error {
	var frame *FrameError
	switch {
	case errors.As(err, &frame):
		return err
	case err == io.EOF || err == ErrLost || status.Code(err) == codes.Canceled || cutOff(err):
		return ErrLost
	case status.Code(err) == codes.Aborted:
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrLost, plain(err))
}

// cutOff reports whether a connection has ended without a word of the other side's. What the system
// calls that says nothing more.
func cutOff(err error) bool {
	text := status.Convert(err).Message()
	return strings.HasPrefix(text, "error reading from server: ") ||
		strings.HasPrefix(text, "closing transport due to: connection error")
}

// answer is the status that a stream of the peer ends with.
func answer(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrClosed):
		return status.Error(codes.Aborted, err.Error())
	}
	return status.Error(codes.Unavailable, err.Error())
}
