package daemon

import (
	"fmt"
	"slices"
	"sync"

	"github.com/gomem/gomem/distrib"
)

// shelf is which updates are in the replicas that a node keeps. Its lock is held while they are
// added there.
type shelf struct {
	d    *Daemon
	mu   sync.Mutex
	have map[[2]distrib.NodeID]*numbered // by owner, and who has pushed them
}

// numbered is the numbers of updates that are there: all up to one that will ever come, and some
// after it.
type numbered struct {
	upTo  uint64
	after map[uint64]bool
}

func (n *numbered) has(seq uint64) bool { return seq <= n.upTo || n.after[seq] }

// add notes an update. All before the floor are there, or will not come.
func (n *numbered) add(seq, floor uint64) {
	n.after[seq] = true
	if floor > 0 {
		n.upTo = max(n.upTo, floor-1)
	}
	for n.after[n.upTo+1] {
		n.upTo++
	}
	for x := range n.after {
		if x <= n.upTo {
			delete(n.after, x)
		}
	}
}

// of is the numbers of a node's updates.
func (s *shelf) of(x id) *numbered {
	at := [2]distrib.NodeID{x.To, x.From}
	n := s.have[at]
	if n == nil {
		n = &numbered{after: map[uint64]bool{}}
		s.have[at] = n
	}
	return n
}

// takeCopy adds an update to a replica that this node keeps, unless it has it.
func (s *shelf) takeCopy(from distrib.NodeID, o *opened) error {
	var c copied
	if err := o.next(&c); err != nil {
		return err
	}
	head, err := o.bytes(int(c.Head))
	if err != nil {
		return err
	}
	push, ok := s.d.pool.Push(&distrib.Msg{Class: distrib.Updates, Head: head,
		Body: [][]byte{o.bare}})
	if !ok || !s.d.ring.replicates(c.ID.To, s.d.self) || c.ID != idOf(c.ID.From, c.ID.To, push) ||
		from != c.ID.From && !s.d.ring.replicates(c.ID.To, from) {
		return fmt.Errorf("a copy, %v, that is another or not for this node", c.ID)
	}
	if _, err = s.adopt([]piece{c.piece}, o.bare); err != nil {
		return err
	}
	s.handOn([]piece{c.piece}, message(aCopy, o.bare, c, head))
	return nil
}

// adopt adds updates to a replica if it has none of them, and reports whether it did.
func (s *shelf) adopt(ps []piece, body []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(ps, func(p piece) bool { return s.of(p.ID).has(p.ID.Seq) }) {
		return false, nil
	}
	if err := s.d.pool.Keep(ps[0].ID.To, [][]byte{body}); err != nil {
		return false, err
	}
	for _, p := range ps {
		s.of(p.ID).add(p.ID.Seq, p.Floor)
	}
	return true, nil
}

// keepSum adds what was added up to a replica, if all of it is new there. If not, its parts come
// one by one.
func (s *shelf) keepSum(from distrib.NodeID, ps []piece, o *opened) error {
	taken, err := s.adopt(ps, o.bare)
	if err != nil {
		return err
	}
	if !taken {
		for _, p := range ps {
			s.d.Transport.Send(p.ID.From, message(anAnswer, nil, answer{p.ID, false}))
		}
		return nil
	}
	s.handOn(ps, o.again())
	return nil
}

// handOn sends what has been added to a replica to the next one, or says that the last has it.
func (s *shelf) handOn(ps []piece, m *distrib.Msg) {
	owner := ps[0].ID.To
	s.d.mu.Lock()
	all, chief := s.d.ring.replicas(owner), s.d.election.chief
	s.d.mu.Unlock()
	if i := slices.Index(all, s.d.self); i >= 0 && i+1 < len(all) {
		s.d.Transport.Send(all[i+1], m)
		return
	}
	for _, p := range ps {
		to := []distrib.NodeID{owner, p.ID.From, chief}
		slices.Sort(to)
		for _, n := range slices.Compact(to) {
			if n >= 0 {
				s.d.Transport.Send(n, message(aKept, nil, kept{p.ID}))
			}
		}
	}
}
