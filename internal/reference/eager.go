package reference

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// Eager evaluates a graph while it is being made: what a value is can be asked before the next
// node is added. So loops and branches can be Go's own, and what they come to is a graph without
// any.
type Eager struct {
	g     *graph.Graph
	leaf  func(n *graph.Node, v tensor.View)
	m     Machine
	calls int // of the machine that have been made
}

// NewEager evaluates g, whose inputs and variables get their values from leaf.
func NewEager(g *graph.Graph, leaf func(n *graph.Node, v tensor.View)) *Eager {
	return &Eager{g: g, leaf: leaf}
}

// Value is a value of the graph, from all nodes that there are by now.
func (e *Eager) Value(v graph.Value) (tensor.View, error) {
	if err := e.g.Err(); err != nil {
		return tensor.View{}, err
	}
	for id := len(e.m.values); id < e.g.Len(); id++ {
		n := e.g.Node(graph.NodeID(id))
		e.m.values = append(e.m.values, nil)
		if err := e.m.add(n, nil); err != nil {
			return tensor.View{}, fmt.Errorf("%s: %w", n.Name, err)
		}
		if n.Leaf() && n.Kind != graph.KindConstant {
			e.leaf(n, e.m.Value(n.Value(0)))
		}
	}
	made := Machine{values: e.m.values, calls: e.m.calls[e.calls:]}
	e.calls = len(e.m.calls)
	return e.m.Value(v), made.Step()
}
