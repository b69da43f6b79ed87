package control

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// term is a time of leading.
type term struct {
	ctx context.Context
	key string // of the leader, while it leads
	rev int64  // that made it
}

// leads is the condition for what only a leader writes.
func (t *term) leads() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(t.key), "=", t.rev)
}

var errLed = errors.New("another node leads")

// Lead waits until this node leads in a role. The term ends when the node is out, when its
// lease for leading is lost, or when ctx ends, by which the role is given to another. The
// lease is a second's, shorter than the node's: after a pause of three seconds another
// leads, and yet nobody is lost.
func (c *Control) Lead(ctx context.Context, role string) (context.Context, error) {
	m, err := c.joined()
	if err != nil {
		return nil, err
	}
	if role == rendezvousRole {
		return nil, fmt.Errorf("lead: the role %q is taken", role)
	}
	t, err := m.lead(ctx, role)
	if err != nil {
		return nil, m.guard(ctx, "lead in "+role, err)
	}
	return t.ctx, nil
}

// lead campaigns, with another lease whenever one is lost.
func (m *member) lead(ctx context.Context, role string) (*term, error) {
	for {
		l, err := m.roleLease(ctx)
		if err != nil {
			return nil, err
		}
		t, err := m.campaign(ctx, l, role)
		if err == nil || ctx.Err() != nil || l.ctx.Err() == nil || m.lease.ctx.Err() != nil {
			return t, err
		}
	}
}

// campaign waits for a term under a lease. The lease is renewed by ourselves, which the
// session therefore does not do.
func (m *member) campaign(ctx context.Context, l *lease, role string) (*term, error) {
	in, stop := l.within(ctx)
	defer stop()
	in, out := m.lease.within(in)
	defer out()
	s, err := concurrency.NewSession(m.c.client, concurrency.WithLease(l.id),
		concurrency.WithContext(in))
	if err != nil {
		return nil, err
	}
	s.Orphan()
	e := concurrency.NewElection(s, m.c.key("lead", url.PathEscape(role)))
	won := make(chan error, 1)
	go func() {
		won <- e.Campaign(clientv3.WithRequireLeader(in), m.rec.Host+" "+m.rec.Addr)
	}()
	select {
	case err = <-won:
	case <-in.Done(): // Campaign would not return while etcd cannot be reached
		go m.regret(l, e, won)
		err = context.Cause(in)
	}
	if err != nil {
		return nil, err
	}
	t := &term{key: e.Key(), rev: e.Rev()}
	m.c.noteElected(role)
	inner, free := m.lease.within(ctx)
	var end context.CancelFunc
	t.ctx, end = l.within(inner)
	context.AfterFunc(t.ctx, func() {
		end()
		free()
		m.resign(l, t)
	})
	return t, nil
}

// regret resigns if a campaign that was given up is won.
func (m *member) regret(l *lease, e *concurrency.Election, won <-chan error) {
	if <-won == nil {
		m.resign(l, &term{key: e.Key(), rev: e.Rev()})
	}
}

// resign gives a role away before its lease ends.
func (m *member) resign(l *lease, t *term) {
	ctx, cancel := context.WithTimeout(l.ctx, tryWithin)
	defer cancel()
	// What is not deleted ends with the lease.
	m.c.client.Txn(ctx).If(t.leads()).Then(clientv3.OpDelete(t.key)).Commit()
}

// roleLease is the lease of all roles, a new one if it was lost.
func (m *member) roleLease(ctx context.Context) (*lease, error) {
	m.granting.Lock() // not what views need, which come while this waits
	defer m.granting.Unlock()
	if m.lease.ctx.Err() != nil {
		return nil, context.Cause(m.lease.ctx)
	}
	m.mu.Lock()
	l := m.roles
	m.mu.Unlock()
	if l != nil && l.ctx.Err() == nil {
		return l, nil
	}
	in, stop := m.lease.within(ctx)
	defer stop()
	l, err := grant(in, m.c, "roles", m.c.cfg.LeadTTL, 0)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roles = l
	return l, nil
}
