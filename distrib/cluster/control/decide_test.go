package control

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib"
)

// world draws nodes that are there and a view, of nodes that are there or not.
func world(t *rapid.T) *state {
	s := &state{}
	for id := range distrib.NodeID(6) {
		was := rapid.Bool().Draw(t, "was in the view")
		is := rapid.Bool().Draw(t, "is there")
		again := rapid.Bool().Draw(t, "was restarted")
		if was {
			s.cur.Nodes = append(s.cur.Nodes, viewNode{ID: id, Lease: 100 + int64(id)})
			s.cur.Epoch = 1
		}
		if is {
			n := nodeRecord{ID: id, Lease: 100 + int64(id), Since: int64(id),
				Leaving: rapid.IntRange(0, 4).Draw(t, "leaving") == 0}
			if was && rapid.IntRange(0, 4).Draw(t, "wants a view after") == 0 {
				n.Again = 1
			}
			if again {
				n.Lease += 100
			}
			s.here = append(s.here, n)
		}
	}
	s.here = rapid.Permutation(s.here).Draw(t, "order of coming")
	return s
}

// TestDecide: what a view may be, whatever has happened.
func TestDecide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := world(t)
		least := rapid.IntRange(1, 6).Draw(t, "min")
		most := rapid.IntRange(least, 6).Draw(t, "max")
		settled := rapid.Bool().Draw(t, "settled")
		what, next := decide(s, least, most, settled)
		var kept, leaving, able int
		again := false
		for _, n := range s.here {
			in := s.cur.has(n.ID, n.Lease)
			again = again || in && !n.Leaving && n.Again == s.cur.Epoch
			switch {
			case in && n.Leaving:
				leaving++
			case in:
				kept++
			}
			if !n.Leaving {
				able++
			}
		}
		gone := kept < len(s.cur.Nodes)
		switch {
		case gone && kept > 0 && what != publish:
			t.Fatalf("%v: survivors are not told", what)
		case what == wait && (settled || able >= most):
			t.Fatalf("waits for nobody")
		case what == publish && kept == 0 && len(next) < least && leaving == 0:
			t.Fatalf("starts with %d of %d", len(next), least)
		case kept > 0 && again && what != publish:
			t.Fatalf("%v: a view was asked for", what)
		case what == publish && kept > 0 && !gone && !again && len(next) == kept:
			t.Fatalf("the same view again")
		case what == nothing && kept == 0 && able >= least:
			t.Fatalf("does not start with %d of %d", able, least)
		}
		if what != publish {
			return
		}
		checkNext(t, s, next, most)
		after := &state{here: s.here, cur: viewRecord{Epoch: s.cur.Epoch + 1}}
		for _, n := range next {
			after.cur.Nodes = append(after.cur.Nodes, viewNode{ID: n.ID, Lease: n.Lease})
		}
		for _, n := range next {
			if old := s.cur.has(n.ID, n.Lease); kept > 0 && !old && known(s, n.ID) {
				t.Fatalf("node %d was replaced, and nobody learns of it", n.ID)
			}
		}
		what, more := decide(after, least, most, true)
		if what != nothing && len(next) >= min(least, able) && len(more) <= len(next) {
			t.Fatalf("%v after a view that is as it should be", what)
		}
	})
}

// known: some process with this id is in the view.
func known(s *state, id distrib.NodeID) bool {
	return slices.ContainsFunc(s.cur.Nodes, func(n viewNode) bool { return n.ID == id })
}

// checkNext: nobody who stays is dropped, nobody who leaves is kept, ids are in order.
func checkNext(t *rapid.T, s *state, next []nodeRecord, most int) {
	if len(next) > most && len(s.cur.Nodes) <= most {
		t.Fatalf("%d nodes of at most %d", len(next), most)
	}
	if !slices.IsSortedFunc(next, func(a, b nodeRecord) int { return int(a.ID) - int(b.ID) }) {
		t.Fatalf("out of order: %v", next)
	}
	for _, n := range next {
		if n.Leaving {
			t.Fatalf("node %d leaves", n.ID)
		}
	}
	for _, n := range s.here {
		stays := s.cur.has(n.ID, n.Lease) && !n.Leaving && len(s.cur.Nodes) <= most
		if stays && !slices.ContainsFunc(next, func(o nodeRecord) bool { return o.ID == n.ID }) {
			t.Fatalf("node %d is dropped", n.ID)
		}
	}
}

