package trust_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gomem/gomem/distrib/cluster/trust"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// office is a job's authority with a server on loopback.
type office struct {
	authority *trust.Authority
	rank0     *trust.Identity
	address   string
	mu        sync.Mutex
	said      strings.Builder
	here      atomic.Bool // "rank 1" is
}

func open(t *testing.T) *office {
	o := &office{authority: must(trust.New("test"))(t)}
	o.rank0 = must(o.authority.Identity("rank 0"))(t)
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	o.address = l.Addr().String()
	s := &trust.Server{Authority: o.authority, Identity: o.rank0,
		Taken: func(name string) bool { return name == "rank 1" && o.here.Load() },
		Info:  func() []byte { return []byte("etcd is there") },
		Log: func(line string) {
			o.mu.Lock()
			defer o.mu.Unlock()
			fmt.Fprintln(&o.said, line)
		}}
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return o
}

// TestJoin: who has the token gets a certificate, by which members talk to each other.
func TestJoin(t *testing.T) {
	o := open(t)
	id, info, err := trust.Join(t.Context(), o.address, o.authority.Token(), "rank 1", "10.0.0.7")
	if err != nil || string(info) != "etcd is there" {
		t.Fatal(err, info)
	}
	if until := time.Until(id.Expires()); until < 23*time.Hour || until > 24*time.Hour {
		t.Error("expires in", until)
	}
	for _, pair := range [][2]*trust.Identity{{id, o.rank0}, {o.rank0, id}} {
		client, server, err := shake(pair[0].Client(), pair[1].Server())
		if err != nil {
			t.Fatal(err)
		}
		if name := server.PeerCertificates[0].Subject.CommonName; name != pair[0].Name() {
			t.Error(name)
		}
		if client.Version != tls.VersionTLS13 {
			t.Error("version", client.Version)
		}
	}
	if before := id.Expires(); id.Renew() != nil || id.Expires().Before(before) {
		t.Error("not renewed")
	}
	if authority, cert, key, err := id.PEM(); err != nil {
		t.Error(err)
	} else if _, err := tls.X509KeyPair(cert, key); err != nil || len(authority) == 0 {
		t.Error(err)
	}
}

// shake is a handshake, and a byte each way.
func shake(client, server *tls.Config) (c, s tls.ConnectionState, err error) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	served := make(chan error, 1)
	conn := tls.Server(b, server)
	go func() {
		err := conn.Handshake()
		if err == nil {
			_, err = conn.Write([]byte("x"))
		}
		b.Close()
		served <- err
	}()
	dialed := tls.Client(a, client)
	if err = dialed.Handshake(); err == nil {
		_, err = io.ReadFull(dialed, make([]byte, 1))
	}
	a.Close()
	return dialed.ConnectionState(), conn.ConnectionState(), errors.Join(err, <-served)
}

