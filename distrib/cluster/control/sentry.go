package control

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
)

// Times of a sentry: from one question to a server to the next, and for an answer.
const (
	askEvery     = 500 * time.Millisecond
	answerWithin = time.Second
)

// sentry has a client leave servers that do not answer. A server that is stopped, or whose
// machine hangs, keeps its connections: its kernel takes what is sent, and gRPC itself would notice
// after twelve seconds, longer than a lease. So each server of several is asked for something
// small twice a second; of one that does not answer in time while another one does, the
// connections are cut, so that requests, watches and leases move, until it answers again.
type sentry struct {
	cfg    *Config
	secure *tls.Config
	lines  lines

	mu     sync.Mutex
	client *clientv3.Client
	ends   []string         // where etcd is
	used   []string         // those of ends that the client asks
	posts  map[string]*post // by where it is; none where there is one server
	asking sync.WaitGroup
}

// post is a server that is asked.
type post struct {
	client   *clientv3.Client // whose only server it is
	stop     context.CancelFunc
	answered time.Time // when the newest question was put that it has answered
	silent   bool
}

func newSentry(cfg *Config) (*sentry, error) {
	secure, err := cfg.TLS.client()
	return &sentry{cfg: cfg, secure: secure, posts: map[string]*post{},
		lines: lines{open: map[*line]string{}}}, err
}

// guard begins to look after a client, which asks the servers at some URLs.
func (s *sentry) guard(client *clientv3.Client, ends []string) {
	s.mu.Lock()
	s.client, s.used = client, ends
	s.mu.Unlock()
	s.reach(ends)
}

// reach has the client ask the servers at other URLs.
func (s *sentry) reach(ends []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return
	}
	s.ends = slices.Clone(ends)
	for end, p := range s.posts {
		if len(ends) < 2 || !slices.Contains(ends, end) {
			p.stop()
			delete(s.posts, end)
		}
	}
	for _, end := range ends {
		if s.posts[end] == nil && len(ends) > 1 {
			s.post(end)
		}
	}
	s.apply()
}

// post begins to ask a server. The sentry is locked.
func (s *sentry) post(end string) {
	c, err := clientv3.New(clientConfig(s.cfg, []string{end}, s.secure, nil))
	if err != nil {
		s.cfg.Log.Info("a server is not looked after", zap.String("at", end), zap.Error(err))
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &post{client: c, stop: stop}
	s.posts[end] = p
	s.asking.Go(func() {
		defer c.Close()
		for ctx.Err() == nil {
			asked := time.Now()
			s.note(end, p, asked, p.answers(ctx))
			sleep(ctx, askEvery)
		}
	})
}

// answers reports whether a server answers. Any answer will do, also one that refuses. It is asked
// for its health, by gRPC's own means: asked for etcd's status, a server that is ending may panic.
func (p *post) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	_, err := health.NewHealthClient(p.client.ActiveConnection()).Check(ctx,
		&health.HealthCheckRequest{})
	switch codeOf(err) {
	case codes.DeadlineExceeded, codes.Unavailable, codes.Canceled:
		return false
	}
	return true
}

// note takes what came of a question. Silence counts only where another server has answered what
// it was asked later: this process may be the one that was stopped.
func (s *sentry) note(end string, p *post, asked time.Time, answers bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.posts[end] != p {
		return
	}
	was := p.silent
	if answers {
		p.answered, p.silent = asked, false
	} else {
		for _, o := range s.posts {
			p.silent = p.silent || o != p && !o.answered.Before(asked)
		}
	}
	if p.silent != was {
		s.cfg.Log.Info("a server", zap.String("at", end), zap.Bool("answers", !p.silent))
	}
	s.apply()
}

// apply has the client ask the servers that are not silent; all if there are none. The sentry is
// locked.
func (s *sentry) apply() {
	used := slices.DeleteFunc(slices.Clone(s.ends), func(end string) bool {
		p := s.posts[end]
		return p != nil && p.silent
	})
	if len(used) == 0 {
		used = s.ends
	}
	if slices.Equal(used, s.used) {
		return
	}
	s.used = used
	s.client.SetEndpoints(used...)
	s.lines.cut(used)
}

// close ends the sentry; its client is another's to close.
func (s *sentry) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	for _, p := range s.posts {
		p.stop()
	}
	s.posts = map[string]*post{}
	s.client = nil
	s.mu.Unlock()
	s.asking.Wait()
}

// lines are the connections of a client, by where they go. gRPC lets what is under way on a
// connection end before it closes it, which it would not where nobody answers.
type lines struct {
	mu   sync.Mutex
	open map[*line]string
}

// line is one of them.
type line struct {
	net.Conn
	of *lines
}

// dial connects to host:port.
func (l *lines) dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	own := &line{c, l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[own] = address
	return own, nil
}

// Close closes it.
func (l *line) Close() error {
	l.of.mu.Lock()
	delete(l.of.open, l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}

// cut closes all connections but those to some URLs.
func (l *lines) cut(but []string) {
	var keep []string
	for _, end := range but {
		_, address, _ := strings.Cut(end, "://")
		keep = append(keep, strings.TrimSuffix(address, "/"))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, address := range l.open {
		if !slices.Contains(keep, address) {
			c.Conn.Close() // its owner sees that, and closes it once more
		}
	}
}
