package wire

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gomem/gomem/distrib"
)

// The messages of collectives do not go by gRPC, which copies a byte twice on each side and
// hands it through four goroutines: they have a connection of their own, to the same port,
// through the same gate and the same TLS. It begins with bulkMagic, in the clear, by which the
// port tells it from gRPC's; then, encrypted if all is, comes a hello and goes a verdict, each a
// length of 16 bits and JSON. Then come frames, each after its length of 32 bits, and in the end
// a length of 0: who is killed does not say that. Last goes a verdict of what came.
const (
	bulkMagic = "gmb2"
	maxRecord = 16 << 10
)

// bulky reports whether a class has a connection of its own.
func bulky(c distrib.Class) bool { return c == distrib.Collective }

// verdict is what becomes of a stream: codes.OK, or why not.
type verdict struct {
	Code  codes.Code
	What  string `json:",omitempty"`
	Epoch int64  `json:",omitempty"` // of a refusal, as its view
	View  string `json:",omitempty"`
}

func (v verdict) err() error { return status.Error(v.Code, v.What) }

// verdictOf is what a stream ends with.
func verdictOf(err error) verdict {
	s, _ := status.FromError(answer(err))
	return verdict{Code: s.Code(), What: s.Message()}
}

func writeRecord(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(text) > maxRecord {
		return fmt.Errorf("a record of %d bytes", len(text))
	}
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(text)))
	_, err = w.Write(append(b, text...))
	return err
}

func readRecord(r io.Reader, v any) error {
	var n [2]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint16(n[:])
	if size > maxRecord {
		return fmt.Errorf("a record of %d bytes", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// bulk is the sender's side of such a connection.
type bulk struct {
	raw   *net.TCPConn
	below *gathered // nil: without TLS
	conn  net.Conn  // raw, or TLS on below
	frame *frame
	first []byte
	parts net.Buffers
	gone  <-chan struct{} // closed when the peer is down
	bare  bool            // frames have no sums
}

// greetBulk connects, once.
func (o *out) greetBulk(h hello, end time.Time) (way, error) {
	ctx, cancel := context.WithDeadline(o.p.ctx, end)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", o.p.node.Addr)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	o.p.meter.follow(c, 1)
	b := &bulk{raw: c.(*net.TCPConn), conn: c, frame: newFrame(),
		gone: o.p.ctx.Done()}
	alive := net.KeepAliveConfig{Enable: true, Idle: o.p.t.o.Idle, Interval: o.p.t.o.Dead / 2,
		Count: 2}
	_ = b.raw.SetKeepAliveConfig(alive) // gRPC's connection beside it notices silence, too
	_ = c.SetDeadline(end)              // a connection that cannot says so at the next step
	stop := context.AfterFunc(ctx, func() { c.Close() })
	v, err := b.greet(ctx, o.p.t.o.client(o.p.node.ID), h)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && v.Code == codes.OK {
		_ = c.SetDeadline(time.Time{})
		context.AfterFunc(o.p.ctx, b.cancel)
		return b, nil
	}
	c.Close()
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	err = refused(o.p.node.ID, h, trailerOf(v), v.err())
	if status.Code(err) == codes.FailedPrecondition { // gRPC's stream was let in: this node is down
		err = fmt.Errorf("%w: %w", ErrLost, plain(err))
	}
	return nil, err
}

// greet says hello, and hears the verdict.
func (b *bulk) greet(ctx context.Context, config *tls.Config, h hello) (v verdict, err error) {
	if _, err := io.WriteString(b.raw, bulkMagic); err != nil {
		return v, err
	}
	if config != nil {
		b.below = &gathered{Conn: b.raw}
		if config = config.Clone(); config.ServerName == "" {
			config.ServerName, _, err = net.SplitHostPort(b.raw.RemoteAddr().String())
		}
		config.DynamicRecordSizingDisabled = true // what is short is flushed anyway
		secure := tls.Client(b.below, config)
		if err := errors.Join(err, secure.HandshakeContext(ctx)); err != nil {
			return v, err
		}
		b.conn = secure
	}
	b.bare = config != nil || within(b.raw)
	g := greeting{h.from, h.to, h.class, h.epoch, h.view, b.bare}
	if err := writeRecord(b.conn, g); err != nil {
		return v, err
	}
	if err := readRecord(b.conn, &v); err != nil {
		return v, err
	}
	if b.below != nil {
		b.below.begin()
	}
	return v, nil
}

// greeting is a hello in JSON.
type greeting struct {
	From, To distrib.NodeID
	Class    distrib.Class
	Epoch    int64
	View     string
	Bare     bool // frames have no sums
}

// within reports whether a connection does not leave the machine, so that nothing changes bytes
// on the way.
func within(c net.Conn) bool {
	a, ok := c.RemoteAddr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// transmit writes a message's frames; when it returns the kernel has them.
func (b *bulk) transmit(o *out, m *distrib.Msg) error {
	var c cut
	c.begin(m)
	c.bare = b.bare
	for c.next(b.frame) {
		f := b.frame
		n := len(f.head)
		for _, r := range f.refs[:f.n] {
			n += len(r)
		}
		b.first = binary.LittleEndian.AppendUint32(b.first[:0], uint32(n))
		b.first = append(b.first, f.head...)
		if err := b.write(f); err != nil {
			tell(m, cmp.Or(o.p.failed(), lost(err))) // the first is why this end was closed
			return err
		}
		o.p.meter.left(int64(f.payload), time.Now())
	}
	tell(m, nil)
	return nil
}

// tell tells a message's sender, by the goroutine of its stream, which holds nothing.
func tell(m *distrib.Msg, err error) {
	if m.Done != nil {
		m.Done(err)
	}
}

func (b *bulk) write(f *frame) error {
	b.parts = append(append(b.parts[:0], b.first), f.refs[:f.n]...)
	all := b.parts // WriteTo eats what it is called on
	_, err := all.WriteTo(b.conn)
	clear(b.parts[:cap(b.parts)])
	clear(f.refs[:f.n])
	if err == nil && b.below != nil {
		err = b.below.flush()
	}
	return err
}

func (b *bulk) closeSend() error {
	_, err := b.conn.Write(make([]byte, 4))
	if err == nil && b.below != nil {
		err = b.below.flush()
	}
	return err
}

func (b *bulk) wait() error {
	var v verdict
	switch err := readRecord(b.conn, &v); {
	case err != nil: // a stream of gRPC's may say why
		select {
		case <-b.gone:
		case <-time.After(reason):
		}
		return ErrLost
	case v.Code == codes.OK:
		return io.EOF
	}
	return v.err()
}

func (b *bulk) cancel() { b.raw.Close() }

// gathered is a connection below TLS, whose records, of 16 KiB, are written many at a time.
type gathered struct {
	net.Conn
	mu sync.Mutex
	w  *bufio.Writer // nil: it does not gather yet
}

// gatheredBytes are written at once.
const gatheredBytes = 64 << 10

func (g *gathered) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.w = bufio.NewWriterSize(g.Conn, gatheredBytes)
}

// Write keeps bytes until there are many, or flush.
func (g *gathered) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.w == nil {
		return g.Conn.Write(b)
	}
	return g.w.Write(b)
}

func (g *gathered) flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.w.Flush()
}