// TestStrangers: without a certificate of the job there is a handshake error and not one
// byte, on either side; neither old protocols nor other jobs get any further.
func TestStrangers(t *testing.T) {
	a, other := must(trust.New("a"))(t), must(trust.New("b"))(t)
	id, stranger := must(a.Identity("a"))(t), must(other.Identity("b"))(t)
	nobody := id.Client()
	nobody.GetClientCertificate = nil
	old := id.Client()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for name, c := range map[string]struct{ client, server *tls.Config }{
		"no certificate":         {nobody, id.Server()},
		"another job's member":   {stranger.Client(), id.Server()},
		"another job's server":   {id.Client(), stranger.Server()},
		"TLS 1.2":                {old, id.Server()},
		"a client's certificate": {withCertificate(id.Client(), stranger), id.Server()},
	} {
		if _, _, err := shake(c.client, c.server); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
}

// withCertificate shows somebody else's.
func withCertificate(c *tls.Config, whose *trust.Identity) *tls.Config {
	c.GetClientCertificate = whose.Client().GetClientCertificate
	return c
}

// TestWrongToken: a secret that is not the job's is refused at once, a server that is not
// the job's is not told the secret, and none of it is written anywhere.
func TestWrongToken(t *testing.T) {
	o, other := open(t), open(t)
	secret := secretOf(o.authority.Token())
	text := string(o.authority.Token().Reveal())
	mixed := text[:strings.LastIndex(text, ".")+1] + secretOf(other.authority.Token()) + "\n"
	wrong := must(trust.ParseToken([]byte(mixed)))(t)
	_, _, err := trust.Join(t.Context(), o.address, wrong, "rank 1")
	if !errors.Is(err, trust.ErrRefused) {
		t.Error(err)
	}
	_, _, foreign := trust.Join(t.Context(), other.address, o.authority.Token(), "rank 1")
	if !errors.Is(foreign, trust.ErrOtherJob) {
		t.Error(foreign)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	all := fmt.Sprint(err, foreign) + o.said.String()
	for _, s := range []string{secret, secretOf(other.authority.Token())} {
		if strings.Contains(all, s) {
			t.Error("a secret in:", all)
		}
	}
	if !strings.Contains(all, "wrong join token") || strings.Contains(err.Error(), "\n") {
		t.Error(all)
	}
}

// TestStaleToken: the file of the job before is waited out, and named if it stays.
func TestStaleToken(t *testing.T) {
	o, before := open(t), must(trust.New("before"))(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := before.Token().WriteFile(file); err != nil {
		t.Fatal(err)
	}
	var err error
	for wait := 200 * time.Millisecond; wait < 20*time.Second; wait *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		_, _, err = trust.JoinFile(ctx, o.address, file, "rank 1")
		cancel()
		if errors.Is(err, trust.ErrOtherJob) {
			break // else the machine was too busy for an answer
		}
	}
	if !errors.Is(err, trust.ErrOtherJob) || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
	wrote := make(chan error)
	go func() {
		time.Sleep(50 * time.Millisecond)
		wrote <- o.authority.Token().WriteFile(file)
	}()
	if _, _, err := trust.JoinFile(t.Context(), o.address, file, "rank 1"); err != nil {
		t.Error(err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

func secretOf(t trust.Token) string {
	text := strings.TrimSpace(string(t.Reveal()))
	return text[strings.LastIndex(text, ".")+1:]
}

// TestNothingIsPrinted: no way of printing shows a secret.
func TestNothingIsPrinted(t *testing.T) {
	a := must(trust.New("j"))(t)
	id := must(a.Identity("rank 0"))(t)
	token := a.Token()
	for _, v := range []any{token, &token, a, id, struct{ T trust.Token }{token},
		[]trust.Token{token}, map[string]trust.Token{"t": token}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			out := fmt.Sprintf(verb, v)
			if !strings.Contains(out, "[") || len(out) > 60 {
				t.Errorf("%s: %s", verb, out)
			}
		}
		if out, _ := json.Marshal(v); strings.Contains(string(out), secretOf(token)) {
			t.Errorf("%s", out)
		}
	}
	for _, text := range []string{"", "x", "gomem1." + secretOf(token),
		"gomem2.a." + secretOf(token), string(token.Reveal()) + "x", strings.Repeat("y", 1000)} {
		_, err := trust.ParseToken([]byte(text))
		if err == nil || strings.Contains(err.Error(), secretOf(token)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestFiles: secrets are in files of mode 0600, and are not read from ones that everybody
// reads.
func TestFiles(t *testing.T) {
	a := must(trust.New("j"))(t)
	dir := t.TempDir()
	token, keys := filepath.Join(dir, "token"), filepath.Join(dir, "authority")
	go func() { // rank 0 is late
		time.Sleep(10 * time.Millisecond)
		if err := errors.Join(a.Token().WriteFile(token), a.WriteFile(keys)); err != nil {
			t.Error(err)
		}
	}()
	got := must(trust.ReadToken(t.Context(), token))(t)
	if !bytes.Equal(got.Reveal(), a.Token().Reveal()) {
		t.Error("another token")
	}
	for {
		if _, err := os.Stat(keys); err == nil {
			break
		}
		runtime.Gosched()
	}
	again := must(trust.ReadAuthority(keys))(t)
	if !bytes.Equal(again.Token().Reveal(), a.Token().Reveal()) {
		t.Error("another authority")
	}
	id, id2 := must(a.Identity("1"))(t), must(again.Identity("2"))(t)
	if _, _, err := shake(id.Client(), id2.Server()); err != nil {
		t.Error(err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, file := range []string{token, keys} {
		if info := must(os.Stat(file))(t); info.Mode().Perm() != 0o600 {
			t.Error(file, info.Mode())
		}
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := trust.ReadToken(t.Context(), token)
	_, err2 := trust.ReadAuthority(keys)
	if err == nil || err2 == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err, err2)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := trust.ReadToken(ctx, filepath.Join(dir, "none")); err == nil {
		t.Error("a token from nowhere")
	}
}

// TestKeep: certificates are renewed before they expire, for a week of days.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := must(trust.New("j"))(t)
		id, other := must(a.Identity("1"))(t), must(a.Identity("2"))(t)
		ctx, cancel := context.WithCancel(t.Context())
		go id.Keep(ctx, func(err error) { t.Error(err) })
		for range 7 * 4 {
			time.Sleep(6 * time.Hour)
			synctest.Wait()
			if left := time.Until(id.Expires()); left < time.Hour {
				t.Errorf("%v left", left)
			}
		}
		if _, _, err := shake(id.Client(), id.Server()); err != nil {
			t.Error(err)
		}
		if _, _, err := shake(other.Client(), id.Server()); err == nil {
			t.Error("a certificate of last week is good")
		}
		cancel()
	})
}

// TestPlain: no encryption on loopback only, unless it is said.
func TestPlain(t *testing.T) {
	for _, address := range []string{"127.0.0.1:80", "[::1]:80", "localhost:80", "127.9.9.9"} {
		if err := trust.Plain(address, false); err != nil {
			t.Error(err)
		}
	}
	for _, address := range []string{"0.0.0.0:80", ":80", "10.0.0.1:80", "host:80", "[::]:80"} {
		if err := trust.Plain(address, false); err == nil ||
			!strings.Contains(err.Error(), "--insecure") {
			t.Error(address, err)
		}
		if err := trust.Plain(address, true); err != nil {
			t.Error(err)
		}
	}
}

// TestTaken: who has the token gets no certificate of a name whose member is there, nor rank 0's;
// that member gets another one of it, and once it is gone, whoever takes its place.
func TestTaken(t *testing.T) {
	o := open(t)
	join := func(name string) (err error) { // who is refused tries again: until it is heard
		for wait := 100 * time.Millisecond; wait < 20*time.Second; wait *= 4 {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			_, _, err = trust.Join(ctx, o.address, o.authority.Token(), name)
			cancel()
			if _, taken := errors.AsType[*trust.TakenError](err); taken || err == nil {
				break
			}
		}
		return err
	}
	id, _, err := trust.Join(t.Context(), o.address, o.authority.Token(), "rank 1")
	if err != nil {
		t.Fatal(err)
	}
	o.here.Store(true)
	for _, name := range []string{"rank 1", "rank 0"} {
		err := join(name)
		if taken, ok := errors.AsType[*trust.TakenError](err); !ok || taken.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := id.Expires()
	if err := id.Renew(); err != nil || id.Name() != "rank 1" || id.Expires().Before(before) {
		t.Error("renewed: ", err)
	}
	o.here.Store(false)
	if _, _, err := trust.Join(t.Context(), o.address, o.authority.Token(), "rank 1"); err != nil {
		t.Error(err)
	}
}
