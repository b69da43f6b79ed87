package control

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gomem/gomem/distrib"
)

// manifest is of a job's newest complete checkpoint: the one that a node of the newest view has
// written last.
type manifest struct {
	Step  int            `json:"step"`
	Epoch int64          `json:"epoch"` // of that view
	Node  distrib.NodeID `json:"node"`
	Path  string         `json:"path"` // as that node has it
}

// Saved asks, in one transaction, whether this node is in the newest view, and notes there the
// checkpoint that it has written, if it gives a path. Nobody takes the node's place before the
// time that is returned. It is zero of a node that is out; then next is the epoch of those who go
// on without it, 0 if nobody does. An error says that this cannot be asked.
func (c *Control) Saved(ctx context.Context, step int, path string) (until time.Time, next int64,
	err error) {
	c.mu.Lock()
	m := c.member
	c.mu.Unlock()
	if m == nil {
		return until, 0, ErrNotJoined
	}
	both, stop := m.lease.within(ctx)
	defer stop()
	for v, _ := m.now(); both.Err() == nil; {
		if until, err = m.note(both, &v, step, path); err == nil && until.IsZero() {
			var s *state
			if s, err = c.state(both); err == nil && s.cur.has(m.rec.ID, m.rec.Lease) {
				v = s.cur
				continue
			}
		}
		if err != nil && both.Err() == nil || !until.IsZero() {
			return until, 0, m.guard(ctx, "a checkpoint", err)
		}
		break
	}
	next, err = m.successor(ctx)
	return time.Time{}, next, c.wrap("who goes on", err)
}

// note writes the manifest, if there is a path, on the condition that a view is the newest one and
// this node's key its own. The time is zero if that is not so.
func (m *member) note(ctx context.Context, v *viewRecord, step int, path string) (time.Time,
	error) {
	c, until := m.c, m.lease.until()
	val, err := json.Marshal(&manifest{step, v.Epoch, m.rec.ID, path})
	if err != nil {
		return time.Time{}, err
	}
	var then []clientv3.Op
	if path != "" {
		then = append(then, clientv3.OpPut(c.key("ckpt"), string(val)))
	}
	r, err := c.commit(ctx, []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(c.key("epoch")), "=", strconv.FormatInt(v.Epoch, 10)),
		clientv3.Compare(clientv3.LeaseValue(c.nodeKey(m.rec.ID)), "=", m.lease.id),
	}, then, nil)
	if err != nil || !r.Succeeded {
		return time.Time{}, err
	}
	return until, nil
}

// successorWithin is the longest that a node which is out waits to hear who goes on.
const successorWithin = 15 * time.Second

// successor is the epoch of others that go on without this node, which is out; 0 if nobody does.
// Who is there and has no such view yet is waited for: it may be about to end, too.
func (m *member) successor(ctx context.Context) (int64, error) {
	was, _ := m.now()
	ctx, cancel := context.WithTimeoutCause(ctx, min(2*m.lease.ttl, successorWithin), errWaited)
	defer cancel()
	for {
		s, err := m.c.state(ctx)
		if err != nil {
			return 0, err
		}
		others := slices.ContainsFunc(s.here, func(n nodeRecord) bool {
			return n.ID != m.rec.ID || n.Lease != m.rec.Lease
		})
		in := s.cur.has(m.rec.ID, m.rec.Lease)
		switch {
		case !others:
			return 0, nil
		case s.cur.Epoch > was.Epoch && !in:
			return s.cur.Epoch, nil
		}
		if err := m.c.changed(ctx, m.c.key(""), s.revision, time.Minute); err != nil {
			if ctx.Err() != nil { // they will
				return s.cur.Epoch + 1, nil
			}
			return 0, err
		}
	}
}

// newID is a random id.
func newID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // which never fails
	return hex.EncodeToString(b)
}

// name gives the job its id, unless it has one.
func (c *Control) name(ctx context.Context) error {
	id, key := newID(), c.key("id")
	r, err := c.commit(ctx, absent(key), []clientv3.Op{clientv3.OpPut(key, id)},
		[]clientv3.Op{clientv3.OpGet(key)})
	if err != nil {
		return c.wrap("join", err)
	}
	if !r.Succeeded {
		kvs := r.Responses[0].GetResponseRange().Kvs
		if len(kvs) == 0 {
			return fmt.Errorf("join: the key %s was taken away", key)
		}
		id = string(kvs[0].Value)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id = id
	return nil
}

// ID is the job's: random, and the same in all nodes of all its views. It is known after
// [Control.Join].
func (c *Control) ID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}
