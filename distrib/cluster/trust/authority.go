package trust

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"
)

const (
	authorityLife = 365 * 24 * time.Hour
	memberLife    = 24 * time.Hour
	skew          = time.Hour    // that clocks may be behind
	memberName    = "node.gomem" // what every certificate is for, besides its hosts
	maxHosts      = 16           // that a certificate names
)

// Authority issues the certificates of one job. Its private key does not leave the process,
// unless by Reveal.
type Authority struct {
	cert  *x509.Certificate
	key   ed25519.PrivateKey
	token Token
	now   func() time.Time
}

// Format prints that it is an authority, and nothing of it.
func (*Authority) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[job authority]") }

// New makes an authority and its token.
func New(job string) (*Authority, error) { return newAuthority(job, time.Now) }

func newAuthority(job string, now func() time.Time) (*Authority, error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: serial(),
		Subject:   pkix.Name{CommonName: "gomem job " + job},
		NotBefore: now().Add(-skew), NotAfter: now().Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		return nil, err
	}
	var secret [secretSize]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return nil, err
	}
	return authority(der, key, secret, now)
}

func authority(der []byte, key ed25519.PrivateKey, secret [secretSize]byte,
	now func() time.Time) (*Authority, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{cert, key, Token{sha256.Sum256(der), secret}, now}, nil
}

// Token is what joins a process to the job.
func (a *Authority) Token() Token { return a.token }

// Reveal is the authority as PEM, with its key and secret: for a rank 0 that may start
// again, or whose token is given out before it starts.
func (a *Authority) Reveal() ([]byte, error) {
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, b := range []*pem.Block{{Type: "CERTIFICATE", Bytes: a.cert.Raw},
		{Type: "PRIVATE KEY", Bytes: key},
		{Type: secretBlock, Bytes: a.token.secret[:]}} {
		out = append(out, pem.EncodeToMemory(b)...)
	}
	return out, nil
}

const secretBlock = "GOMEM JOIN SECRET"

// WriteFile puts what Reveal is into a file of mode 0600.
func (a *Authority) WriteFile(path string) error {
	text, err := a.Reveal()
	if err != nil {
		return err
	}
	return writeSecret(path, text)
}

// ReadAuthority reads what WriteFile wrote.
func ReadAuthority(path string) (*Authority, error) {
	text, err := readSecret(path, 16<<10)
	if err != nil {
		return nil, err
	}
	a, err := parseAuthority(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// errAuthority says nothing of what was read.
var errAuthority = errors.New("no authority of a gomem job")

func parseAuthority(text []byte) (*Authority, error) {
	blocks := map[string][]byte{}
	for b, rest := pem.Decode(text); b != nil; b, rest = pem.Decode(rest) {
		blocks[b.Type] = b.Bytes
	}
	parsed, err := x509.ParsePKCS8PrivateKey(blocks["PRIVATE KEY"])
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok || len(blocks[secretBlock]) != secretSize {
		return nil, errAuthority
	}
	a, err := authority(blocks["CERTIFICATE"], key, [secretSize]byte(blocks[secretBlock]), time.Now)
	if err != nil || !a.cert.IsCA || !key.Public().(ed25519.PublicKey).Equal(a.cert.PublicKey) {
		return nil, errAuthority
	}
	return a, nil
}

// issue certifies a member's key for a day.
func (a *Authority) issue(name string, hosts []string, public crypto.PublicKey) ([]byte, error) {
	if len(hosts) > maxHosts {
		return nil, fmt.Errorf("%d hosts in one certificate, at most %d", len(hosts), maxHosts)
	}
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: name},
		NotBefore: a.now().Add(-skew), NotAfter: a.now().Add(memberLife),
		KeyUsage: x509.KeyUsageDigitalSignature, DNSNames: []string{memberName, "localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	return x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
}

// Identity is rank 0's own, of which it is the authority itself. name says who it is in
// messages, "rank 0", and hosts are names and addresses that the certificate is for, too.
func (a *Authority) Identity(name string, hosts ...string) (*Identity, error) {
	id := &Identity{authority: a.cert, now: a.now}
	id.renew = func() (*tls.Certificate, error) {
		public, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		der, err := a.issue(name, hosts, public)
		if err != nil {
			return nil, err
		}
		return member(der, a.cert, key)
	}
	return id, id.Renew()
}

// serial is a number that no other certificate of an authority has.
func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return n
}
