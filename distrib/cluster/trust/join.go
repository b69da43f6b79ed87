package trust

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// What is sent: hello, the secret, and a request (PKCS #10); then a certificate and what
// the server announces. Each has its length before it.
const (
	hello      = "gomem join 1\n"
	maxRequest = 8 << 10
	maxInfo    = 64 << 10
	patience   = 5 * time.Second // for a whole exchange
)

// ErrRefused is the answer to a token that is not the job's, which is none.
var ErrRefused = errors.New("refused the join token")

// ErrOtherJob is a certificate of another authority than the token's.
var ErrOtherJob = errors.New("is not of the job that the join token is for")

// Join makes a member of this process: it connects to rank 0's [Server] at address and
// gets a certificate in exchange for the token. It tries again until ctx ends, since rank
// 0 may not listen yet, but takes a refusal for what it is. name says who this is in
// messages, "rank 3"; hosts are names and addresses that the certificate is for, too, at
// most 16. info is what rank 0 announces.
func Join(ctx context.Context, address string, token Token, name string,
	hosts ...string) (id *Identity, info []byte, err error) {
	j := &joiner{address: address, token: token, name: name, hosts: hosts}
	cert, authority, info, err := j.join(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("%s does not join: rank 0 at %s: %w", name, address, err)
	}
	id = &Identity{authority: authority, now: time.Now}
	id.current.Store(cert)
	id.renew = func() (*tls.Certificate, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		own := *j
		own.shown = id.current.Load()
		cert, _, _, err := own.join(ctx)
		return cert, err
	}
	return id, info, nil
}

// JoinFile is Join with the token of a file, as of [ReadToken]. A token of another job may
// be that of the one before, whose file rank 0 is about to replace: it is read again until
// ctx ends.
func JoinFile(ctx context.Context, address, path, name string,
	hosts ...string) (id *Identity, info []byte, err error) {
	for {
		token, err := ReadToken(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		id, info, err := Join(ctx, address, token, name, hosts...)
		if !errors.Is(err, ErrOtherJob) {
			return id, info, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("%w (token: %s)", err, path)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

type joiner struct {
	address string
	token   Token
	name    string
	hosts   []string
	shown   *tls.Certificate // that is to be renewed; nil: there is none
}

func (j *joiner) join(ctx context.Context) (*tls.Certificate, *x509.Certificate, []byte, error) {
	var taken *TakenError // what was heard last of that: a lease may have to end first
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		cert, authority, info, err := j.try(ctx)
		if now, ok := errors.AsType[*TakenError](err); ok {
			taken = now
		} else if err != nil && ctx.Err() != nil && taken != nil {
			err = taken
		}
		if err == nil || errors.Is(err, ErrRefused) || errors.Is(err, ErrOtherJob) {
			return cert, authority, info, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, nil, err
		case <-time.After(pause):
		}
	}
}

// try is one exchange.
func (j *joiner) try(ctx context.Context) (*tls.Certificate, *x509.Certificate, []byte, error) {
	fail := func(err error) (*tls.Certificate, *x509.Certificate, []byte, error) {
		return nil, nil, nil, err
	}
	request, key, err := j.request()
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var authority *x509.Certificate
	d := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS13, ServerName: memberName,
		GetClientCertificate: j.show,
		InsecureSkipVerify:   true, // no root is known yet but by its fingerprint
		VerifyConnection: func(s tls.ConnectionState) (err error) {
			authority, err = j.token.verify(s.PeerCertificates)
			return err
		}}}
	conn, err := d.DialContext(ctx, "tcp", j.address)
	if err != nil {
		return fail(err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return fail(err)
	}
	ask := append([]byte(hello), j.token.secret[:]...)
	if _, err := conn.Write(append(sized(ask), sized(request)...)); err != nil {
		return fail(err)
	}
	der, err := read(conn, maxRequest)
	if errors.Is(err, io.EOF) {
		return fail(ErrRefused)
	}
	if err != nil {
		return fail(err)
	}
	info, err := read(conn, maxInfo)
	if err != nil {
		return fail(err)
	}
	if len(der) == 0 {
		return fail(&TakenError{string(info)})
	}
	cert, err := member(der, authority, key)
	return cert, authority, info, err
}

// show is the certificate that is to be renewed, if it is good still.
func (j *joiner) show(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if j.shown == nil || time.Now().After(j.shown.Leaf.NotAfter) {
		return &tls.Certificate{}, nil
	}
	return j.shown, nil
}

// request is for a new key.
func (j *joiner) request() ([]byte, ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: j.name}}
	for _, h := range j.hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	return der, key, err
}

// verify is the authority of the token's fingerprint, by which the first of some
// certificates is signed.
func (t Token) verify(shown []*x509.Certificate) (*x509.Certificate, error) {
	for _, c := range shown {
		sum := sha256.Sum256(c.Raw)
		if subtle.ConstantTimeCompare(sum[:], t.fingerprint[:]) != 1 {
			continue
		}
		roots := x509.NewCertPool()
		roots.AddCert(c)
		_, err := shown[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: memberName})
		return c, err
	}
	return nil, ErrOtherJob
}

func sized(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// read reads what sized wrote, at most so many bytes.
func read(r io.Reader, most uint32) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > most {
		return nil, fmt.Errorf("%d bytes are announced, at most %d may come", n, most)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}
