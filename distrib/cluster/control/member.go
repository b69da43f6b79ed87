package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gomem/gomem/distrib"
)

// FencedError says that this node takes part no more.
type FencedError struct {
	Node  distrib.NodeID
	Epoch int64 // the last that it was in
	Err   error // why
}

// Error is one line.
func (e *FencedError) Error() string {
	return fmt.Sprintf("node %d is out after epoch %d: %v", e.Node, e.Epoch, e.Err)
}

// Unwrap is the reason.
func (e *FencedError) Unwrap() error { return e.Err }

// Reasons of a [FencedError].
var (
	ErrDropped = errors.New("the others go on without it")
	ErrLeft    = errors.New("it has left")
	ErrClosed  = errors.New("it was closed")
)

// member is a node from its Join until it is out.
type member struct {
	c     *Control
	rec   nodeRecord
	lease *lease
	views *feed
	tasks sync.WaitGroup

	granting sync.Mutex // of roles' lease

	mu    sync.Mutex
	view  viewRecord    // the newest that it was told of
	news  chan struct{} // closed when there is another
	roles *lease        // of elections; nil, or perhaps lost
	left  bool          // it wants to be out

	expelled []int64 // leases of nodes that it wants to be out

	steward *steward // of servers that come and go; nil: there are none
}

// enter makes a node known: its lease and its key.
func (c *Control) enter(ctx context.Context, self distrib.Node, min, max int) (*member, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	m := &member{c: c, news: make(chan struct{})}
	m.rec = nodeRecord{ID: self.ID, Addr: self.Addr, Roles: self.Roles, Host: host,
		Min: min, Max: max, Spread: c.cfg.Spread, Server: c.own() != nil && c.cfg.Spread < 2}
	if m.lease, err = grant(ctx, c, "the node", c.cfg.TTL, c.cfg.Grace); err != nil {
		return nil, c.wrap("join", err)
	}
	if err = m.claim(ctx); err == nil {
		err = m.agree(ctx)
	}
	if err == nil {
		err = c.name(ctx)
	}
	if err != nil {
		m.lease.revoke(err)
		return nil, err
	}
	return m, nil
}

// claim puts the node's key. One that is there may be of the process that this one
// replaces: it ends with its lease.
func (m *member) claim(ctx context.Context) error {
	val, err := json.Marshal(&m.rec)
	if err != nil {
		return err
	}
	key := m.c.nodeKey(m.rec.ID)
	until := time.Now().Add(m.lease.ttl + 2*time.Second)
	for {
		r, err := m.c.commit(ctx, absent(key),
			[]clientv3.Op{clientv3.OpPut(key, string(val), clientv3.WithLease(m.lease.id))},
			[]clientv3.Op{clientv3.OpGet(key)})
		if err != nil {
			return m.c.wrap("join", err)
		}
		m.rec.Lease, m.rec.Since = int64(m.lease.id), r.Header.Revision
		if r.Succeeded {
			return nil
		}
		var other nodeRecord
		kvs := r.Responses[0].GetResponseRange().Kvs
		if kvs[0].Lease == m.rec.Lease { // what was lost was the answer
			m.rec.Since = kvs[0].CreateRevision
			return nil
		}
		if err := json.Unmarshal(kvs[0].Value, &other); err != nil {
			return fmt.Errorf("the key %s is not gomem's: %w", key, err)
		}
		if time.Now().After(until) {
			return fmt.Errorf("node %d is there already, on %s at %s: "+
				"were two processes started with the same rank?", other.ID, other.Host, other.Addr)
		}
		if err := m.c.changed(ctx, key, r.Header.Revision, time.Until(until)); err != nil {
			return err
		}
	}
}

func absent(key string) []clientv3.Cmp {
	return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)}
}

// agree compares what nodes ask for: of two that differ, the later one is told.
func (m *member) agree(ctx context.Context) error {
	s, err := m.c.state(ctx)
	if err != nil {
		return m.c.wrap("join", err)
	}
	for _, o := range s.here {
		switch {
		case o.Since >= m.rec.Since:
		case o.Min != m.rec.Min || o.Max != m.rec.Max:
			return fmt.Errorf("node %d asks for %d to %d nodes, node %d on %s for %d to %d: "+
				"give all the same", m.rec.ID, m.rec.Min, m.rec.Max, o.ID, o.Host, o.Min, o.Max)
		case max(o.Spread, 1) != max(m.rec.Spread, 1):
			return fmt.Errorf("node %d asks for etcd on %d nodes, node %d on %s on %d: "+
				"give all the same", m.rec.ID, max(m.rec.Spread, 1), o.ID, o.Host, max(o.Spread, 1))
		}
	}
	return nil
}

