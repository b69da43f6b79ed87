package order

import (
	"cmp"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/program"
)

// Portfolio is all orders, the quickest to find first. Each is a pass that fills Order,
// and Part with one partition.
func Portfolio() []program.Pass {
	return []program.Pass{Creation(), DFS(), LeastPeak(),
		Beam(Width)}
}

// Creation is the order in which nodes were made, with every update as soon as it is
// ready.
func Creation() program.Pass { return as("creation", byCreation) }

// DFS is depth first, and in what one operation makes ready by what it needs.
func DFS() program.Pass { return as("dfs", bySize) }

// LeastPeak takes of what is ready that which raises the peak least.
func LeastPeak() program.Pass { return as("least-peak", byPeak) }

// as is the pass that fills the tables with an order.
func as(name string, find func(*program.Program, *Account) []graph.NodeID) program.Pass {
	return program.Pass{Name: "order " + name, Run: func(p *program.Program) error {
		order := find(p, NewAccount(p))
		p.Part = make([]int32, p.Graph.Len())
		for i := range p.Part {
			p.Part[i] = -1
		}
		for _, id := range order {
			p.Part[id] = 0
		}
		p.SetOrder(order)
		return nil
	}}
}

// walk visits every live operation once, after its predecessors.
type walk struct {
	graph   *graph.Graph
	succ    graph.Adjacency
	pending []int32 // by node: predecessors to come
	order   []graph.NodeID
	ready   []graph.NodeID // what the last visit has made ready, by creation
}

func newWalk(p *program.Program) *walk {
	succ := p.Successors()
	return &walk{graph: p.Graph, succ: succ, pending: succ.InDegrees()}
}

// first are the operations without predecessors, by creation.
func (w *walk) first(p *program.Program) []graph.NodeID {
	var ready []graph.NodeID
	for _, n := range p.Graph.Nodes() {
		if p.Live[n.ID] && !n.Leaf() && w.pending[n.ID] == 0 {
			ready = append(ready, n.ID)
		}
	}
	return ready
}

// visit puts an operation that is ready next into the order.
func (w *walk) visit(id graph.NodeID) {
	w.order = append(w.order, id)
	w.ready = w.ready[:0]
	for _, s := range w.succ.Of(id) {
		if w.pending[s]--; w.pending[s] == 0 {
			w.ready = append(w.ready, s)
		}
	}
	slices.Sort(w.ready)
}

// byCreation visits by creation, but operations of the update phase once they are
// ready: at their turn they may not be, since they follow all that reads the variable.
func byCreation(p *program.Program, _ *Account) []graph.NodeID {
	w := newWalk(p)
	done := make([]bool, p.Graph.Len())
	var stack []graph.NodeID
	for _, n := range p.Graph.Nodes() {
		if !p.Live[n.ID] || n.Leaf() || done[n.ID] || w.pending[n.ID] > 0 {
			continue
		}
		for stack = append(stack, n.ID); len(stack) > 0; {
			id := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			done[id] = true
			w.visit(id)
			for _, s := range slices.Backward(w.ready) {
				if p.Graph.Node(s).Phase == graph.Update {
					stack = append(stack, s)
				}
			}
		}
	}
	return w.order
}

// bySize is a traversal with a stack. Of what one visit makes ready, that lies on top
// which needs the fewest bytes, as far as is known then, or was created last.
func bySize(p *program.Program, a *Account) []graph.NodeID {
	w, s := newWalk(p), a.begin()
	stack := w.first(p)
	slices.Reverse(stack)
	needs := make([]int64, p.Graph.Len())
	for len(stack) > 0 {
		id := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		w.visit(id)
		s.run(id)
		for _, r := range w.ready {
			if a.Runs[r] {
				needs[r], _ = s.need(r)
			}
		}
		slices.SortFunc(w.ready, func(x, y graph.NodeID) int {
			return cmp.Or(cmp.Compare(needs[y], needs[x]), cmp.Compare(x, y))
		})
		stack = append(stack, w.ready...)
	}
	return w.order
}
