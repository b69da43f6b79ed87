package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gomem/gomem/distrib"
)

// out is the stream of a class to a peer.
type out struct {
	p        *peer
	class    distrib.Class
	q        queue
	free     chan *frame // of which gRPC holds two or three at a time
	open     atomic.Bool
	finished chan struct{}
	cancel   context.CancelFunc

	mu     sync.Mutex
	flying map[*sending]struct{} // whose bytes gRPC has
	giving *sending              // of them, the one that is being given to gRPC
}

// sending is a message on its way.
type sending struct {
	o    *out
	m    *distrib.Msg
	left atomic.Int32 // frames that are not written, and one as long as there may be more
	told atomic.Bool
}

// keptFrames is how many frames of a stream are kept for the next ones.
const keptFrames = 4

func newOut(p *peer, c distrib.Class) *out {
	o := &out{p: p, class: c, finished: make(chan struct{}), cancel: func() {},
		flying: map[*sending]struct{}{}, free: make(chan *frame, keptFrames)}
	o.q.init()
	return o
}

func (o *out) send(m *distrib.Msg) {
	n := size(m) // what is queued may have been sent, and be the caller's again
	o.p.meter.begin(n, time.Now())
	if err := o.q.put(m); err != nil {
		o.p.meter.refuse(n)
		o.p.t.calls.add(m.Done, err)
	}
}

func size(m *distrib.Msg) int64 {
	n := int64(len(m.Head))
	for _, b := range m.Body {
		n += int64(len(b))
	}
	return n
}

// run is the life of the stream.
func (o *out) run() {
	defer close(o.finished)
	defer func() { o.cancel() }()
	if err := o.carry(); err != nil {
		o.p.fail(err)
	}
	if err := o.p.failed(); err != nil {
		<-o.p.closed
		o.refuse(err)
	}
}

// carry sends what is queued, until there will be no more and all of it was handled.
func (o *out) carry() error {
	stream, err := o.connect()
	if err != nil {
		return err
	}
	o.cancel = stream.cancel
	o.open.Store(true)
	o.p.knows.Do(func() { close(o.p.known) })
	ended := make(chan error, 1)
	go func() { // the only thing that comes back is the end
		err := stream.wait()
		ended <- err
		if err != io.EOF {
			o.p.fail(lost(err))
		}
	}()
	for {
		m, ok := o.q.get(o.p.ctx)
		if !ok {
			break
		}
		if err := stream.transmit(o, m); err != nil {
			return lost(<-ended)
		}
	}
	if o.p.ctx.Err() != nil { // this end is none that was meant to be
		return ErrLost
	}
	if err := stream.closeSend(); err != nil {
		return lost(err)
	}
	if err := <-ended; err != io.EOF {
		return lost(err)
	}
	return nil
}

// way is what a class's messages are carried by.
type way interface {
	// transmit sends one. It has its Done called when it was written, or fails.
	transmit(o *out, m *distrib.Msg) error
	// closeSend says that there will be no more.
	closeSend() error
	// wait waits for what the other side ends with: io.EOF, or what went wrong.
	wait() error
	cancel()
}

// stream is one of gRPC's.
type stream struct {
	grpc.ClientStream
	stop context.CancelFunc
}

func (s *stream) closeSend() error { return s.CloseSend() }
func (s *stream) wait() error      { return s.RecvMsg(&assembly{}) }
func (s *stream) cancel()          { s.stop() }

// transmit gives a message's frames to gRPC, which sends as the window allows.
func (w *stream) transmit(o *out, m *distrib.Msg) error {
	s := &sending{o: o, m: m}
	s.left.Store(1)
	o.mu.Lock()
	o.flying[s], o.giving = struct{}{}, s
	o.mu.Unlock()
	defer o.given()
	var c cut
	c.begin(m)
	for {
		f := o.frame()
		if !c.next(f) {
			o.keep(f)
			break
		}
		f.of = s
		s.left.Add(1)
		if err := w.SendMsg(f); err != nil {
			return err
		}
	}
	s.release()
	return nil
}

// given is when nothing more of a message is read here.
func (o *out) given() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.giving = nil
}

// frame is one that was used, or new.
func (o *out) frame() *frame {
	select {
	case f := <-o.free:
		return f
	default:
		return newFrame()
	}
}

func (o *out) keep(f *frame) {
	select {
	case o.free <- f:
	default:
	}
}

// wrote is when all of a frame's bytes were written to the connection.
func (s *sending) wrote(f *frame) {
	n := f.payload
	clear(f.refs[:f.n])
	clear(f.bufs[:f.n+1])
	f.of = nil
	s.o.keep(f)
	s.o.p.meter.left(int64(n), time.Now())
	s.release()
}

