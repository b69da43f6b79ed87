package control

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gomem/gomem/distrib"
)

// Barrier waits until n nodes have come to one of the same name. The name may be used again
// at once: nodes that pass have been counted together. The error is a [distrib.LostError] once
// a node that has not come is lost, and after too long a wait a [distrib.StallError] that names
// who has not come.
func (c *Control) Barrier(ctx context.Context, name string, n int) error {
	m, err := c.joined()
	if err != nil {
		return err
	}
	if n < 1 {
		return fmt.Errorf("barrier %s of %d nodes", name, n)
	}
	b := &barrier{m: m, name: name, n: n, dir: c.key("barrier", url.PathEscape(name), "")}
	in, stop := m.lease.within(ctx)
	defer stop()
	if err := b.arrive(in); err != nil {
		return m.guard(ctx, "barrier "+name, err)
	}
	if err = b.wait(ctx, in); err != nil {
		b.withdraw()
	}
	return err
}

// barrier is one node's way through: in etcd, dir/round counts how often it has opened, and
// dir/<round>/<id> is a node that waits.
type barrier struct {
	m      *member
	name   string
	n      int
	dir    string
	round  int64
	mod    int64 // the revision of the round's key
	rev    int64 // what was read last
	come   []distrib.NodeID
	passed bool
}

func (b *barrier) self() string { return b.at(b.round) + strconv.Itoa(int(b.m.rec.ID)) }

func (b *barrier) at(round int64) string { return b.dir + strconv.FormatInt(round, 10) + "/" }

// arrive says that this node is there, in the round that goes on.
func (b *barrier) arrive(ctx context.Context) error {
	for {
		if err := b.read(ctx, true); err != nil {
			return err
		}
		r, err := b.m.c.commit(ctx, b.same(), []clientv3.Op{
			clientv3.OpPut(b.self(), b.m.rec.Addr, clientv3.WithLease(b.m.lease.id))}, nil)
		if err != nil || r.Succeeded {
			return err
		}
	}
}

// read looks at the round and who has come to it; first: whatever round it is.
func (b *barrier) read(ctx context.Context, first bool) error {
	r, err := b.m.c.get(ctx, b.dir, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	var round, mod int64
	for _, kv := range r.Kvs {
		if string(kv.Key) != b.dir+"round" {
			continue
		}
		mod = kv.ModRevision
		if round, err = strconv.ParseInt(string(kv.Value), 10, 64); err != nil {
			return fmt.Errorf("the key %s is not gomem's: %w", kv.Key, err)
		}
	}
	if first {
		b.round, b.mod = round, mod
	}
	b.rev, b.come, b.passed = r.Header.Revision, nil, round > b.round
	for _, kv := range r.Kvs {
		id, ok := strings.CutPrefix(string(kv.Key), b.at(b.round))
		if i, err := strconv.Atoi(id); ok && err == nil {
			b.come = append(b.come, distrib.NodeID(i))
		}
	}
	return nil
}

// open ends the round if all have come; another node may have done so.
func (b *barrier) open(ctx context.Context) error {
	_, err := b.m.c.commit(ctx, b.same(), []clientv3.Op{
		clientv3.OpPut(b.dir+"round", strconv.FormatInt(b.round+1, 10)),
		clientv3.OpDelete(b.at(b.round), clientv3.WithPrefix()),
	}, nil)
	return err
}

// same is the condition that the round goes on.
func (b *barrier) same() []clientv3.Cmp {
	return []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(b.dir+"round"), "=", b.mod)}
}

// wait returns when the round is over.
func (b *barrier) wait(ctx, in context.Context) error {
	watch, cancel := context.WithCancel(clientv3.WithRequireLeader(in))
	defer cancel()
	from, _ := b.m.now()
	return b.m.await(ctx, &waiting{
		what:    "barrier " + b.name,
		missing: func(context.Context) []distrib.NodeID { return b.absent() },
		ready: func() (bool, error) {
			if err := b.look(in); err != nil || b.passed {
				return b.passed, err
			}
			return false, b.lost(&from)
		},
		watch: func() clientv3.WatchChan {
			return b.m.c.client.Watch(watch, b.dir, clientv3.WithPrefix(),
				clientv3.WithRev(b.rev+1))
		},
	})
}

// look reads, and opens the barrier if this node sees that all are there.
func (b *barrier) look(ctx context.Context) error {
	for {
		err := b.read(ctx, false)
		if err != nil || b.passed || len(b.come) < b.n {
			return err
		}
		if err := b.open(ctx); err != nil {
			return err
		}
	}
}

// absent are the nodes of the view that have not come.
func (b *barrier) absent() []distrib.NodeID {
	v, _ := b.m.now()
	var gone []distrib.NodeID
	for _, n := range v.Nodes {
		if !slices.Contains(b.come, n.ID) {
			gone = append(gone, n.ID)
		}
	}
	return gone
}

// lost says which nodes that had not come are in no view any more.
func (b *barrier) lost(from *viewRecord) error {
	v, _ := b.m.now()
	gone := slices.DeleteFunc(from.without(&v), func(n distrib.NodeID) bool {
		return slices.Contains(b.come, n)
	})
	if len(gone) == 0 {
		return nil
	}
	return &distrib.LostError{Nodes: gone, Epoch: v.Epoch}
}

// withdraw takes this node out of a round that it does not wait for any more.
func (b *barrier) withdraw() {
	ctx, cancel := context.WithTimeout(b.m.lease.ctx, tryWithin)
	defer cancel()
	// A key that stays ends with the lease.
	b.m.c.client.Delete(ctx, b.self())
}
