package control

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Stop asks all nodes of the job to end at their next tick, and says why.
func (c *Control) Stop(ctx context.Context, why string) error {
	_, err := c.commit(ctx, nil, []clientv3.Op{clientv3.OpPut(c.key("stop"), why)}, nil)
	return c.wrap("stop", err)
}

// Resume takes back what [Control.Stop] has asked for, before a job starts anew.
func (c *Control) Resume(ctx context.Context) error {
	_, err := c.commit(ctx, nil, []clientv3.Op{clientv3.OpDelete(c.key("stop"))}, nil)
	return c.wrap("resume", err)
}

// Stopped waits until somebody asks all nodes to end, and returns why.
func (c *Control) Stopped(ctx context.Context) (string, error) {
	for {
		r, err := c.get(ctx, c.key("stop"))
		if err != nil {
			return "", c.wrap("stop", err)
		}
		if len(r.Kvs) > 0 {
			return string(r.Kvs[0].Value), nil
		}
		if err := c.changed(ctx, c.key("stop"), r.Header.Revision, stallReport); err != nil {
			return "", err
		}
	}
}