// TestShards: nearly even, replicas elsewhere, and nothing moves that need not.
func TestShards(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 24).Draw(t, "nodes")
		var nodes []distrib.Node
		for i := range n {
			nodes = append(nodes, distrib.Node{ID: distrib.NodeID(3 * i)})
		}
		before := Shards(nodes)
		owned := map[distrib.NodeID]int{}
		for i, s := range before {
			if owned[s.Owner]++; s.Owner == s.Replica {
				t.Fatalf("range %d: node %d is its own replica", i, s.Owner)
			}
		}
		for _, o := range nodes {
			if got := owned[o.ID]; got > 2*Ranges/n+16 || n <= 8 && got < Ranges/n/2 {
				t.Fatalf("node %d of %d has %d ranges", o.ID, n, got)
			}
		}
		lost := rapid.IntRange(0, n-1).Draw(t, "lost")
		gone := nodes[lost].ID
		for i, s := range Shards(slices.Delete(slices.Clone(nodes), lost, lost+1)) {
			want := before[i].Owner
			if want == gone {
				want = before[i].Replica
			}
			if s.Owner != want {
				t.Fatalf("range %d went to %d, not %d", i, s.Owner, want)
			}
		}
	})
	only := []distrib.Node{{ID: 0}, {ID: 1, Roles: []string{ServerRole}}, {ID: 2}}
	if s := Shards(only); s[0] != (Shard{1, 1}) || s[255] != (Shard{1, 1}) {
		t.Errorf("one server: %v", s[0])
	}
	if Shards(nil) != nil {
		t.Error("shards of nobody")
	}
}

// TestExpelled: whom others of the view want to be out is out, at once and from then on, whatever
// it says of them; of two that accuse each other neither is, and who is in no view has no say.
func TestExpelled(t *testing.T) {
	at := func(in int, against map[int][]int64) *state {
		s := &state{cur: viewRecord{Epoch: 1}}
		for id := range 3 {
			n := nodeRecord{ID: distrib.NodeID(id), Lease: 100 + int64(id), Since: int64(id),
				Against: against[id]}
			if id < in {
				s.cur.Nodes = append(s.cur.Nodes, viewNode{ID: n.ID, Lease: n.Lease})
			}
			s.here = append(s.here, n)
		}
		return s
	}
	for name, c := range map[string]struct {
		in      int // nodes of the view
		against map[int][]int64
		want    verdict
		next    []distrib.NodeID
	}{
		"one accuses": {3, map[int][]int64{0: {102}}, publish, []distrib.NodeID{0, 1}},
		"two accuse": {3, map[int][]int64{0: {102}, 1: {102}, 2: {100}}, publish,
			[]distrib.NodeID{0, 1}},
		"each other":        {3, map[int][]int64{0: {102}, 2: {100}}, nothing, nil},
		"it is out":         {2, map[int][]int64{0: {102}}, nothing, nil},
		"who is out has no": {2, map[int][]int64{0: {102}, 2: {100, 101}}, nothing, nil},
		"another lease":     {3, map[int][]int64{0: {202}}, nothing, nil},
	} {
		s := at(c.in, c.against)
		what, next := decide(s, 2, 3, true)
		if out := s.expelled(); c.want == publish && !slices.Equal(out, []int64{102}) {
			t.Errorf("%s: %v is expelled", name, out)
		}
		var ids []distrib.NodeID
		for _, n := range next {
			ids = append(ids, n.ID)
		}
		if what != c.want || !slices.Equal(ids, c.next) {
			t.Errorf("%s: %v, %v", name, what, ids)
		}
	}
}
