package mesh

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
)

// Sharding is where the parts of a value are.
type Sharding struct {
	// Axis is, by axis of the value, 1 + the axis of the mesh that it is divided along, in
	// equal blocks; 0: it is not.
	Axis []int8
	// At is, by axis of the mesh, 1 + the only coordinate at which the value is; 0: it is
	// at every one, or divided.
	At [maxAxes]int32
}

// uses reports whether a value is divided along an axis of the mesh, or at one place of it.
func (s *Sharding) uses(m int) bool { return s.At[m] > 0 || s.axisOf(m) >= 0 }

// axisOf is the axis of the value that is divided along an axis of the mesh, or -1.
func (s *Sharding) axisOf(m int) int { return slices.Index(s.Axis, int8(m+1)) }

// Whole reports whether all of the value is at every coordinate.
func (s *Sharding) Whole() bool {
	return s.At == [maxAxes]int32{} && !slices.ContainsFunc(s.Axis, func(a int8) bool {
		return a > 0
	})
}

// Propagation is the sharding of every live value of a graph, and where its nodes are
// computed.
type Propagation struct {
	spec    Spec
	graph   *graph.Graph
	live    []bool
	rules   []*rule
	first   []int32               // by node: its first result in values
	values  []Sharding            // by result
	at      [][maxAxes]int32      // by node, as Sharding.At
	readers [][]*graph.Node       // by node
	pinned  map[graph.NodeID]bool // variables
	pins    map[graph.NodeID]bool // the updates that pinned some
	names   graph.Names           // of nodes
}

// Propagate finds out how the values are divided that fetches and updates need, from what
// the layout says of leaves. The error is the graph's, the layout's, or that of a size that
// cannot be divided.
func Propagate(g *graph.Graph, s Spec, fetches []graph.Value,
	updates []graph.NodeID) (*Propagation, error) {
	if err := g.Err(); err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, &Error{s, err}
	}
	if n := s.Mesh.Processes(); n > 1 && g.Exchanges() {
		return nil, &Error{s, fmt.Errorf("the graph has exchanges of its own, among workers that "+
			"each have all of it: it cannot be divided over %d processes", n)}
	}
	roots := slices.Clone(updates)
	for _, v := range fetches {
		roots = append(roots, v.Node.ID)
	}
	p := &Propagation{spec: s, graph: g, live: g.Ancestors(roots),
		pinned: map[graph.NodeID]bool{}, pins: map[graph.NodeID]bool{}, names: graph.Names{}}
	p.rules = rules(g, p.live)
	p.prepare()
	for {
		p.clear()
		if err := p.seed(); err != nil {
			return nil, &Error{s, err}
		}
		p.fix(p.place)
		p.fix(func(n *graph.Node) bool { return p.step(n, false) })
		p.fix(func(n *graph.Node) bool { return p.step(n, true) })
		if !p.pin() {
			return p, p.verify()
		}
	}
}

// prepare numbers the values and lists the readers of nodes.
func (p *Propagation) prepare() {
	p.first = make([]int32, p.graph.Len())
	p.readers = make([][]*graph.Node, p.graph.Len())
	count := 0
	for _, n := range p.graph.Nodes() {
		p.first[n.ID] = int32(count)
		p.names.Add(n.Name)
		count += len(n.Out)
		for _, v := range n.In {
			if p.live[n.ID] {
				p.readers[v.Node.ID] = append(p.readers[v.Node.ID], n)
			}
		}
	}
	for _, n := range p.graph.Variables() {
		p.pinned[n.ID] = n.Shared != nil // others have it whole
	}
	p.values = make([]Sharding, count)
	p.at = make([][maxAxes]int32, p.graph.Len())
}

// clear forgets what was found out, but not which variables are pinned.
func (p *Propagation) clear() {
	clear(p.at)
	for _, n := range p.graph.Nodes() {
		for i, t := range n.Out {
			*p.Of(n.Value(i)) = Sharding{Axis: make([]int8, t.Rank())}
		}
	}
}

// Of is the sharding of a value.
func (p *Propagation) Of(v graph.Value) *Sharding {
	return &p.values[p.number(v)]
}

// fix applies a step to all live nodes, to and fro, until nothing changes. What is known
// is never taken back, so that ends.
func (p *Propagation) fix(step func(n *graph.Node) bool) {
	nodes := p.graph.Nodes()
	for changed := true; changed; {
		changed = false
		for _, n := range nodes {
			changed = p.live[n.ID] && step(n) || changed
		}
		for _, n := range slices.Backward(nodes) {
			changed = p.live[n.ID] && step(n) || changed
		}
	}
}

// step divides what a node reads and computes alike: results as its operands are, and both
// ways if asked to.
func (p *Propagation) step(n *graph.Node, both bool) bool {
	changed := p.place(n)
	if n.Leaf() {
		return changed
	}
	along := p.factors(n, both)
	if along == nil {
		return changed
	}
	r := p.rules[n.ID]
	for i, v := range n.In {
		if both {
			changed = p.divide(v, r.In[i], along) || changed
		}
	}
	for i := range n.Out {
		changed = p.divide(n.Value(i), r.Out[i], along) || changed
	}
	return changed
}

// divide divides a value's axes as the factors that they begin with are.
func (p *Propagation) divide(v graph.Value, axes [][]int, along []int8) (changed bool) {
	if p.pinned[v.Node.ID] {
		return false
	}
	s := p.Of(v)
	for j, list := range axes {
		if len(list) == 0 || s.Axis[j] != 0 {
			continue
		}
		if m := along[list[0]]; m != 0 && !s.uses(int(m-1)) {
			s.Axis[j], changed = m, true
		}
	}
	return changed
}

// pin finds variables that their updates cannot write in pieces, and pins them: they stay
// whole when all begins anew.
func (p *Propagation) pin() (found bool) {
	for _, n := range p.graph.Nodes() {
		if !p.live[n.ID] || n.Kind != graph.KindUpdate || p.writable(n) {
			continue
		}
		for _, v := range n.In[:n.Mutates] {
			if !p.pinned[v.Node.ID] {
				found, p.pins[n.ID], p.pinned[v.Node.ID] = true, true, true
			}
		}
	}
	return found
}

// writable reports whether the variables that an update writes are all divided as it is.
func (p *Propagation) writable(n *graph.Node) bool {
	along := p.factors(n, false)
	for i, v := range n.In[:n.Mutates] {
		if p.processes(p.Of(v).At) != p.processes(p.at[n.ID]) {
			return false
		}
		for j, m := range p.Of(v).Axis {
			var want int8
			if along != nil && len(p.rules[n.ID].In[i][j]) > 0 {
				want = along[p.rules[n.ID].In[i][j][0]]
			}
			if m != want {
				return false
			}
		}
		for _, m := range along {
			if m > 0 && p.Of(v).axisOf(int(m-1)) < 0 {
				return false
			}
		}
	}
	return true
}
