package trust

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// Identity is a member's certificate and key, and the authority that it trusts.
type Identity struct {
	authority *x509.Certificate
	now       func() time.Time
	renew     func() (*tls.Certificate, error)
	current   atomic.Pointer[tls.Certificate]
}

// Format prints whose identity it is, and nothing else of it.
func (id *Identity) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "["+id.Name()+"]") }

// Name is who it is, in messages.
func (id *Identity) Name() string { return id.current.Load().Leaf.Subject.CommonName }

// Expires is when the certificate does.
func (id *Identity) Expires() time.Time { return id.current.Load().Leaf.NotAfter }

// Renew gets a new certificate, which connections that begin from then on use.
func (id *Identity) Renew() error {
	c, err := id.renew()
	if err == nil {
		id.current.Store(c)
	}
	return err
}

// Keep renews the certificate in time, after two thirds of its life, until ctx ends. What
// fails is told to failed, and tried again every minute.
func (id *Identity) Keep(ctx context.Context, failed func(error)) {
	for {
		leaf := id.current.Load().Leaf
		life := leaf.NotAfter.Sub(leaf.NotBefore)
		wait := max(leaf.NotAfter.Add(-life/3).Sub(id.now()), time.Minute)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := id.Renew(); err != nil {
			failed(fmt.Errorf("the certificate of %s, which ends %s, is not renewed: %w", id.Name(),
				id.Expires().Format(time.RFC3339), err))
		}
	}
}

func (id *Identity) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(id.authority)
	return pool
}

// Server is for those who listen: TLS 1.3, nobody without a certificate of the job.
func (id *Identity) Server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, ClientCAs: id.pool(), Time: id.now,
		ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return id.current.Load(), nil
		}}
}

// Client is for those who connect to members of the job, whatever their addresses are.
func (id *Identity) Client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: id.pool(), Time: id.now,
		ServerName: memberName,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return id.current.Load(), nil
		}}
}

// PEM is the authority's certificate, the member's, and its key, which is a secret.
func (id *Identity) PEM() (authority, cert, key []byte, err error) {
	c := id.current.Load()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return nil, nil, nil, err
	}
	encode := func(kind string, b []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})
	}
	return encode("CERTIFICATE", id.authority.Raw), encode("CERTIFICATE", c.Certificate[0]),
		encode("PRIVATE KEY", der), nil
}

// member is a certificate with its key and its authority's, as it is shown to others.
func member(der []byte, authority *x509.Certificate, key ed25519.PrivateKey) (*tls.Certificate,
	error) {
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, authority.Raw}, PrivateKey: key,
		Leaf: leaf}, nil
}

// Plain refuses to go without encryption at an address that others reach, unless that is
// said in so many words.
func Plain(address string, insecure bool) error {
	if insecure {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("--tls off at %s, which is not loopback: gradients and weights would be "+
		"open to everybody there; say --insecure if they may be", address)
}
