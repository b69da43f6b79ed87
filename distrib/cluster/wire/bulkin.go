package wire

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/trust"
)

// sorting are the credentials of a port: they take a connection for bulk out of gRPC's hands,
// and tell the gate of the others when they have authenticated.
type sorting struct {
	credentials.TransportCredentials
	bulk func(net.Conn) error
}

// ServerHandshake has until the deadline that gRPC has set.
func (s sorting) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	begins := make([]byte, len(bulkMagic))
	if _, err := io.ReadFull(c, begins); err != nil {
		return nil, nil, err
	}
	if string(begins) == bulkMagic {
		if err := s.bulk(c); err != nil {
			return nil, nil, err
		}
		return nil, nil, credentials.ErrConnDispatched
	}
	conn, info, err := s.TransportCredentials.ServerHandshake(&begun{c, begins})
	if err == nil {
		trust.Admit(c)
	}
	return conn, info, err
}

func (s sorting) Clone() credentials.TransportCredentials {
	return sorting{s.TransportCredentials.Clone(), s.bulk}
}

// begun is a connection of which something was read.
type begun struct {
	net.Conn
	read []byte
}

// Read has that first.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.read) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.read)
	b.read = b.read[n:]
	return n, nil
}

// bulk greets a connection for bulk, and has it read. It closes one that it fails with.
func (p *Port) bulk(raw net.Conn) error {
	c := raw
	vouched := func(distrib.NodeID) error { return nil }
	if p.o.Server != nil {
		secure := tls.Server(c, p.o.Server)
		if err := secure.Handshake(); err != nil {
			return err
		}
		c = secure
		vouched = func(n distrib.NodeID) error { return p.o.named(n, secure.ConnectionState()) }
	}
	trust.Admit(raw)
	r := bufio.NewReaderSize(c, 4<<10) // for what is short: what is long is read to its place
	var g greeting
	if err := readRecord(r, &g); err != nil {
		return err
	}
	h := hello{g.From, g.To, g.Class, g.Epoch, g.View}
	if !bulky(h.class) || h.from < 0 || h.to < 0 || len(h.view) != 2*sha256.Size {
		return errors.New("a greeting that makes no sense")
	}
	if err := vouched(h.from); err != nil {
		_ = writeRecord(c, verdict{Code: codes.PermissionDenied, What: err.Error()})
		return err
	}
	t, no := p.admit(h)
	var to *peer
	if t != nil {
		to = t.peers[h.from]
		if err := to.enter(h.class); err != nil {
			no = &refusal{epoch: h.epoch, view: h.view, what: err.Error()}
		}
	}
	switch {
	case no != nil:
		_ = writeRecord(c, no.verdict()) // it hears this, or that the connection has ended
		return fmt.Errorf("refused: %s", no.what)
	case t == nil:
		_ = writeRecord(c, verdictOf(ErrClosed))
		return ErrClosed
	}
	if err := writeRecord(c, verdict{Code: codes.OK}); err != nil {
		to.exit(ErrLost)
		return err
	}
	to.take(h.class, c, r, g.Bare)
	return nil
}

// take reads a connection for bulk to its end; it ends with the peer, whatever the handler
// does.
func (p *peer) take(class distrib.Class, c net.Conn, r *bufio.Reader, bare bool) {
	end := func(err error) {
		_ = c.SetWriteDeadline(time.Now().Add(reason))
		_ = writeRecord(c, verdictOf(err)) // it hears this, or that the connection has ended
		c.Close()
	}
	stop := context.AfterFunc(p.ctx, func() { end(p.failed()) })
	go func() {
		a := &assembly{class: class, most: p.t.o.MaxMessage, bare: bare,
			shelf: &shelf{most: int64(p.t.o.Window)}}
		err := p.receive(a, func() error { return a.read(r) })
		if stop() {
			end(err)
		}
		p.exit(err)
	}()
}

// read takes a frame from a connection, or is io.EOF at the end that its sender has set.
func (a *assembly) read(r io.Reader) error {
	n := a.fixed[:4]
	if _, err := io.ReadFull(r, n); err != nil {
		return ErrLost
	}
	size := binary.LittleEndian.Uint32(n)
	switch {
	case size == 0:
		return io.EOF
	case size > maxFrame:
		return &FrameError{fmt.Sprintf("%d bytes, larger than %d", size, maxFrame)}
	}
	a.piece = pieces{from: r, left: int(size)}
	err := a.put()
	if a.piece.cut { // that it is short is no fault of its sender's
		return ErrLost
	}
	return err
}
