package control

import (
	"encoding/json"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// oldViews is how many views are kept for those who look.
const oldViews = 16

// rendezvous takes part in the election of who writes views, until this node is out. Then
// it gives its lead away, so that another node goes on at once.
func (m *member) rendezvous() {
	for m.lease.ctx.Err() == nil {
		t, err := m.lead(m.lease.ctx, rendezvousRole)
		if err != nil {
			sleep(m.lease.ctx, tryEvery)
			continue
		}
		m.preside(t)
	}
}

// rendezvousRole is of the node that writes views.
const rendezvousRole = "rendezvous"

// preside writes views as long as this node leads.
func (m *member) preside(t *term) {
	var since time.Time // of when a view could have been written
	for t.ctx.Err() == nil {
		s, err := m.c.state(t.ctx)
		if err != nil {
			sleep(t.ctx, tryEvery)
			continue
		}
		settle := m.c.cfg.Settle
		settled := !since.IsZero() && time.Since(since) >= settle
		what, next := decide(s, m.rec.Min, m.rec.Max, settled)
		again := time.Minute
		switch what {
		case nothing:
			since = time.Time{}
		case wait:
			if since.IsZero() {
				since = time.Now()
			}
			again = max(time.Until(since.Add(settle)), 0)
		case publish:
			since = time.Time{}
			if m.publish(t, s, next) {
				continue
			}
			again = tryEvery
		}
		if m.c.changed(t.ctx, m.c.key("node", ""), s.revision, again) != nil {
			return
		}
	}
}

// publish writes the next view, if this node still leads and no other has written one.
func (m *member) publish(t *term, s *state, next []nodeRecord) bool {
	v := viewRecord{Epoch: s.cur.Epoch + 1, Nodes: []viewNode{}, Expelled: s.expelled()}
	for _, n := range next {
		v.Nodes = append(v.Nodes, viewNode{n.ID, n.Addr, n.Roles, n.Lease})
	}
	v.Evicted = s.evicted(&v)
	if err := m.c.putShards(t, &v); err != nil {
		m.c.log.Info("the shards of a view were not written", zap.Error(err))
		return false
	}
	val, err := json.Marshal(&v)
	if err != nil {
		m.c.log.Error("a view cannot be written", zap.Error(err))
		return false
	}
	epoch := strconv.FormatInt(v.Epoch, 10)
	r, err := m.c.commit(t.ctx, []clientv3.Cmp{
		t.leads(),
		clientv3.Compare(clientv3.ModRevision(m.c.key("epoch")), "=", s.curRev),
	}, []clientv3.Op{
		clientv3.OpPut(m.c.key("epoch"), epoch),
		clientv3.OpPut(m.c.key("view", epoch), string(val)),
		clientv3.OpDelete(m.c.key("view", strconv.FormatInt(v.Epoch-oldViews, 10))),
		clientv3.OpDelete(m.c.key("shard", strconv.FormatInt(v.Epoch-oldViews, 10), ""),
			clientv3.WithPrefix()),
	}, nil)
	if err != nil || !r.Succeeded {
		m.c.log.Info("a view was not written", zap.Int64("epoch", v.Epoch), zap.Error(err))
		return false
	}
	return true
}
