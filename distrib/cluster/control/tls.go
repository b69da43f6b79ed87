package control

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// TLS is the certificate of a node, its key and the authority that signs all nodes, in
// PEM: as files, which are read again at every handshake, so that certificates may be
// renewed in place, or as bytes. Both sides of every connection must show a certificate
// of the authority.
type TLS struct {
	CertFile, KeyFile, CAFile string
	Cert, Key, CA             []byte
	ServerName                string // that certificates of servers have; "": their host
}

func (t *TLS) on() bool { return t.CertFile != "" || len(t.Cert) > 0 }

// files are the certificates as files, which etcd wants: bytes are written to dir, for
// the owner alone to read.
func (t *TLS) files(dir string) (*TLS, error) {
	if !t.on() || t.CertFile != "" {
		return t, nil
	}
	f := &TLS{ServerName: t.ServerName}
	for _, p := range []struct {
		name string
		b    []byte
		to   *string
	}{
		{"cert.pem", t.Cert, &f.CertFile},
		{"key.pem", t.Key, &f.KeyFile},
		{"ca.pem", t.CA, &f.CAFile},
	} {
		*p.to = filepath.Join(dir, p.name)
		if err := os.WriteFile(*p.to, p.b, 0o600); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// client is the configuration of who connects.
func (t *TLS) client() (*tls.Config, error) {
	if !t.on() {
		return nil, nil
	}
	ca := t.CA
	if t.CertFile != "" {
		b, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("the job's authority: %w", err)
		}
		ca = b
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("the job's authority: no certificate in PEM")
	}
	if _, err := t.pair(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    pool,
		ServerName: t.ServerName,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return t.pair()
		},
	}, nil
}

func (t *TLS) pair() (*tls.Certificate, error) {
	var c tls.Certificate
	var err error
	if t.CertFile != "" {
		c, err = tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	} else {
		c, err = tls.X509KeyPair(t.Cert, t.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("this node's certificate: %w", err)
	}
	return &c, nil
}
