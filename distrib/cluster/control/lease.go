package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// errLease is why contexts end that last as long as a lease.
var errLease = errors.New("its lease was not renewed in time")

// lease is renewed until it is lost, dropped or revoked. Its context ends no later than
// the lease may end on the server: both count from when the last renewal that succeeded
// was sent, each by its own monotonic clock, and the server's later. Where there is a grace, it
// ends by that later, unless the server says that it is lost; who writes what others may have
// looks at until instead.
type lease struct {
	client *clientv3.Client
	id     clientv3.LeaseID
	ttl    time.Duration // as granted
	grace  time.Duration // after that, for a server that is away
	ctx    context.Context
	end    context.CancelCauseFunc
	ended  chan struct{}   // when nothing renews it any more
	of     string          // what it is for, in words
	note   func(of string) // when it is lost
	log    *zap.Logger

	lost   atomic.Bool
	mu     sync.Mutex
	over   time.Time                     // when it ends, unless it is renewed
	stream pb.Lease_LeaseKeepAliveClient // nil: none
	cancel context.CancelFunc            // of it; nil: neither there nor under way
}

// grant asks for a lease, of at least a time to live, and keeps it.
// One that was granted and nobody heard of ends by itself.
func grant(ctx context.Context, c *Control, of string, ttl, grace time.Duration) (*lease, error) {
	var sent time.Time
	r, err := retry(ctx, c, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		sent = time.Now()
		return c.client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	})
	if err != nil {
		return nil, fmt.Errorf("a lease: %w", err)
	}
	granted := time.Duration(r.TTL) * time.Second
	l := &lease{client: c.client, id: r.ID, ttl: granted, grace: grace, over: sent.Add(granted),
		of: of, note: c.noteLost, log: c.log, ended: make(chan struct{})}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	go l.keep()
	return l, nil
}

// keepEvery is how often a lease is renewed: ten times before it ends, which is every half a second
// for 5 s, and for short ones three times, with some room.
func keepEvery(ttl time.Duration) time.Duration { return min(ttl*3/10, max(ttl/10, askEvery)) }

// renewWithin is how long a request may take that follows so many in vain, before it is given up
// for one to another server: 0.75 s for a lease of 5, and then twice as long, since a server may
// be slow, or ask for a password first, which takes a good part of a second.
func renewWithin(ttl time.Duration, failed int) time.Duration {
	return min(max(ttl*3/20, minRenewal)<<failed, ttl/2)
}

const minRenewal = 300 * time.Millisecond

// keep renews. The timer ends the context even while a request hangs.
func (l *lease) keep() {
	defer close(l.ended)
	defer l.hangUp()
	last := time.AfterFunc(time.Until(l.until().Add(l.grace)), l.lose)
	defer last.Stop()
	next := time.NewTimer(keepEvery(l.ttl))
	defer next.Stop()
	for failed := 0; ; failed++ {
		select {
		case <-l.ctx.Done():
			return
		case <-next.C:
		}
		at := time.Now()
		err := l.renew(renewWithin(l.ttl, min(failed, 2)))
		switch {
		case err == nil && l.ctx.Err() == nil:
			failed = -1
			l.mu.Lock()
			l.over = at.Add(l.ttl)
			l.mu.Unlock()
			last.Reset(time.Until(at.Add(l.ttl + l.grace)))
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			l.lose()
			return
		case l.ctx.Err() == nil:
			l.log.Info("a lease was not renewed", zap.String("of", l.of), zap.Error(err))
		}
		next.Reset(max(time.Until(at.Add(keepEvery(l.ttl))), keepEvery(l.ttl)/4))
	}
}

// lose ends a lease that was not renewed in time, once.
func (l *lease) lose() {
	if l.lost.CompareAndSwap(false, true) && l.ctx.Err() == nil {
		l.end(errLease)
		l.note(l.of)
	}
}

// until is when the lease ends here, unless it is renewed.
func (l *lease) until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// renew is one request, which is given up for one on another stream when it takes too long.
// The stream is kept: where there are passwords, a new one takes a good part of a second.
func (l *lease) renew(within time.Duration) error {
	late := time.AfterFunc(within, func() { l.hangUp() })
	defer late.Stop()
	r, err := l.ask()
	if err != nil {
		l.hangUp()
		return err
	}
	if r.TTL <= 0 {
		return rpctypes.ErrLeaseNotFound
	}
	return nil
}

func (l *lease) ask() (*pb.LeaseKeepAliveResponse, error) {
	s, err := l.dial()
	if err != nil {
		return nil, err
	}
	if err := s.Send(&pb.LeaseKeepAliveRequest{ID: int64(l.id)}); err != nil {
		return nil, err
	}
	return s.Recv()
}

// dial returns the stream, a new one where there is none.
func (l *lease) dial() (pb.Lease_LeaseKeepAliveClient, error) {
	l.mu.Lock()
	if l.stream != nil {
		defer l.mu.Unlock()
		return l.stream, nil
	}
	ctx, cancel := context.WithCancel(l.ctx)
	l.cancel = cancel
	l.mu.Unlock()
	lease := pb.NewLeaseClient(l.client.ActiveConnection())
	s, err := lease.LeaseKeepAlive(clientv3.WithRequireLeader(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stream = s
	return s, nil
}

// hangUp ends the stream, also while it is waited for.
func (l *lease) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		l.cancel()
	}
	l.stream, l.cancel = nil, nil
}

// drop ends the context and renews no more; the server keeps the lease until it is over.
func (l *lease) drop(why error) {
	l.end(why)
	<-l.ended
}

// revoke ends the lease on the server too, if that can be reached.
func (l *lease) revoke(why error) {
	l.drop(why)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := l.client.Revoke(ctx, l.id); err != nil {
		l.log.Info("a lease is left to end by itself", zap.String("of", l.of), zap.Error(err))
	}
}

// within is a context that ends with ctx or with the lease.
func (l *lease) within(ctx context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return both, func() {
		stop()
		cancel(context.Canceled)
	}
}
