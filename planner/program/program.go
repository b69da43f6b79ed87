package program

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// Gap is an absence of a value from the device: it leaves after the node at
// position After of the order has used or made it, and is back for the node at
// position Before.
type Gap struct{ After, Before int32 }

// Program is a graph and what has been decided about it. Tables by node are
// indexed by node ID, tables by value by ValueIndex.
type Program struct {
	Graph   *graph.Graph
	Fetches []graph.Value
	Updates []graph.NodeID // update nodes that belong to the program

	Live  []bool         // by node: runs, or is a leaf that something live reads
	Part  []int32        // by node: its partition; -1 for leaves and the dead
	Order []graph.NodeID // live nodes with an operation, partitions in sequence
	Place []space.ID     // by node: where it executes, or where a leaf's value lives
	Away  [][]Gap        // by value: absences from the device, in order

	Estimate int64 // the device's peak as a pass has guessed it, or 0

	Schedule *Schedule // what lowering translates

	successors graph.Adjacency
	ordered    []bool // the live nodes that successors are of

	first []int32   // by node: index of its first value
	pos   []int32   // by node: position in Order, or -1
	uses  [][]int32 // what Uses has listed
}

// New makes a program in which nothing has been decided.
func New(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) *Program {
	p := &Program{Graph: g, Fetches: fetches, Updates: updates, first: make([]int32, g.Len()+1)}
	for i, n := range g.Nodes() {
		p.first[i+1] = p.first[i] + int32(len(n.Out))
	}
	return p
}

// Anew is a program of the same graph, fetches and updates in which nothing has been decided. It
// does not list again what it has in common with this one.
func (p *Program) Anew() *Program {
	return &Program{Graph: p.Graph, Fetches: p.Fetches, Updates: p.Updates, first: p.first,
		successors: p.successors, ordered: p.ordered}
}

// Values is the number of values of the graph.
func (p *Program) Values() int { return int(p.first[len(p.first)-1]) }

// ValueIndex numbers the values of the graph densely.
func (p *Program) ValueIndex(v graph.Value) int { return int(p.first[v.Node.ID]) + v.Index }

// Pos is a node's position in Order, or -1.
func (p *Program) Pos(id graph.NodeID) int32 { return p.pos[id] }

// SetOrder fills Order and the positions.
func (p *Program) SetOrder(order []graph.NodeID) {
	p.Order, p.uses = order, nil
	p.pos = make([]int32, p.Graph.Len())
	for i := range p.pos {
		p.pos[i] = -1
	}
	for i, id := range order {
		p.pos[id] = int32(i)
	}
}

// Successors are the ordering edges between live nodes that execute; they are
// listed again only if other nodes live than before.
func (p *Program) Successors() graph.Adjacency {
	if p.ordered == nil || !slices.Equal(p.ordered, p.Live) {
		p.successors, p.ordered = p.Graph.Successors(p.Live), slices.Clone(p.Live)
	}
	return p.successors
}

// Parts is the number of partitions.
func (p *Program) Parts() int {
	if len(p.Order) == 0 {
		return 0
	}
	return int(p.Part[p.Order[len(p.Order)-1]]) + 1
}

// Uses lists, for every value that owns its bytes, the positions at which it is
// touched: where it is made, if an operation makes it, and where it or a view
// of it is read, in order and without repetition. The lists belong to the program, and are
// made once for an order.
func (p *Program) Uses() [][]int32 {
	if p.uses != nil {
		return p.uses
	}
	last, count := make([]int32, p.Values()), make([]int32, p.Values())
	all := 0
	p.touches(func(v int, pos int32) {
		if last[v] != pos+1 {
			last[v] = pos + 1
			count[v]++
			all++
		}
	})
	p.uses = make([][]int32, p.Values())
	room := make([]int32, all)
	for v, n := range count {
		p.uses[v], room = room[:0:n], room[n:]
	}
	p.touches(func(v int, pos int32) {
		if list := p.uses[v]; len(list) == 0 || list[len(list)-1] != pos {
			p.uses[v] = append(list, pos)
		}
	})
	return p.uses
}

// touches calls f for every value that an operation reads or makes, with the position, in
// order.
func (p *Program) touches(f func(v int, pos int32)) {
	for pos, id := range p.Order {
		n := p.Graph.Node(id)
		if !n.Executes() {
			continue
		}
		for _, v := range n.In {
			root, _ := v.Resolve()
			f(p.ValueIndex(root), int32(pos))
		}
		for i := range n.Out {
			f(p.ValueIndex(n.Value(i)), int32(pos))
		}
	}
}

// check proves the tables that are filled so far against the graph.
func (p *Program) check() error {
	if p.Schedule != nil {
		return p.Schedule.check(p)
	}
	if p.Live == nil || p.Order == nil {
		return nil
	}
	seen := make([]bool, p.Graph.Len())
	part := int32(0)
	succ := p.Successors()
	for i, id := range p.Order {
		n := p.Graph.Node(id)
		switch {
		case !p.Live[id] || n.Leaf() || seen[id]:
			return fmt.Errorf("%s may not be at position %d of the order", n.Name, i)
		case p.Part[id] < part || p.Part[id] > part+1 || i == 0 && p.Part[id] > 0:
			return fmt.Errorf("%s of partition %d follows partition %d", n.Name, p.Part[id], part)
		}
		part = p.Part[id]
		seen[id] = true
		for _, s := range succ.Of(id) {
			if seen[s] {
				return fmt.Errorf("%s runs before %s, which it needs", p.Graph.Node(s).Name, n.Name)
			}
		}
	}
	for _, n := range p.Graph.Nodes() {
		if p.Live[n.ID] && !n.Leaf() && !seen[n.ID] {
			return fmt.Errorf("%s is live but has no position", n.Name)
		}
	}
	return nil
}
