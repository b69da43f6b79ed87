package split

import (
	"slices"

	"github.com/gomem/gomem/graph"
)

// Region is operations that are cut together.
type Region struct {
	Nodes []graph.NodeID // in order of creation
	Need  int64          // the most bytes that one of them needs, see [Needs]
	Most  int            // the most parts
}

// Regions are what can be cut, those with the neediest operation first.
func (s *Survey) Regions() []Region {
	out := make([]Region, len(s.regions))
	for i, r := range s.regions {
		out[i] = Region{Nodes: r.nodes, Most: r.most}
		for _, id := range r.nodes {
			out[i].Need = max(out[i].Need, s.needs[id])
		}
	}
	return out
}

// floor is what becomes of a region.
type floor struct {
	parts int
	need  int64 // the most bytes that an operation of it, or one that joins parts, needs
}

// floors says what becomes of every region if it is cut into so many parts, or as many
// as it can be.
func (s *Survey) floors(parts []int) ([]floor, error) {
	r, err := s.draft(parts)
	if err != nil {
		return nil, err
	}
	out := make([]floor, len(s.regions))
	for i, of := range s.regions {
		out[i].parts = max(1, min(parts[i], of.most))
	}
	needs := Needs(r.Graph, r.fetched(s.fetches), r.updated(s.updates))
	for id, number := range r.owner {
		if number != none && r.Graph.Node(graph.NodeID(id)).Executes() {
			out[number].need = max(out[number].need, needs[id])
		}
	}
	return out, nil
}

// fetched are the values that stand for the fetches.
func (r *Result) fetched(fetches []graph.Value) []graph.Value {
	out := make([]graph.Value, len(fetches))
	for i, v := range fetches {
		out[i] = r.Value(v)
	}
	return out
}

// updated are the nodes that stand for the updates.
func (r *Result) updated(updates []graph.NodeID) []graph.NodeID {
	out := make([]graph.NodeID, len(updates))
	for i, id := range updates {
		out[i] = r.nodes[id].ID
	}
	return out
}

// worthwhile is the share of what is needed that more parts must save; effort is how
// often a survey is built to find out.
const (
	worthwhile = 64
	effort     = 5
)

// next guesses how many parts need no more than a limit, or little more than with
// any number, where one part needs whole: what is needed is in part in proportion to
// the size of a part, and for the rest the same for all.
func (f floor) next(whole, limit int64) int {
	if f.parts < 2 {
		return 2
	}
	k := int64(f.parts)
	fixed := max(0, f.need-(whole-f.need)/(k-1))
	room := limit - fixed
	if room <= 0 {
		room = 1 + fixed/16
	}
	return max(f.parts+1, int((whole-fixed+room-1)/room))
}

// Choose is, by region, into how many parts to cut it: about as few as let its
// operations do with the limit, in bytes, or with which they need about the least; one
// if cutting does not help.
func (s *Survey) Choose(limit int64) ([]int, error) {
	regions := s.Regions()
	best := make([]floor, len(regions))
	parts := make([]int, len(regions))
	for i, r := range regions {
		best[i] = floor{parts: 1, need: r.Need}
		parts[i] = min(r.Most, max(2, int((r.Need+limit-1)/max(1, limit))))
	}
	for tries, more := 0, len(regions) > 0; more && tries < effort; tries++ {
		floors, err := s.floors(parts)
		if err != nil {
			return nil, err
		}
		more = false
		for i, f := range floors {
			if f.need < best[i].need-best[i].need/worthwhile {
				best[i] = f
			}
			if best[i].need > limit && f.parts < min(regions[i].Most, 2*best[i].parts) {
				parts[i] = min(regions[i].Most, f.next(regions[i].Need, limit))
				more = true
			}
		}
	}
	for i := range parts {
		parts[i] = best[i].parts
	}
	return s.harmless(parts)
}

// harmless is, by region, so many parts, or one where cutting the region has an operation
// need more than any of the whole graph: one outside that reads all of a value and a view
// of it, for example, needs the value joined and the part.
func (s *Survey) harmless(parts []int) ([]int, error) {
	whole := int64(0)
	for _, need := range s.needs {
		whole = max(whole, need)
	}
	for slices.ContainsFunc(parts, func(k int) bool { return k > 1 }) {
		r, err := s.draft(parts)
		if err != nil {
			return nil, err
		}
		harms := false
		for id, need := range Needs(r.Graph, r.fetched(s.fetches), r.updated(s.updates)) {
			if need > whole {
				harms = true
				r.join(graph.NodeID(id), parts)
			}
		}
		if !harms {
			break
		}
	}
	return parts, nil
}

// join sets the parts of the regions that a node is of, or has operands of, to one; or of
// all, if there is none.
func (r *Result) join(id graph.NodeID, parts []int) {
	found := false
	leave := func(number int32) {
		if number != none && parts[number] > 1 {
			parts[number], found = 1, true
		}
	}
	leave(r.owner[id])
	for _, v := range r.Graph.Node(id).In {
		root, _ := v.Resolve()
		leave(r.owner[root.Node.ID])
	}
	if !found {
		for i := range parts {
			parts[i] = 1
		}
	}
}

// Split builds the graph that computes the fetches and applies the updates of g, with
// the operations that need more than limit bytes cut into parts, as far as that can
// be done and helps. It has all leaves of g, in their order, the fetched values and
// the updates. Of the rest it has what those need. The error is g's own, or says what
// is no part of it.
func Split(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID,
	limit int64) (*Result, error) {
	if err := check(g, fetches, updates); err != nil {
		return nil, err
	}
	var before []*Result
	var of []*graph.Graph
	for _, rewrite := range []rewriting{reframe, unfold} {
		r, err := rewrite(g, fetches, updates, limit)
		if err != nil {
			return nil, err
		}
		if r != nil {
			before, of = append(before, r), append(of, g)
			g, fetches, updates = r.Graph, r.fetched(fetches), r.updated(updates)
		}
	}
	s, err := NewSurvey(g, fetches, updates, limit)
	if err != nil {
		return nil, err
	}
	parts, err := s.Choose(limit)
	if err != nil {
		return nil, err
	}
	r, err := s.Build(parts)
	for i := len(before) - 1; i >= 0 && err == nil; i-- {
		r = r.after(before[i], of[i])
	}
	return r, err
}

// rewriting is what is done to a graph before its operations are cut; without a result if there is
// nothing to do.
type rewriting func(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID,
	limit int64) (*Result, error)
