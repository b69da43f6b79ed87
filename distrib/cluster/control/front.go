package control

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/gomem/gomem/distrib/cluster/trust"
)

// front is where clients of an embedded etcd that has certificates come in, or its peers.
// etcd itself has no bound for those who have shown none, so it is not reached before they
// have: a gate counts connections and their rate, the handshake is done here, and what follows
// goes to a socket of etcd's in a directory that its owner alone may enter. Without certificates
// it is before a server that may go while its job goes on: etcd would wait for its clients.
type front struct {
	listener net.Listener
	gated    *trust.Gate
	socket   string      // etcd's
	config   *tls.Config // nil without certificates
	log      *zap.Logger

	mu     sync.Mutex
	open   map[net.Conn]bool // nil: no more
	served sync.WaitGroup
}

// handshakeWithin is how long who comes may take to show a certificate.
const handshakeWithin = 10 * time.Second

// newFront listens at an address and serves until close.
func newFront(address, socket string, t *TLS, log *zap.Logger) (*front, error) {
	f := &front{socket: socket, log: log, gated: new(trust.Gate), open: map[net.Conn]bool{}}
	if t.on() {
		if _, err := t.pool(); err != nil {
			return nil, err
		}
		if _, err := t.pair(); err != nil {
			return nil, err
		}
		f.config = t.server()
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	f.listener = l
	gated := f.gated.Listen(l)
	f.served.Go(func() {
		for {
			c, err := gated.Accept()
			if err != nil {
				return
			}
			f.served.Go(func() { f.serve(c) })
		}
	})
	return f, nil
}

// serve is one connection, from its handshake to its end.
func (f *front) serve(c net.Conn) {
	if !f.add(c) {
		return
	}
	defer f.remove(c)
	in, err := f.shake(c)
	if err != nil {
		f.log.Info("refused", zap.Stringer("from", c.RemoteAddr()), zap.Error(err))
		return
	}
	trust.Admit(c)
	out, err := net.Dial("unix", f.socket)
	if err != nil {
		f.log.Info("etcd is not there", zap.Error(err))
		return
	}
	if !f.add(out) {
		return
	}
	defer f.remove(out)
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		f.served.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // both ends see how it has ended
			ended <- struct{}{}
		})
	}
	<-ended
}

// shake is a connection whose other end has shown a certificate, if there are any.
func (f *front) shake(c net.Conn) (net.Conn, error) {
	if f.config == nil {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), handshakeWithin)
	defer cancel()
	in := tls.Server(c, f.config)
	return in, in.HandshakeContext(ctx)
}

// add has a connection closed with the front; at once if that is over.
func (f *front) add(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		c.Close()
		return false
	}
	f.open[c] = true
	return true
}

func (f *front) remove(c net.Conn) {
	c.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, c)
}

// close ends all connections. One front may be closed again, or be none.
func (f *front) close() {
	if f == nil {
		return
	}
	f.listener.Close()
	f.mu.Lock()
	for c := range f.open {
		c.Close()
	}
	f.open = nil
	f.mu.Unlock()
	f.served.Wait()
}

// pool is the authority that signs those who may come in.
func (t *TLS) pool() (*x509.CertPool, error) {
	ca, _, _, err := t.load()
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("the authority of certificates: none in PEM")
	}
	return pool, nil
}

// server is the configuration of who is connected to, with the certificates as they are at
// each handshake.
func (t *TLS) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pool, err := t.pool()
			if err != nil {
				return nil, err
			}
			pair, err := t.pair()
			if err != nil {
				return nil, err
			}
			return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*pair},
				ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
				NextProtos: []string{"h2"}}, nil
		}}
}
