package control

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gomem/gomem/distrib"
)

// Answer answers [Doctor]'s questions until ctx ends: with what facts returns, completed by
// what this node knows of itself. Node, Host, Time, Go, Expires, Memory and Disk may be left
// out.
func (c *Control) Answer(ctx context.Context, facts func() Facts) {
	dir := c.key("doctor", "ask", strconv.Itoa(c.cfg.Rank), "")
	rev := int64(0) // of what has been answered
	for ctx.Err() == nil {
		r, err := c.get(ctx, dir, clientv3.WithPrefix())
		if err != nil {
			sleep(ctx, tryEvery)
			continue
		}
		for _, kv := range r.Kvs {
			if kv.ModRevision <= rev {
				continue
			}
			if err := c.reply(ctx, strings.TrimPrefix(string(kv.Key), dir), facts()); err != nil {
				c.log.Info("a question was not answered", zap.Error(err))
			}
		}
		rev = r.Header.Revision
		if c.changed(ctx, dir, rev, stallReport) != nil {
			return
		}
	}
}

// reply writes an answer under the lease of the question, by whose end both are gone.
func (c *Control) reply(ctx context.Context, question string, f Facts) error {
	f = c.facts(f)
	val, err := json.Marshal(&f)
	if err != nil {
		return err
	}
	lease, err := strconv.ParseInt(question, 16, 64)
	if err != nil {
		return fmt.Errorf("question %q: %w", question, err)
	}
	_, err = c.client.Put(ctx, c.key("doctor", "answer", strconv.Itoa(c.cfg.Rank), question),
		string(val), clientv3.WithLease(clientv3.LeaseID(lease)))
	return err
}

// Targets are all nodes that are there, to be asked over etcd. This node need not have
// joined.
func (c *Control) Targets(ctx context.Context) ([]Target, error) {
	s, err := c.state(ctx)
	if err != nil {
		return nil, c.wrap("nodes", err)
	}
	var all []Target
	for _, n := range s.here {
		all = append(all, Target{Node: n.ID, Addr: n.Addr,
			Ask: func(ctx context.Context) (Facts, error) { return c.ask(ctx, n.ID) }})
	}
	return all, nil
}

// ask puts a question to a node and waits for its answer.
func (c *Control) ask(ctx context.Context, to distrib.NodeID) (Facts, error) {
	l, err := c.client.Grant(ctx, int64(askWithin.Seconds())+1)
	if err != nil {
		return Facts{}, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryWithin)
		defer cancel()
		c.client.Revoke(ctx, l.ID) // which ends by itself if not now
	}()
	question := strconv.FormatInt(int64(l.ID), 16)
	node := strconv.Itoa(int(to))
	p, err := c.client.Put(ctx, c.key("doctor", "ask", node, question), "",
		clientv3.WithLease(l.ID))
	if err != nil {
		return Facts{}, err
	}
	key, rev := c.key("doctor", "answer", node, question), p.Header.Revision
	for {
		r, err := c.get(ctx, key)
		if err != nil {
			return Facts{}, fmt.Errorf("no answer: %w", err)
		}
		if len(r.Kvs) > 0 {
			var f Facts
			err := json.Unmarshal(r.Kvs[0].Value, &f)
			return f, err
		}
		if err := c.changed(ctx, key, rev, askWithin); err != nil {
			return Facts{}, fmt.Errorf("no answer: %w", err)
		}
	}
}
