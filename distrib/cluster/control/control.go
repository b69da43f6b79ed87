package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gomem/gomem/distrib"
)

var _ distrib.Coordinator = (*Control)(nil)

// Control is a node's part of the control plane. It is a [distrib.Coordinator].
type Control struct {
	cfg    Config
	client *clientv3.Client
	sentry *sentry // over the client
	log    *zap.Logger
	counts counts

	closed sync.Once
	mu     sync.Mutex
	server *server  // nil: this node embeds none
	id     string   // of the job; "" before Join
	ends   []string // where clients reach etcd
	others int      // servers in other nodes that come and go
	member *member  // nil before Join
	feed   *feed    // what Views returns
}

// Start embeds etcd if this node's rank is one of a server, connects to the cluster, which
// is waited for, and makes sure that it is the job's.
func Start(ctx context.Context, cfg Config) (*Control, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	c := &Control{cfg: cfg, log: cfg.Log, feed: newFeed()}
	if cfg.Rank < len(cfg.Servers) {
		if c.server, err = startServer(ctx, &c.cfg); err != nil {
			return nil, err
		}
	}
	if err := c.connect(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Control) connect(ctx context.Context) error {
	c.ends = endpoints(&c.cfg, c.server)
	if c.server != nil {
		wait, cancel := context.WithTimeoutCause(ctx, c.cfg.Wait, errWaited)
		defer cancel()
		if err := c.server.ready(wait); err != nil {
			return c.late(err)
		}
	}
	var err error
	if c.sentry, err = newSentry(&c.cfg); err != nil {
		return err
	}
	if c.client, err = c.sentry.connect(ctx, c.ends); err != nil {
		return err
	}
	return c.checkJob(ctx)
}

// late names the servers that a server waits for.
func (c *Control) late(err error) error {
	var others []string
	for i, s := range c.cfg.Servers {
		if i != c.cfg.Rank {
			others = append(others, fmt.Sprintf("rank %d at %s", i, s.Peer))
		}
	}
	switch {
	case !errors.Is(err, errWaited):
		return err
	case len(others) == 0:
		return fmt.Errorf("the control server is not ready after %v", c.cfg.Wait)
	}
	return fmt.Errorf("the control server waits for those of %s, and has for %v",
		strings.Join(others, ", "), c.cfg.Wait)
}

// JobError says that the etcd reached belongs to another job.
type JobError struct {
	At        []string
	Have, Ask string
}

// Error is one line.
func (e *JobError) Error() string {
	return fmt.Sprintf("the etcd at %v belongs to job %q, not to job %q: give another "+
		"address, or the same job everywhere", e.At, e.Have, e.Ask)
}

// checkJob: an embedded etcd serves one job; an external one as many as there are.
func (c *Control) checkJob(ctx context.Context) error {
	if len(c.cfg.Endpoints) > 0 {
		return nil
	}
	r, err := c.commit(ctx, absent(embeddedKey),
		[]clientv3.Op{clientv3.OpPut(embeddedKey, c.cfg.Job)},
		[]clientv3.Op{clientv3.OpGet(embeddedKey)})
	if err != nil || r.Succeeded {
		return err
	}
	if kvs := r.Responses[0].GetResponseRange().Kvs; string(kvs[0].Value) != c.cfg.Job {
		return &JobError{c.Endpoints(), string(kvs[0].Value), c.cfg.Job}
	}
	return nil
}

// Endpoints are the URLs at which clients reach the etcd that is in use.
func (c *Control) Endpoints() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ends)
}

// ServerLeads reports whether this node's embedded server is etcd's leader now.
func (c *Control) ServerLeads() bool {
	s := c.own()
	return s != nil && s.etcd.Server.Leader() == s.etcd.Server.MemberID()
}

// Err is why this node's embedded server has ended by itself, or nil; also while others serve.
func (c *Control) Err() error {
	c.mu.Lock()
	s, others := c.server, c.others
	c.mu.Unlock()
	if s == nil || others > 0 {
		return nil
	}
	return s.err()
}

// Close ends this node's part at once. If it is in a view, it is lost to the others, who
// learn of it at once, too; see [Control.Leave] for a farewell.
func (c *Control) Close() (err error) {
	c.closed.Do(func() {
		c.forget()
		c.mu.Lock()
		c.feed.drop()
		c.mu.Unlock()
		c.sentry.close()
		if c.client != nil {
			err = c.client.Close()
		}
		c.embed(nil).close()
	})
	return err
}

// Put stores a small value under a key of the job.
func (c *Control) Put(ctx context.Context, key string, val []byte) error {
	_, err := retry(ctx, c, func(ctx context.Context) (*clientv3.PutResponse, error) {
		return c.client.Put(ctx, c.key("kv", key), string(val))
	})
	return c.wrap("put "+key, err)
}

// Get is the value of a key of the job; an error that is [ErrNoKey] where there is none.
func (c *Control) Get(ctx context.Context, key string) ([]byte, error) {
	r, err := c.get(ctx, c.key("kv", key))
	if err != nil {
		return nil, c.wrap("get "+key, err)
	}
	if len(r.Kvs) == 0 {
		return nil, fmt.Errorf("get %s: %w", key, ErrNoKey)
	}
	return r.Kvs[0].Value, nil
}

// ErrNoKey is what [Control.Get] says of a key that was not put.
var ErrNoKey = errors.New("there is no such key")

// wrap says of an error what was to be done and, if this node's server is gone, why.
func (c *Control) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	if why := c.Err(); why != nil {
		return fmt.Errorf("%s: %w", what, why)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Where things are in etcd: below prefix, but for the job that an embedded server is of.
const embeddedKey = "/gomem-embedded"

func prefix(job string) string { return "/gomem/" + job + "/" }

func (c *Control) key(parts ...string) string {
	k := prefix(c.cfg.Job)
	for i, p := range parts {
		if i > 0 {
			k += "/"
		}
		k += p
	}
	return k
}
