package control

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestAnswersNoMore: an etcd that has ended, as one does that is removed from its cluster, says so
// to who asks it still, where it would end the process by reading of data that it has closed.
func TestAnswersNoMore(t *testing.T) {
	t.Parallel()
	c := start(t, one(t))
	if _, err := c.client.Put(t.Context(), "a", "b"); err != nil {
		t.Fatal(err)
	}
	_, err := c.server.answer(t.Context(), nil, nil, func(context.Context, any) (any, error) {
		c.server.etcd.Server.HardStop()
		panic("what is read is closed")
	})
	if !errors.Is(err, rpctypes.ErrGRPCStopped) {
		t.Errorf("%v, want %v", err, rpctypes.ErrGRPCStopped)
	}
	for _, request := range []func() error{
		func() error {
			_, err := c.client.Get(t.Context(), "a", clientv3.WithSerializable())
			return err
		},
		func() error {
			at := clientv3.Compare(clientv3.Version("a"), "=", 1)
			_, err := c.client.Txn(t.Context()).If(at).
				Then(clientv3.OpGet("a", clientv3.WithSerializable())).Commit()
			return err
		},
	} {
		if err := request(); !errors.Is(err, rpctypes.ErrStopped) {
			t.Errorf("%v, want %v", err, rpctypes.ErrStopped)
		}
	}
}

// TestPanics: what etcd panics of while it serves is hidden from nobody.
func TestPanics(t *testing.T) {
	t.Parallel()
	c := start(t, one(t))
	defer func() {
		if why := recover(); why != "a fault" {
			t.Errorf("%v", why)
		}
	}()
	_, err := c.server.answer(t.Context(), nil, nil, func(context.Context, any) (any, error) {
		panic("a fault")
	})
	t.Errorf("%v, not a panic", err)
}
