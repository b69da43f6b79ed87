package split

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
)

// Survey is what could be cut in a graph so that no operation needs more than a
// limit.
type Survey struct {
	g        *graph.Graph
	fetches  []graph.Value
	updates  []graph.NodeID
	live     []bool
	needs    []int64
	large    int64               // from so many bytes on a value is cut wherever it is
	sources  []graph.Value       // by node: see source
	readers  [][]graph.NodeID    // by node: that read its results, or views of the same bytes
	followed map[graph.Value]int // the number of the region, and one, that was grown along it
	regions  []*region
	regionOf []int32        // by node, or none
	after    []graph.NodeID // by node: that it needs a segment whole, see needsWhole
	reach    []reach        // by node
	drafted  []int          // the parts of the latest draft
	latest   *Result        // and the draft
}

const none = -1

// NewSurvey finds what can be cut in the part of g that the fetches and the updates
// need. limit is in bytes.
func NewSurvey(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID,
	limit int64) (*Survey, error) {
	if err := check(g, fetches, updates); err != nil {
		return nil, err
	}
	s := &Survey{g: g, fetches: fetches, updates: updates, live: wanted(g, fetches, updates),
		needs: Needs(g, fetches, updates), large: limit / 4,
		sources: make([]graph.Value, g.Len()), readers: make([][]graph.NodeID, g.Len()),
		regionOf: slices.Repeat([]int32{none}, g.Len()),
		followed: map[graph.Value]int{},
		after:    make([]graph.NodeID, g.Len()), reach: make([]reach, g.Len())}
	s.findSources()
	s.findReaders()
	s.findReach()
	for _, id := range s.above(limit) {
		s.grow(id)
	}
	return s, nil
}

func check(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) error {
	if g == nil {
		return errors.New("split: the graph is nil")
	}
	if err := g.Verify(); err != nil {
		return err
	}
	for _, v := range fetches {
		if v.Graph() != g || v.Index < 0 || v.Index >= len(v.Node.Out) {
			return fmt.Errorf("split: fetch %s is no value of the graph", v)
		}
	}
	for _, id := range updates {
		if id < 0 || int(id) >= g.Len() || g.Node(id).Kind != graph.KindUpdate {
			return fmt.Errorf("split: node %d is no update of the graph", id)
		}
	}
	return nil
}

// above are the live nodes that need more than the limit, the neediest first.
func (s *Survey) above(limit int64) []graph.NodeID {
	var out []graph.NodeID
	for id, need := range s.needs {
		if s.live[id] && need > limit {
			out = append(out, graph.NodeID(id))
		}
	}
	slices.SortStableFunc(out, func(a, b graph.NodeID) int {
		return cmp.Compare(s.needs[b], s.needs[a])
	})
	return out
}

// source is the value of which v is another form: v itself, unless v is a view of all
// of its operand.
func (s *Survey) source(v graph.Value) graph.Value {
	if of := s.sources[v.Node.ID]; of.Valid() {
		return of
	}
	return v
}

// findSources finds the sources of all views; those of other nodes are no values.
func (s *Survey) findSources() {
	for _, n := range s.g.Nodes() {
		if !n.Leaf() && !n.Executes() && len(n.Out) == 1 &&
			n.Out[0].Bytes() == n.In[0].Type().Bytes() {
			s.sources[n.ID] = s.source(n.In[0])
		}
	}
}

func (s *Survey) findReaders() {
	for _, n := range s.g.Nodes() {
		if !s.live[n.ID] || n.Leaf() || s.sources[n.ID].Valid() {
			continue
		}
		for _, v := range n.In {
			list := &s.readers[s.source(v).Node.ID]
			if len(*list) == 0 || (*list)[len(*list)-1] != n.ID {
				*list = append(*list, n.ID)
			}
		}
	}
}

// cut is where a node can be cut.
func (s *Survey) cut(id graph.NodeID) (graph.Cut, bool) {
	n := s.g.Node(id)
	op, ok := n.Op.(graph.Cutter)
	empty := func(t graph.Type) bool { return t.Elems() == 0 }
	if !ok || !s.live[id] || n.Kind != graph.KindCompute ||
		slices.ContainsFunc(append(n.InTypes(), n.Out...), empty) {
		return graph.Cut{}, false
	}
	c, ok := op.Cut(n.InTypes(), n.Out)
	return c, ok && accepts(op, c, n)
}

// accepts reports whether an operation's first part computes what it should.
func accepts(op graph.Cutter, c graph.Cut, n *graph.Node) bool {
	in, rows := n.InTypes(), min(c.Rows, max(c.Align, c.Least))
	for i, axes := range c.In {
		if axes > 0 {
			in[i] = graph.RowsOf(in[i], axes, rows)
		}
	}
	out, err := op.Part(n.InTypes(), n.Out, 0, rows).Infer(in)
	return err == nil && slices.EqualFunc(out, c.Part(n.Out, rows), graph.Type.Equal)
}

// grow makes a region of a node and of all that reads or makes the large values that
// are cut with it.
func (s *Survey) grow(seed graph.NodeID) {
	r := &region{cuts: map[graph.NodeID]graph.Cut{}}
	if r = s.add(r, seed); len(r.nodes) == 0 {
		return
	}
	for next := 0; next < len(r.nodes); next++ {
		n := s.g.Node(r.nodes[next])
		c := r.cuts[n.ID]
		for i, axes := range c.In {
			if axes > 0 {
				r = s.follow(r, s.source(n.In[i]))
			}
		}
		for i, axes := range c.Out {
			if axes > 0 {
				r = s.follow(r, n.Value(i))
			}
		}
	}
	slices.Sort(r.nodes)
	s.regions = append(s.regions, r)
}

// add is the region with a node, if that can be cut with it.
func (s *Survey) add(r *region, id graph.NodeID) *region {
	if s.regionOf[id] != none {
		return r
	}
	c, ok := s.cut(id)
	if !ok {
		return r
	}
	larger, ok := r.with(id, c)
	if !ok {
		return r
	}
	larger.cuts[id] = c
	s.regionOf[id] = int32(len(s.regions))
	return larger
}

// follow is the region with all that can be cut where it makes or reads a value, if
// that is large.
func (s *Survey) follow(r *region, v graph.Value) *region {
	if v.Type().Bytes() <= s.large || s.followed[v] == len(s.regions)+1 {
		return r
	}
	s.followed[v] = len(s.regions) + 1
	if c, ok := s.cut(v.Node.ID); ok && !c.Sums() {
		r = s.add(r, v.Node.ID)
	}
	for _, id := range s.readers[v.Node.ID] {
		if c, ok := s.cut(id); ok && s.cuts(s.g.Node(id), c, v) {
			r = s.add(r, id)
		}
	}
	return r
}

// cuts reports whether a node's cut goes through an operand in v's bytes.
func (s *Survey) cuts(n *graph.Node, c graph.Cut, v graph.Value) bool {
	for i, axes := range c.In {
		if axes > 0 && s.source(n.In[i]) == v {
			return true
		}
	}
	return false
}
