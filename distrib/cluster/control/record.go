package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gomem/gomem/distrib"
)

// nodeRecord is what node/<id> says of a node that is there.
type nodeRecord struct {
	ID      distrib.NodeID `json:"id"`
	Addr    string         `json:"addr"`
	Roles   []string       `json:"roles,omitempty"`
	Host    string         `json:"host"`
	Min     int            `json:"min"`
	Max     int            `json:"max"`
	Spread  int            `json:"spread,omitempty"`  // in how many nodes it wants etcd
	Server  bool           `json:"server,omitempty"`  // etcd is embedded in it, and stays there
	Leaving bool           `json:"leaving,omitempty"` // wants to be in the next view no more
	Again   int64          `json:"again,omitempty"`   // the epoch that it wants a view after
	Against []int64        `json:"against,omitempty"` // leases of nodes that it wants to be out

	Lease int64 `json:"-"` // of the key
	Since int64 `json:"-"` // the revision that made it
}

// viewRecord is what view/<epoch> says. A node that was restarted is another one: it has
// another lease.
type viewRecord struct {
	Epoch int64      `json:"epoch"`
	Nodes []viewNode `json:"nodes"`
	// Expelled are the leases of nodes that are there, and that the others do not want.
	Expelled []int64 `json:"expelled,omitempty"`
	// Evicted are the nodes of the view before that are not in this one, and did not ask for it.
	Evicted []distrib.NodeID `json:"evicted,omitempty"`
}

type viewNode struct {
	ID    distrib.NodeID `json:"id"`
	Addr  string         `json:"addr"`
	Roles []string       `json:"roles,omitempty"`
	Lease int64          `json:"lease"`
}

// has reports whether a node with a lease is in the view.
func (v *viewRecord) has(id distrib.NodeID, lease int64) bool {
	return slices.ContainsFunc(v.Nodes, func(n viewNode) bool {
		return n.ID == id && n.Lease == lease
	})
}

// view is a record as node self sees it; -1 where it is not in it.
func (v *viewRecord) view(self distrib.NodeID, lease int64) distrib.View {
	out := distrib.View{Epoch: v.Epoch, Self: -1}
	if v.has(self, lease) {
		out.Self = self
	}
	for _, n := range v.Nodes {
		out.Nodes = append(out.Nodes, distrib.Node{ID: n.ID, Addr: n.Addr, Roles: n.Roles})
	}
	return out
}

// without are the nodes of v that other does not have.
func (v *viewRecord) without(other *viewRecord) []distrib.NodeID {
	var gone []distrib.NodeID
	for _, n := range v.Nodes {
		if !other.has(n.ID, n.Lease) {
			gone = append(gone, n.ID)
		}
	}
	return gone
}

// ids are the nodes of the view.
func (v *viewRecord) ids() (ids []distrib.NodeID) {
	for _, n := range v.Nodes {
		ids = append(ids, n.ID)
	}
	return ids
}

// evicted are the nodes of the present view that the next one has not, and that do not leave.
func (s *state) evicted(next *viewRecord) []distrib.NodeID {
	return slices.DeleteFunc(s.cur.without(next), func(id distrib.NodeID) bool {
		return slices.ContainsFunc(s.here, func(n nodeRecord) bool {
			return n.ID == id && n.Leaving && s.cur.has(id, n.Lease)
		})
	})
}

// state is all that a view is made from, at one revision of etcd.
type state struct {
	cur      viewRecord // its Epoch is 0 before the first
	curRev   int64      // that wrote the key epoch
	here     []nodeRecord
	revision int64
}

// state reads the newest view and the nodes that are there.
func (c *Control) state(ctx context.Context) (*state, error) {
	r, err := c.commit(ctx, nil, []clientv3.Op{
		clientv3.OpGet(c.key("epoch")),
		clientv3.OpGet(c.key("view", ""), clientv3.WithPrefix()),
		clientv3.OpGet(c.key("node", ""), clientv3.WithPrefix()),
	}, nil)
	if err != nil {
		return nil, err
	}
	s := &state{revision: r.Header.Revision}
	if kvs := r.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		s.curRev = kvs[0].ModRevision
		if s.cur.Epoch, err = strconv.ParseInt(string(kvs[0].Value), 10, 64); err != nil {
			return nil, fmt.Errorf("the key %s is not gomem's: %w", c.key("epoch"), err)
		}
	}
	for _, kv := range r.Responses[1].GetResponseRange().Kvs {
		if string(kv.Key) != c.key("view", strconv.FormatInt(s.cur.Epoch, 10)) {
			continue
		}
		if err := json.Unmarshal(kv.Value, &s.cur); err != nil {
			return nil, fmt.Errorf("the key %s is not gomem's: %w", kv.Key, err)
		}
	}
	for _, kv := range r.Responses[2].GetResponseRange().Kvs {
		n := nodeRecord{Lease: kv.Lease, Since: kv.CreateRevision}
		if err := json.Unmarshal(kv.Value, &n); err != nil {
			return nil, fmt.Errorf("the key %s is not gomem's: %w", kv.Key, err)
		}
		s.here = append(s.here, n)
	}
	slices.SortFunc(s.here, func(a, b nodeRecord) int { return cmp.Compare(a.Since, b.Since) })
	return s, nil
}

func (c *Control) nodeKey(id distrib.NodeID) string {
	return c.key("node", strconv.Itoa(int(id)))
}
