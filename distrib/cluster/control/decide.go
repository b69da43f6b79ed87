package control

import (
	"cmp"
	"slices"
)

// verdict is what the leader does about who is there.
type verdict int

const (
	nothing verdict = iota // the view is as it should be, or there are too few for one
	wait                   // for more nodes, before a view is written
	publish                // the next view, now
)

// decide says whether there must be another view, and of which nodes. settled: enough
// nodes have been waited for.
//
//   - Nobody of the view is left, or there is none: with min nodes, and settled or max.
//   - Somebody is gone or leaving: at once, with those that have come meanwhile; also
//     when fewer than min are left, since they must learn of it. A process that has taken
//     a lost one's rank is in the view after, or nobody would learn that it knows nothing.
//   - Somebody of the view is accused by others of it, and by more of them than they are
//     themselves: as if that one were gone.
//   - Somebody asks for a view after this one: at once, of whom it would have anyway.
//   - Somebody has come: settled or max.
//
// More than max nodes are spare: who is in the view stays, then who came first.
func decide(s *state, min, max int, settled bool) (verdict, []nodeRecord) {
	s = s.unaccused()
	next := candidates(s, max)
	var kept, leaving int
	again := false
	for _, n := range s.here {
		if s.cur.has(n.ID, n.Lease) {
			if n.Leaving {
				leaving++
			} else {
				kept++
				again = again || n.Again == s.cur.Epoch
			}
		}
	}
	full := settled || len(next) == max
	switch {
	case kept == 0 && len(next) >= min && full:
		return publish, next
	case kept == 0 && len(next) >= min:
		return wait, nil
	case kept == 0 && leaving > 0:
		return publish, nil // nobody: the last ones to leave may go
	case kept == 0:
		return nothing, nil
	case kept < len(s.cur.Nodes):
		return publish, s.others(next)
	case again:
		return publish, next
	case len(next) == kept:
		return nothing, nil
	case full:
		return publish, next
	}
	return wait, nil
}

// unaccused is the state without the nodes that are expelled.
func (s *state) unaccused() *state {
	out, bad := *s, s.expelled()
	out.here = slices.DeleteFunc(slices.Clone(s.here), func(n nodeRecord) bool {
		return slices.Contains(bad, n.Lease)
	})
	return &out
}

// expelled are the leases of nodes that others of the view want to be out. Of two that accuse each
// other, and whom nobody else accuses, neither is.
func (s *state) expelled() (leases []int64) {
	count, by := map[int64]int{}, map[int64][]int64{}
	for _, n := range s.here {
		for _, lease := range n.Against {
			if s.cur.has(n.ID, n.Lease) {
				count[lease]++
				by[lease] = append(by[lease], n.Lease)
			}
		}
	}
	for _, n := range s.here {
		if slices.ContainsFunc(by[n.Lease], func(accuser int64) bool {
			return count[n.Lease] > count[accuser]
		}) {
			leases = append(leases, n.Lease)
		}
	}
	return leases
}

// others are the nodes of next that replace none of the view.
func (s *state) others(next []nodeRecord) []nodeRecord {
	return slices.DeleteFunc(next, func(n nodeRecord) bool {
		return !s.cur.has(n.ID, n.Lease) &&
			slices.ContainsFunc(s.cur.Nodes, func(o viewNode) bool { return o.ID == n.ID })
	})
}

// candidates are the nodes that the next view would have, by their ids.
func candidates(s *state, max int) []nodeRecord {
	var old, fresh []nodeRecord
	for _, n := range s.here { // by when they came
		switch {
		case n.Leaving:
		case s.cur.has(n.ID, n.Lease):
			old = append(old, n)
		default:
			fresh = append(fresh, n)
		}
	}
	next := append(old, fresh...)
	next = next[:min(len(next), max)]
	slices.SortFunc(next, func(a, b nodeRecord) int { return cmp.Compare(a.ID, b.ID) })
	return next
}
