package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
)

// Times of connections. Pings are for the only server of a job, since gRPC sends none more often:
// one of several that does not answer is left sooner, see sentry.
const (
	pingEvery  = 10 * time.Second
	pingWithin = 2 * time.Second
	tryEvery   = 200 * time.Millisecond
	tryWithin  = 2 * time.Second
)

// ConnectError says that the control plane is not reached, and why.
type ConnectError struct {
	Endpoints []string
	After     time.Duration
	Err       error // what the first of the endpoints that says something says
}

// Error is one line.
func (e *ConnectError) Error() string {
	return fmt.Sprintf("no etcd at %s after %v: %v", strings.Join(e.Endpoints, ", "),
		e.After.Round(100*time.Millisecond), e.Err)
}

// Unwrap is the reason.
func (e *ConnectError) Unwrap() error { return e.Err }

// endpoints are the URLs that clients use.
func endpoints(cfg *Config, s *server) []string {
	if len(cfg.Endpoints) > 0 {
		return cfg.Endpoints
	}
	var all []string
	for i, at := range cfg.Servers {
		if s != nil && i == cfg.Rank {
			at = s.at // a port that was chosen
		}
		all = append(all, scheme(&cfg.TLS)+"://"+at.Client)
	}
	return all
}

// connect makes a client and waits until the cluster answers it.
func (s *sentry) connect(ctx context.Context, ends []string) (*clientv3.Client, error) {
	cfg := s.cfg
	// A client with a password asks for a token at once, so the cluster is tried first.
	start := time.Now()
	wait, cancel := context.WithTimeoutCause(ctx, cfg.Wait, errWaited)
	defer cancel()
	for {
		c, err := s.dial(wait, ends)
		if err == nil {
			s.guard(c, ends)
			return c, nil
		}
		if refused(err) || wait.Err() != nil {
			return nil, failure(ctx, ends, s.secure, time.Since(start), err)
		}
		select {
		case <-time.After(tryEvery):
		case <-wait.Done():
		}
	}
}

var errWaited = errors.New("waited long enough")

// clientConfig is that of a client of some servers, which asks for leave to ask them where there is
// a password: one without lines only asks what everybody may.
func clientConfig(cfg *Config, ends []string, secure *tls.Config, own *lines) clientv3.Config {
	c := clientv3.Config{
		Endpoints: ends, TLS: secure, DialTimeout: tryWithin,
		DialKeepAliveTime: pingEvery, DialKeepAliveTimeout: pingWithin,
		Logger: cfg.etcdLog(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6,
				Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: tryWithin,
		})},
	}
	if own != nil {
		c.Username, c.Password = cfg.User, cfg.Password
		c.DialOptions = append(c.DialOptions, grpc.WithContextDialer(own.dial))
	}
	return c
}

// dial makes a client and asks it for something that every cluster answers.
func (s *sentry) dial(ctx context.Context, ends []string) (*clientv3.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	c, err := clientv3.New(clientConfig(s.cfg, ends, s.secure, &s.lines))
	if err != nil {
		return nil, err
	}
	if _, err = c.Get(ctx, prefix(s.cfg.Job)); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// refused reports whether waiting does not help.
func refused(err error) bool {
	switch codeOf(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated:
		return true
	}
	return false
}

// failure says why the cluster is not reached, by a handshake of our own: what a client
// says of it is that it took too long.
func failure(ctx context.Context, ends []string, secure *tls.Config, after time.Duration,
	err error) error {
	if ctx.Err() == nil && !refused(err) {
		for _, e := range ends {
			if why := handshake(e, secure); why != nil {
				err = why
				break
			}
		}
	}
	return &ConnectError{ends, after, err}
}

var errSilent = errors.New("something listens there, and does not answer without TLS")

// handshake connects to an endpoint. That a server takes no part of a client's
// certificate comes with what is read first.
func handshake(endpoint string, secure *tls.Config) error {
	scheme, addr, _ := strings.Cut(endpoint, "://")
	if secure == nil && scheme == "https" {
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	d := &net.Dialer{Timeout: tryWithin}
	if secure == nil {
		c, err := d.Dial("tcp", addr)
		if err == nil {
			c.Close()
			err = errSilent
		}
		return err
	}
	c, err := tls.DialWithDialer(d, "tcp", addr, secure)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(tryWithin))
	_, err = c.Read(make([]byte, 1))
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		return nil
	}
	return err
}
