// Package reference evaluates a graph in the plainest way: every node in order
// of creation, every value in memory of its own, kernels called directly. It
// shares nothing with plans, so it is what plans are compared with, and what
// the executor's overhead is measured against.
package reference

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/tensor"
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

// New prepares a machine that runs the live nodes of g, update nodes last.
func New(g *graph.Graph, live []bool, threads *pool.Pool) (*Machine, error) {
	if err := g.Verify(); err != nil {
		return nil, err
	}
	m := &Machine{values: make([][]tensor.View, g.Len())}
	var updates []call
	for _, n := range g.Nodes() {
		if !live[n.ID] {
			continue
		}
		c, err := m.prepare(n, threads)
		switch {
		case err != nil:
			return nil, err
		case n.Kind == graph.KindUpdate:
			updates = append(updates, c)
		case c.fn != nil:
			m.calls = append(m.calls, c)
		}
	}
	m.calls = append(m.calls, updates...)
	return m, nil
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