func (s *sending) release() {
	if s.left.Add(-1) == 0 {
		s.finish(nil)
	}
}

// finish tells who sent the message, once.
func (s *sending) finish(err error) {
	if !s.told.CompareAndSwap(false, true) {
		return
	}
	s.o.mu.Lock()
	delete(s.o.flying, s)
	s.o.mu.Unlock()
	s.o.p.t.calls.add(s.m.Done, err)
}

// refuse tells those who wait. The peer is down, and gRPC has no more use for their bytes. What is
// still being given to it is refused once it is not: run does that.
func (o *out) refuse(err error) {
	for _, m := range o.q.end(err) {
		o.p.t.calls.add(m.Done, err)
	}
	o.mu.Lock()
	var flying []*sending
	for s := range o.flying {
		if s != o.giving {
			flying = append(flying, s)
		}
	}
	o.mu.Unlock()
	for _, s := range flying {
		s.finish(err)
	}
}

// connect opens the stream. A node that does not listen yet, or is in an earlier epoch, is
// asked again until Options.Connect is over.
func (o *out) connect() (way, error) {
	t := o.p.t
	greet := o.greet
	if bulky(o.class) { // once it is known that the other node is in this view
		greet = o.greetBulk
		select {
		case <-o.p.known:
		case <-o.p.ctx.Done():
			return nil, ErrClosed
		}
	}
	h := hello{t.view.Self, o.p.node.ID, o.class, t.view.Epoch, t.sum}
	end := time.Now().Add(t.o.Connect)
	var why error // it was refused last
	for {
		stream, err := greet(h, end)
		if status.Code(err) != codes.Canceled || why == nil {
			why = err
		}
		switch {
		case err == nil:
			return stream, nil
		case o.p.ctx.Err() != nil:
			return nil, ErrClosed
		case !passing(err):
			return nil, final(err)
		case time.Now().After(end):
			err := fmt.Errorf("not there after %v at %s: %w", t.o.Connect, o.p.node.Addr,
				plain(why))
			if o.p.wasThere() {
				err = fmt.Errorf("%w: %w", ErrLost, err)
			}
			return nil, err
		}
		select {
		case <-o.p.ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// passing reports whether a refusal may end: the node does not listen yet, or is behind.
func passing(err error) bool {
	var epoch *EpochError
	if errors.As(err, &epoch) {
		return epoch.Its < epoch.Our
	}
	code := status.Code(err)
	return (code == codes.Unavailable || code == codes.Canceled) && !untrusted(err)
}

// untrusted reports whether TLS says that one side's certificate will not do, which gRPC
// tells as text alone.
func untrusted(err error) bool {
	text := status.Convert(err).Message()
	return strings.Contains(text, "x509: ") || strings.Contains(text, "remote error: tls: ") ||
		strings.Contains(text, misnamed)
}

// final is what a refusal that does not end is told as.
func final(err error) error {
	switch {
	case status.Code(err) == codes.Aborted:
		return ErrClosed
	case status.Code(err) == codes.Unimplemented:
		return fmt.Errorf("another version of the transport than this one, %s: %w", version,
			plain(err))
	case untrusted(err):
		return fmt.Errorf("%w: %w", ErrUntrusted, onlyName(err))
	}
	return plain(err)
}

// greet asks once.
func (o *out) greet(h hello, end time.Time) (way, error) {
	ctx, cancel := context.WithCancel(withHello(o.p.ctx, h))
	timer := time.AfterFunc(time.Until(end), cancel)
	s, err := o.p.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true,
		ServerStreams: true}, method)
	if err != nil {
		timer.Stop()
		cancel()
		return nil, err
	}
	header, err := s.Header()
	if err == nil && one(header, "gomem") == "1" && timer.Stop() {
		return &stream{s, cancel}, nil
	}
	if err == nil {
		err = s.RecvMsg(&assembly{})
	}
	timer.Stop()
	cancel()
	return nil, refused(o.p.node.ID, h, s.Trailer(), err)
}

// close sends what is queued, and waits until it was handled. It gives up on a peer that
// takes nothing for Options.Linger, and at once on one that there is nothing for and no
// connection to.
func (o *out) close() {
	o.q.last()
	if !o.open.Load() && o.q.empty() {
		return
	}
	for sent := int64(-1); sent != o.p.meter.sent(); {
		sent = o.p.meter.sent()
		select {
		case <-o.finished:
			return
		case <-time.After(o.p.t.o.Linger):
		}
	}
}
