package control

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
)

// TLS is the certificate of a node, its key and the authority that signs all nodes, in
// PEM: as files or from a function, either of which is asked again at every handshake, so that
// certificates may be renewed, or as bytes. Both sides of every connection must show a
// certificate of the authority; what address they have does not matter.
type TLS struct {
	CertFile, KeyFile, CAFile string
	Source                    func() (authority, cert, key []byte, err error)
	Cert, Key, CA             []byte
	ServerName                string // that certificates of servers have; "": their host
}

// on: there are certificates, of this node or, for an external cluster that wants no more,
// of its authority.
func (t *TLS) on() bool { return t.own() || t.CAFile != "" || len(t.CA) > 0 }

// own: this node has a certificate.
func (t *TLS) own() bool { return t.CertFile != "" || t.Source != nil || len(t.Cert) > 0 }

// load reads everything as it is now.
func (t *TLS) load() (authority, cert, key []byte, err error) {
	switch {
	case t.Source != nil:
		return t.Source()
	case t.CertFile == "" && t.CAFile == "":
		return t.CA, t.Cert, t.Key, nil
	}
	if authority, err = os.ReadFile(t.CAFile); err != nil {
		return nil, nil, nil, fmt.Errorf("the authority of certificates: %w", err)
	}
	if t.CertFile == "" {
		return authority, nil, nil, nil
	}
	if cert, err = os.ReadFile(t.CertFile); err == nil {
		key, err = os.ReadFile(t.KeyFile)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("this node's certificate: %w", err)
	}
	return authority, cert, key, nil
}

// files are the certificates as files, which etcd wants: what is not in files is written
// to dir, for the owner alone to read.
func (t *TLS) files(dir string) (*TLS, error) {
	if !t.on() || t.CertFile != "" {
		return t, nil
	}
	f := &TLS{ServerName: t.ServerName, CertFile: filepath.Join(dir, "cert.pem"),
		KeyFile: filepath.Join(dir, "key.pem"), CAFile: filepath.Join(dir, "ca.pem")}
	return f, t.refresh(f)
}

// refresh writes the certificates as they are now to the files of f.
func (t *TLS) refresh(f *TLS) error {
	ca, cert, key, err := t.load()
	if err != nil {
		return err
	}
	for _, p := range []struct {
		to string
		b  []byte
	}{{f.CAFile, ca}, {f.KeyFile, key}, {f.CertFile, cert}} {
		if err := os.WriteFile(p.to+".new", p.b, 0o600); err != nil {
			return err
		}
		if err := os.Rename(p.to+".new", p.to); err != nil {
			return err
		}
	}
	return nil
}

// client is the configuration of who connects; nil without certificates, by which an
// external cluster at https is trusted as this system trusts others.
func (t *TLS) client() (*tls.Config, error) {
	if !t.on() {
		return nil, nil
	}
	pool, err := t.pool()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: t.ServerName}
	if !t.own() {
		return c, nil
	}
	if _, err := t.pair(); err != nil {
		return nil, err
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return t.pair()
	}
	return c, nil
}

func (t *TLS) pair() (*tls.Certificate, error) {
	_, cert, key, err := t.load()
	if err != nil {
		return nil, err
	}
	c, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("this node's certificate: %w", err)
	}
	return &c, nil
}
