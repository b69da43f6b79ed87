package distrib

import (
	"fmt"
	"hash/fnv"
	"slices"
)

// inRole are the nodes of a view in a role, ascending; a node without roles has them all.
func inRole(v View, role string) []NodeID {
	var ids []NodeID
	for _, n := range v.Nodes {
		if len(n.Roles) == 0 || slices.Contains(n.Roles, role) {
			ids = append(ids, n.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Shards is parameter servers: blocks of rows are spread over the nodes that serve by
// rendezvous hashing (Thaler and Ravishankar). Of n servers one more, or one less, moves a
// block in n, and no other.
type Shards struct {
	// Block is how many bytes of rows belong together. More frames on the wire are less
	// imbalance; 0: a 256th of a parameter, but 4 KiB at least and 64 at most.
	Block int
	// Tree says along which trees sums are streamed to the workers, where the plan sends
	// sums; nil: each owner sends to each worker.
	Tree *Trees

	owner [][]NodeID // by parameter and block
	rows  []int32    // of a block, by parameter
	trees map[NodeID]*Tree
	flat  []NodeID
}

// Bind deals the blocks. The error says that nobody serves, or why there are no trees.
func (s *Shards) Bind(v View, ps []*Param) error {
	servers := inRole(v, "server")
	if len(servers) == 0 {
		return fmt.Errorf("distrib: none of %d nodes is a server", len(v.Nodes))
	}
	keys := make([]uint64, len(servers))
	for i, id := range servers {
		keys[i] = keyOf(v, id)
	}
	s.owner, s.rows = nil, nil
	for p, param := range ps {
		rows := s.blockRows(param)
		var owners []NodeID
		for b := 0; b*rows < param.Rows; b++ {
			owners = append(owners, servers[rendezvous(keys, uint64(p)<<32|uint64(b))])
		}
		s.owner, s.rows = append(s.owner, owners), append(s.rows, int32(rows))
	}
	return s.bindTrees(servers, inRole(v, "worker"))
}

func (s *Shards) bindTrees(servers, workers []NodeID) (err error) {
	s.flat = workers
	if s.Tree != nil {
		s.trees, err = s.Tree.Build(servers, workers)
	}
	return err
}

func (s *Shards) blockRows(p *Param) int {
	block := s.Block
	if block == 0 {
		block = min(max(4*p.Rows*p.Cols/256, 4<<10), 64<<10)
	}
	return max(1, block/(4*max(p.Cols, 1)))
}

// keyOf is what a node is known by from view to view: its address, if it has one.
func keyOf(v View, id NodeID) uint64 {
	h := fnv.New64a()
	i := slices.IndexFunc(v.Nodes, func(n Node) bool { return n.ID == id })
	if a := v.Nodes[i].Addr; a != "" {
		h.Write([]byte(a))
	} else {
		fmt.Fprint(h, "node ", id)
	}
	return h.Sum64()
}

// rendezvous is the key that has most weight for a thing.
func rendezvous(keys []uint64, thing uint64) int {
	best, most := 0, uint64(0)
	for i, k := range keys {
		if w := mix(k ^ mix(thing)); i == 0 || w > most {
			best, most = i, w
		}
	}
	return best
}

// Owner is the server that holds the first of the rows.
func (s *Shards) Owner(r Ref) (NodeID, bool) {
	if int(r.Param) >= len(s.owner) || len(s.owner[r.Param]) == 0 {
		return 0, true
	}
	return s.owner[r.Param][r.Row/s.rows[r.Param]], true
}

// Dests is the owner.
func (s *Shards) Dests(dst []NodeID, self NodeID, r Ref, c Clock) []NodeID {
	id, _ := s.Owner(r)
	return append(dst, id)
}

// Split calls yield with the parts of rows that have one owner each, in order.
func (s *Shards) Split(r Ref, yield func(part Ref, owner NodeID)) {
	block, owners := s.rows[r.Param], s.owner[r.Param]
	for row, end := r.Row, r.Row+r.N; row < end; {
		owner, to := owners[row/block], row
		for to < end && owners[to/block] == owner {
			to = min(end, (to/block+1)*block)
		}
		yield(Ref{r.Param, row, to - row}, owner)
		row = to
	}
}

// Children appends the nodes that self hands on to what a server sends to all workers.
func (s *Shards) Children(dst []NodeID, root, self NodeID) []NodeID {
	if s.Tree != nil {
		if t, ok := s.trees[root]; ok {
			dst = t.Children(dst, self)
		}
		return dst
	}
	if self == root {
		for _, id := range s.flat {
			if id != root {
				dst = append(dst, id)
			}
		}
	}
	return dst
}

// peers are the workers of a view, who all hold replicas.
type peers struct{ ids []NodeID }

// Bind notes the workers.
func (p *peers) Bind(v View, _ []*Param) error {
	p.ids = inRole(v, "worker")
	return nil
}

// Owner is nobody: every node holds a replica.
func (p *peers) Owner(Ref) (NodeID, bool) { return 0, false }

// index is a node's place among its peers.
func (p *peers) index(id NodeID) (int, bool) { return slices.BinarySearch(p.ids, id) }

// All sends every update to every other worker: sufficient vector broadcasting.
type All struct{ peers }

// Dests are all others.
func (a *All) Dests(dst []NodeID, self NodeID, _ Ref, _ Clock) []NodeID {
	for _, id := range a.ids {
		if id != self {
			dst = append(dst, id)
		}
	}
	return dst
}

// Local sends nothing: updates stay where they are made, until something periodic drains
// them.
type Local struct{ peers }

// Dests is nobody.
func (l *Local) Dests(dst []NodeID, _ NodeID, _ Ref, _ Clock) []NodeID { return dst }
