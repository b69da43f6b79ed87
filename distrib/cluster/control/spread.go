package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gomem/gomem/distrib"
)

// serverRecord is what server/<id> says of the server in a node. The key is there before the
// server is a member of etcd, ends with the node's lease, and is taken back before the member
// goes: a member without a key is nobody's.
type serverRecord struct {
	Client string `json:"client"`
	Peer   string `json:"peer"`
	Ready  bool   `json:"ready,omitempty"`  // it votes, and takes requests
	Unfit  bool   `json:"unfit,omitempty"`  // the node has tried, and has none
	Leaves bool   `json:"leaves,omitempty"` // as soon as there is another

	ID  distrib.NodeID `json:"-"`
	Mod int64          `json:"-"` // the revision that wrote it
}

// spread is which servers there are, at one revision of etcd, and its members shortly before.
type spread struct {
	servers  []serverRecord // by rank
	nodes    []distrib.NodeID
	members  []*pb.Member
	revision int64
}

// spread reads which servers there are. Members are read before keys: who is a member has had a
// key before.
func (c *Control) spread(ctx context.Context) (*spread, error) {
	m, err := retry(ctx, c, func(ctx context.Context) (*clientv3.MemberListResponse, error) {
		return c.client.MemberList(ctx)
	})
	if err != nil {
		return nil, err
	}
	r, err := c.get(ctx, c.key("server", ""), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	s := &spread{members: m.Members, revision: r.Header.Revision}
	for _, kv := range r.Kvs {
		id, err := strconv.Atoi(strings.TrimPrefix(string(kv.Key), c.key("server", "")))
		rec := serverRecord{ID: distrib.NodeID(id), Mod: kv.ModRevision}
		if err == nil {
			err = json.Unmarshal(kv.Value, &rec)
		}
		if err != nil {
			return nil, fmt.Errorf("the key %s is not gomem's: %w", kv.Key, err)
		}
		s.servers = append(s.servers, rec)
	}
	slices.SortFunc(s.servers, func(a, b serverRecord) int { return cmp.Compare(a.ID, b.ID) })
	return s, nil
}

// server is that of a node, or nil.
func (s *spread) server(id distrib.NodeID) *serverRecord {
	for i, r := range s.servers {
		if r.ID == id {
			return &s.servers[i]
		}
	}
	return nil
}

// ready are the servers that vote.
func (s *spread) ready() (all []serverRecord) {
	for _, r := range s.servers {
		if r.Ready {
			all = append(all, r)
		}
	}
	return all
}

// stray is a member whose node is not there any more; nil if there is none.
func (s *spread) stray() *pb.Member {
	for _, m := range s.members {
		if !slices.ContainsFunc(s.servers, func(r serverRecord) bool { return r.at(m) }) {
			return m
		}
	}
	return nil
}

// expelled reports whether a node's server votes no more, as the others took it for lost.
func (s *spread) expelled(id distrib.NodeID) bool {
	own := s.server(id)
	return own != nil && own.Ready && !slices.ContainsFunc(s.members, own.at)
}

// at reports whether a member of etcd is this server.
func (r *serverRecord) at(m *pb.Member) bool {
	return slices.ContainsFunc(m.PeerURLs, func(url string) bool {
		_, at, _ := strings.Cut(url, "://")
		return at == r.Peer
	})
}

// move is what a node does about the servers that there are.
type move int

const (
	stay  move = iota // all is as it should be, or for another to do
	clear             // a stray member is to be removed
	add               // a server of one's own
	leave             // with it
)

// decide is what a node is to do. One thing is done at a time, and by one node alone, but for
// strays, which any node with a server removes.
//
//   - Nobody does anything before rank 0's server is known.
//   - Strays go first: they count for a quorum and are not there.
//   - While a server is on its way, nobody begins another.
//   - Of an even number of servers one is too many: it would have to be there, too.
//   - Servers that are there stay where they are, but for one whose node waits to leave.
func (s *spread) decide(self distrib.NodeID, most int) move {
	ready, own := s.ready(), s.server(self)
	serves := own != nil && own.Ready
	switch {
	case len(ready) == 0:
		return stay
	case s.stray() != nil:
		if serves {
			return clear
		}
		return stay
	case slices.ContainsFunc(s.servers, func(r serverRecord) bool { return !r.Ready && !r.Unfit }):
		return stay
	}
	stays := slices.DeleteFunc(ready, func(r serverRecord) bool { return r.Leaves })
	free := s.free()
	want := min(most, len(stays)+len(free))
	want -= 1 - want%2
	switch {
	case len(stays) < want && free[0] == self:
		return add
	case len(stays) > max(want, 1) && stays[len(stays)-1].ID == self:
		return leave
	}
	return stay
}

// free are the nodes of the view that may have a server and have none.
func (s *spread) free() (all []distrib.NodeID) {
	for _, id := range s.nodes {
		if s.server(id) == nil {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}

func (c *Control) serverKey(id distrib.NodeID) string {
	return c.key("server", strconv.Itoa(int(id)))
}
