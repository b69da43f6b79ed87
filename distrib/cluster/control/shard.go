package control

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gomem/gomem/distrib"
)

// Ranges is how many ranges hashes of rows are cut into, by their first byte.
const Ranges = 256

// ServerRole is that of nodes that own rows. Where no node of a view has it, all do.
const ServerRole = "server"

// Shard is who has the rows of a range of hashes: their owner, and the node that takes
// over from it. They are the same in a view of one.
type Shard struct {
	Owner, Replica distrib.NodeID
}

// Shards deals the ranges to the nodes of a view by rendezvous hashing: of all nodes, the
// one whose hash together with the range is greatest has it, and the second its replica. So
// when a node is lost, its ranges go to where their replicas are and no other moves, and when
// one comes, it takes its part of everybody's. It is nil for no nodes.
func Shards(nodes []distrib.Node) []Shard {
	owners := slices.DeleteFunc(slices.Clone(nodes), func(n distrib.Node) bool {
		return !slices.Contains(n.Roles, ServerRole)
	})
	if len(owners) == 0 {
		owners = nodes
	}
	if len(owners) == 0 {
		return nil
	}
	all := make([]Shard, Ranges)
	for i := range all {
		all[i] = deal(owners, i)
	}
	return all
}

func deal(nodes []distrib.Node, part int) Shard {
	s := Shard{nodes[0].ID, nodes[0].ID}
	var best, second uint64
	for i, n := range nodes {
		h := mix(uint64(part)<<32 | uint64(uint32(n.ID)))
		switch {
		case i == 0:
			best = h
		case h > best:
			s, best, second = Shard{n.ID, s.Owner}, h, best
		case h > second:
			s.Replica, second = n.ID, h
		}
	}
	return s
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014), a bijection.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// putShards writes the shards of a view that is about to be written. They are complete
// before it is, and nobody reads those of a view that never comes.
func (c *Control) putShards(t *term, v *viewRecord) error {
	view := v.view(-1, 0)
	var ops []clientv3.Op
	for i, s := range Shards(view.Nodes) {
		key := c.key("shard", strconv.FormatInt(v.Epoch, 10), fmt.Sprintf("%02x", i))
		ops = append(ops, clientv3.OpPut(key, fmt.Sprintf("%d %d", s.Owner, s.Replica)))
	}
	for part := range slices.Chunk(ops, 64) {
		r, err := c.commit(t.ctx, []clientv3.Cmp{t.leads()}, part, nil)
		if err == nil && !r.Succeeded {
			err = errLed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ShardMap is where rows are in an epoch, as it was written down: [Shards] of its view.
func (c *Control) ShardMap(ctx context.Context, epoch int64) ([]Shard, error) {
	dir := c.key("shard", strconv.FormatInt(epoch, 10), "")
	r, err := c.get(ctx, dir, clientv3.WithPrefix())
	if err != nil {
		return nil, c.wrap("shards", err)
	}
	if len(r.Kvs) != Ranges {
		return nil, fmt.Errorf("shards of epoch %d: %w", epoch, ErrNoKey)
	}
	all := make([]Shard, Ranges)
	for _, kv := range r.Kvs {
		i, err := strconv.ParseUint(strings.TrimPrefix(string(kv.Key), dir), 16, 8)
		if err == nil {
			_, err = fmt.Sscanf(string(kv.Value), "%d %d", &all[i].Owner, &all[i].Replica)
		}
		if err != nil {
			return nil, fmt.Errorf("the key %s is not gomem's: %w", kv.Key, err)
		}
	}
	return all, nil
}