// changed waits until something below a key is written after a revision, or for a while.
func (c *Control) changed(ctx context.Context, key string, rev int64, atMost time.Duration) error {
	wait, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), max(atMost, 0))
	defer cancel()
	// What a watch is ended for, the next read finds out.
	for r := range c.client.Watch(wait, key, clientv3.WithPrefix(), clientv3.WithRev(rev+1)) {
		if r.Err() != nil {
			sleep(wait, tryEvery)
			break
		}
		if len(r.Events) > 0 {
			break
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// follow hands on every view from the given revision on, until the node is out.
func (m *member) follow(s *state) {
	prefix := m.c.key("view", "")
	next := s.revision + 1
	for m.lease.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(m.lease.ctx))
		for r := range m.c.client.Watch(ctx, prefix, clientv3.WithPrefix(),
			clientv3.WithRev(next), clientv3.WithFilterDelete()) {
			if r.Err() != nil {
				break
			}
			for _, e := range r.Events {
				m.take(e.Kv.Value)
			}
			next = r.Header.Revision + 1
		}
		cancel()
		sleep(m.lease.ctx, tryEvery)
		next = m.again(next)
	}
	m.fence(context.Cause(m.lease.ctx))
}

// again reads what a watch that has ended may have missed, and says where to go on.
func (m *member) again(next int64) int64 {
	ctx, cancel := context.WithTimeout(m.lease.ctx, tryWithin)
	defer cancel()
	s, err := m.c.state(ctx)
	if err != nil {
		return next
	}
	if s.cur.Epoch > 0 {
		m.deliver(s.cur)
	}
	return s.revision + 1
}

func (m *member) take(val []byte) {
	var v viewRecord
	if err := json.Unmarshal(val, &v); err != nil {
		m.c.log.Error("a view cannot be read", zap.Error(err))
		return
	}
	m.deliver(v)
}

// deliver hands on a view that this node is in, or is just not in any more.
func (m *member) deliver(v viewRecord) {
	m.mu.Lock()
	old := m.view
	if v.Epoch <= old.Epoch {
		m.mu.Unlock()
		return
	}
	was, is := old.has(m.rec.ID, m.rec.Lease), v.has(m.rec.ID, m.rec.Lease)
	why := ErrDropped
	switch {
	case m.left:
		why = ErrLeft
	case slices.Contains(v.Expelled, m.rec.Lease):
		why = distrib.ErrExpelled
	}
	if was || is {
		m.view = v
		close(m.news)
		m.news = make(chan struct{})
	}
	m.mu.Unlock()
	if was || is {
		m.c.noteView(&old, &v)
	}
	switch {
	case is && old.Epoch == 0: // Join returns it
	case is:
		m.views.put(v.view(m.rec.ID, m.rec.Lease), false)
	case was:
		m.views.put(v.view(m.rec.ID, m.rec.Lease), true)
		m.lease.end(why)
	}
}

// fence tells who takes the views that there are no more.
func (m *member) fence(why error) {
	m.mu.Lock()
	last := m.view
	m.mu.Unlock()
	m.c.log.Info("out", zap.Int32("node", int32(m.rec.ID)), zap.Error(why))
	m.views.put(distrib.View{Epoch: last.Epoch, Self: -1}, true)
}

// now is the newest view, and a channel that is closed when there is another.
func (m *member) now() (viewRecord, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view, m.news
}

// fenced is why the node is out.
func (m *member) fenced() error {
	v, _ := m.now()
	return &FencedError{m.rec.ID, v.Epoch, context.Cause(m.lease.ctx)}
}

// guard returns ctx's error, or why the node is out, if that is why a call has failed.
func (m *member) guard(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case m.lease.ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, m.fenced())
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	return m.c.wrap(what, err)
}

// close ends the member and, if etcd can be reached, both its leases there.
func (m *member) close(why error) {
	m.lease.end(why)
	m.tasks.Wait()
	m.mu.Lock()
	roles := m.roles
	m.mu.Unlock()
	if roles != nil {
		roles.revoke(why)
	}
	m.lease.revoke(why)
}
