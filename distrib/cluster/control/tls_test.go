package control

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gomem/gomem/distrib/cluster/trust"
	"github.com/gomem/gomem/internal/longtest"
)

// authority signs certificates for loopback.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func block(kind string, b []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true,
		Subject:   pkix.Name{CommonName: "job"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.pem = block("CERTIFICATE", der)
	return a
}

// node is the certificate of a node, which is over at a time.
func (a *authority) node(t *testing.T, until time.Time) TLS {
	t.Helper()
	k := newKey(t)
	c := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth,
			x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return TLS{Cert: block("CERTIFICATE", der), Key: block("PRIVATE KEY", private), CA: a.pem}
}

// inFiles writes certificates to files.
func inFiles(t *testing.T, c TLS) TLS {
	t.Helper()
	f, err := c.files(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return *f
}

// TestTLS: with certificates of the job, in files or not, everything works; all others
// are told at which end they fail, and get no answer.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	later := time.Now().Add(time.Hour)
	cfg := quick(one(t))
	cfg.TLS = inFiles(t, ca.node(t, later))
	a := start(t, cfg)
	good := joinable(a, 1)
	good.Servers[0].Client = strings.TrimPrefix(a.ends[0], "https://")
	good.TLS = ca.node(t, later)
	third := good
	third.TLS = TLS{Source: func() (authority, cert, key []byte, err error) {
		c := ca.node(t, later)
		return c.CA, c.Cert, c.Key, nil
	}}
	third.Rank = 2
	joinAll(t, []*Control{a, start(t, good), start(t, third)}, 3, 3)

	good.Wait = 500 * time.Millisecond
	stranger := other.node(t, later)
	for name, c := range map[string]struct {
		tls  TLS
		want string
	}{
		"no certificate": {TLS{}, "does not answer without TLS"},
		"another authority for both": {stranger, "signed by unknown authority|" +
			"certificate"},
		"another authority for the client": {TLS{Cert: stranger.Cert, Key: stranger.Key,
			CA: ca.pem}, "bad certificate|unknown certificate|certificate"},
		"over": {ca.node(t, time.Now().Add(-time.Minute)), "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := good
			cfg.TLS = c.tls
			b, err := Start(t.Context(), cfg)
			if err == nil {
				b.Close()
				t.Fatal("it is let in")
			}
			var fail *ConnectError
			if !errors.As(err, &fail) || !matches(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			t.Log(err)
		})
	}
}

func matches(s, alternatives string) bool {
	for a := range strings.SplitSeq(alternatives, "|") {
		if strings.Contains(s, a) {
			return true
		}
	}
	return false
}

// TestTLSFiles: what is wrong with certificates is said before anything is connected.
func TestTLSFiles(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	good := inFiles(t, ca.node(t, time.Now().Add(time.Hour)))
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tls  TLS
		want string
	}{
		"no such authority": {TLS{CertFile: good.CertFile, KeyFile: good.KeyFile,
			CAFile: "/nowhere"}, "authority"},
		"an empty authority": {TLS{CertFile: good.CertFile, KeyFile: good.KeyFile,
			CAFile: empty}, "none in PEM"},
		"an empty key": {TLS{CertFile: good.CertFile, KeyFile: empty, CAFile: good.CAFile},
			"this node's certificate"},
		"bytes that are none": {TLS{Cert: []byte("x"), Key: []byte("x"), CA: ca.pem},
			"this node's certificate"},
	} {
		cfg := one(t)
		cfg.TLS, cfg.Rank = c.tls, 1
		if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPassword: an external cluster that wants a password gets it, and a wrong one is
// said at once, without the password.
func TestPassword(t *testing.T) {
	t.Parallel()
	patient := one(t)
	patient.TTL = 30 * time.Second // hashing passwords takes the processors' time
	a := start(t, patient)
	ctx := t.Context()
	for _, err := range []error{
		second(a.client.UserAdd(ctx, "root", "secret-root")),
		second(a.client.UserGrantRole(ctx, "root", "root")),
		second(a.client.AuthEnable(ctx)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg := joinable(a, 1)
	cfg.Endpoints, cfg.Servers, cfg.User, cfg.Password = a.ends, nil, "root", "secret-root"
	b := start(t, cfg)
	if _, err := b.Join(ctx, node(0), 1, 1); err != nil {
		t.Error(err)
	}
	cfg.Password = "secret-wrong"
	from := time.Now()
	_, err := Start(ctx, cfg)
	var fail *ConnectError
	if !errors.As(err, &fail) || strings.Contains(err.Error(), "secret") {
		t.Errorf("a wrong password: %v", err)
	}
	t.Logf("after %v: %v", time.Since(from).Round(time.Millisecond), err)
	cfg.User, cfg.Password, cfg.Wait = "", "", 500*time.Millisecond
	if _, err := Start(ctx, cfg); !errors.As(err, &fail) {
		t.Errorf("no password: %v", err)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: a.ends, Username: "root",
		Password: "secret-root", DialTimeout: soon})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.AuthDisable(context.Background()); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestTrust: three servers with the identities of a job's authority, whose certificates
// are for the job and not for addresses.
func TestTrust(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	a, err := trust.New("test")
	if err != nil {
		t.Fatal(err)
	}
	all := three(t, quick(one(t)), func(rank int) TLS {
		id, err := a.Identity(fmt.Sprint("rank ", rank))
		if err != nil {
			t.Fatal(err)
		}
		return TLS{Source: id.PEM, ServerName: id.Client().ServerName}
	})
	if err := all[0].Put(t.Context(), "x", []byte("y")); err != nil {
		t.Error(err)
	}
}
