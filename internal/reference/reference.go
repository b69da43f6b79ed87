// Package reference evaluates a graph in the plainest way: every node in order
// of creation, every value in memory of its own, kernels called directly. It
// shares nothing with plans, so it is what plans are compared with, and what
// the executor's overhead is measured against.
package reference

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// Machine holds the value of every node of a graph.
type Machine struct {
	values [][]tensor.View // by node, by result
	calls  []call
}

type call struct {
	node *graph.Node
	fn   kernel.Func
	args kernel.Call
}

// New prepares a machine that runs the live nodes of g, update nodes last, and each
// of them after those that read what it writes.
func New(g *graph.Graph, live []bool, threads *pool.Pool) (*Machine, error) {
	if err := g.Verify(); err != nil {
		return nil, err
	}
	m := &Machine{values: make([][]tensor.View, g.Len())}
	var updates []graph.NodeID
	for _, n := range g.Nodes() {
		switch {
		case live[n.ID] && n.Kind == graph.KindUpdate:
			updates = append(updates, n.ID)
		case live[n.ID]:
			if err := m.add(n, threads); err != nil {
				return nil, err
			}
		}
	}
	if err := g.VerifyUpdates(updates); err != nil {
		return nil, err
	}
	for _, id := range inOrder(g, updates) {
		if err := m.add(g.Node(id), threads); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// inOrder puts updates after those that read what they write, and otherwise leaves
// them in order of creation.
func inOrder(g *graph.Graph, updates []graph.NodeID) []graph.NodeID {
	var out []graph.NodeID
	for len(updates) > 0 {
		i := slices.IndexFunc(updates, func(u graph.NodeID) bool {
			return !slices.ContainsFunc(updates, func(r graph.NodeID) bool {
				return r != u && reads(g.Node(r), g.Node(u))
			})
		})
		out = append(out, updates[i])
		updates = slices.Delete(updates, i, i+1)
	}
	return out
}

// reads reports whether a node reads what an update writes.
func reads(n, update *graph.Node) bool {
	return slices.ContainsFunc(n.In[n.Mutates:], func(v graph.Value) bool {
		root, _ := v.Resolve()
		return slices.Contains(update.In[:update.Mutates], root)
	})
}

// add enters a node and, if it has something to execute, its call.
func (m *Machine) add(n *graph.Node, threads *pool.Pool) error {
	c, err := m.prepare(n, threads)
	if err == nil && c.fn != nil {
		m.calls = append(m.calls, c)
	}
	return err
}

// prepare gives n's results memory and binds its kernel; leaves and views have
// none.
func (m *Machine) prepare(n *graph.Node, threads *pool.Pool) (call, error) {
	c := call{node: n, args: kernel.Call{Pool: threads}}
	if n.Leaf() {
		m.values[n.ID] = []tensor.View{tensor.New(n.Out[0])}
		if n.Kind == graph.KindConstant {
			copy(m.values[n.ID][0].Data, n.Data.Data)
		}
		return c, nil
	}
	for _, v := range n.In {
		c.args.In = append(c.args.In, m.Value(v))
	}
	if view, ok := n.Op.(graph.Viewer); ok {
		for i, off := range view.View(n.InTypes(), n.Out) {
			data := c.args.In[0].Data[off : off+n.Out[i].Bytes()]
			m.values[n.ID] = append(m.values[n.ID], tensor.View{Type: n.Out[i], Data: data})
		}
		return c, nil
	}
	for _, t := range n.Out {
		m.values[n.ID] = append(m.values[n.ID], tensor.New(t))
	}
	c.args.Out = m.values[n.ID]
	c.args.Scratch = tensor.New(tensor.Of(tensor.U8, int(n.Cost().Scratch))).Data
	var err error
	c.fn, err = kernel.Lookup(kernel.CPU, n.Op)
	return c, err
}

// Value is the memory of a value: write inputs and variables before Step, read
// results after it.
func (m *Machine) Value(v graph.Value) tensor.View { return m.values[v.Node.ID][v.Index] }

// Step runs every node once.
func (m *Machine) Step() error {
	for i := range m.calls {
		c := &m.calls[i]
		if err := c.fn(c.node.Op, &c.args); err != nil {
			return fmt.Errorf("%s: %s: %w", c.node.Name, c.node.Op.Name(), err)
		}
	}
	return nil
}

// Values computes values of a graph that depend on constants alone. Of no values it is nil.
func Values(g *graph.Graph, values ...graph.Value) ([]tensor.View, error) {
	if len(values) == 0 {
		return nil, nil
	}
	var ids []graph.NodeID
	for _, v := range values {
		ids = append(ids, v.Node.ID)
	}
	m, err := New(g, g.Ancestors(ids), nil)
	if err == nil {
		err = m.Step()
	}
	if err != nil {
		return nil, err
	}
	out := make([]tensor.View, len(values))
	for i, v := range values {
		out[i] = m.Value(v)
	}
	return out, nil
}
