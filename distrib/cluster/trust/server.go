package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Server is where processes join.
type Server struct {
	Authority *Authority
	Identity  *Identity     // rank 0's
	Info      func() []byte // what is announced to who has joined, at most 64 KiB; nil: nothing
	// Taken reports whether a member of a name is there, so that nobody else gets a certificate of
	// that name but who shows that it has one, to renew it; nil: nobody asks. Nobody gets rank 0's.
	Taken func(name string) bool
	Gate  *Gate        // nil: one with the defaults
	Log   func(string) // who joined, and who was refused; nil: nobody asks
}

// Serve answers those who join, until the listener is closed.
func (s *Server) Serve(l net.Listener) error {
	gate := s.Gate
	if gate == nil {
		gate = new(Gate)
	}
	config := s.Identity.Server()
	config.ClientAuth = tls.VerifyClientCertIfGiven // most come for one
	refused := complaints{log: s.Log}
	defer refused.end() // after what is open
	var open visitors
	defer open.end()
	listener := gate.Listen(l)
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		open.add(conn)
		go func() {
			defer open.remove(conn)
			if err := s.answer(tls.Server(conn, config)); err != nil {
				from := conn.RemoteAddr().String()
				refused.add(hostOf(conn), fmt.Sprintf("%s did not join: %v", from, err), time.Now())
			}
		}()
	}
}

func (s *Server) log(line string) {
	if s.Log != nil {
		s.Log(line)
	}
}

// answer is one exchange. Who does not know the secret is told nothing.
func (s *Server) answer(conn *tls.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	ask, err := read(conn, uint32(len(hello)+secretSize))
	if err != nil {
		return err
	}
	secret, ok := strings.CutPrefix(string(ask), hello)
	if !ok || !s.Authority.token.matches([]byte(secret)) {
		return errors.New("wrong join token")
	}
	der, err := read(conn, maxRequest)
	if err != nil {
		return err
	}
	name, cert, err := s.certify(der, conn.ConnectionState())
	if taken, ok := errors.AsType[*TakenError](err); ok {
		_, err := conn.Write(append(sized(nil), sized([]byte(taken.Name))...))
		return errors.Join(taken, err, conn.CloseWrite())
	}
	if err != nil {
		return err
	}
	var info []byte
	if s.Info != nil {
		info = s.Info()
	}
	if _, err = conn.Write(append(sized(cert), sized(info)...)); err == nil {
		s.log(name + " joined from " + conn.RemoteAddr().String())
	}
	return errors.Join(err, conn.CloseWrite())
}

// certify issues what a request asks for.
func (s *Server) certify(der []byte, by tls.ConnectionState) (name string, cert []byte, err error) {
	request, err := x509.ParseCertificateRequest(der)
	if err == nil {
		err = request.CheckSignature()
	}
	if err != nil {
		return "", nil, err
	}
	name = request.Subject.CommonName
	if len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsPrint(r)
	}) {
		return "", nil, errors.New("a name of more than 64 characters, or not to be printed")
	}
	if s.taken(name, by) {
		return "", nil, &TakenError{name}
	}
	hosts := request.DNSNames
	for _, ip := range request.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	cert, err = s.Authority.issue(name, hosts, request.PublicKey)
	return name, cert, err
}

// taken reports whether a name is another's than that of who asks for it.
func (s *Server) taken(name string, by tls.ConnectionState) bool {
	if own := by.PeerCertificates; len(own) > 0 && own[0].Subject.CommonName == name {
		return false
	}
	return name == s.Identity.Name() || s.Taken != nil && s.Taken(name)
}

// TakenError is a name that a member has who is there.
type TakenError struct{ Name string }

// Error is one line.
func (e *TakenError) Error() string {
	return fmt.Sprintf("%s is there already, with a certificate of that name: were two processes "+
		"started with the same rank?", e.Name)
}

// visitors are the connections that are being answered.
type visitors struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
	all   sync.WaitGroup
}

func (v *visitors) add(c net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.conns == nil {
		v.conns = map[net.Conn]bool{}
	}
	v.conns[c] = true
	v.all.Add(1)
}

func (v *visitors) remove(c net.Conn) {
	c.Close()
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.conns, c)
	v.all.Done()
}

// end hangs up on all, and waits for who answered them.
func (v *visitors) end() {
	v.mu.Lock()
	for c := range v.conns {
		c.Close()
	}
	v.mu.Unlock()
	v.all.Wait()
}
