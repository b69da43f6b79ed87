package control

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// firstTry is half a second: a request that was sent to a leader that is lost is answered by
// nobody, and the next leader is there within about one. Those that follow have longer.
const firstTry = 500 * time.Millisecond

// retry asks again while servers are not there or change their leader, in which requests get
// lost; etcd's client does so for reads alone. What is asked must not mind being done
// twice. It ends with ctx, or after the time for which a cluster is waited.
func retry[T any](ctx context.Context, c *Control, f func(context.Context) (T, error)) (T, error) {
	over, cancel := context.WithTimeoutCause(ctx, c.cfg.Wait, errWaited)
	defer cancel()
	for within := firstTry; ; within = min(2*within, 2*tryWithin) {
		try, done := context.WithTimeout(over, within)
		r, err := f(try)
		done()
		if err == nil || over.Err() != nil || !transient(err) || c.Err() != nil {
			return r, err
		}
		sleep(over, tryEvery)
	}
}

// commit is retry of a transaction.
func (c *Control) commit(ctx context.Context, cmps []clientv3.Cmp, then, or []clientv3.Op) (
	*clientv3.TxnResponse, error) {
	return retry(ctx, c, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return c.client.Txn(ctx).If(cmps...).Then(then...).Else(or...).Commit()
	})
}

// get is retry of a read.
func (c *Control) get(ctx context.Context, key string, how ...clientv3.OpOption) (
	*clientv3.GetResponse, error) {
	return retry(ctx, c, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return c.client.Get(ctx, key, how...)
	})
}

func transient(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	c := codeOf(err)
	return c == codes.Unavailable || c == codes.DeadlineExceeded || dropped(err)
}

// dropped reports whether a server took no request as it was just giving its lead to another one,
// or ending: those are errors without a code of their own.
func dropped(err error) bool {
	return err != nil && (strings.HasSuffix(err.Error(), "raft proposal dropped") ||
		strings.HasSuffix(err.Error(), "raft: stopped"))
}

// codeOf is an error's code, whether etcd's client has made it its own or not.
func codeOf(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}

// sleep waits, but no longer than ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
