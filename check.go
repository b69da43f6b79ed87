package gomem

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan"
)

// check is an operation that refuses some data, and is given some by the feeds.
type check struct {
	node *graph.Node
	op   graph.Checker
	in   []tensor.View // its operands; those that are constants with their data
	fed  []fedOperand
}

// fedOperand is an operand whose bytes are in a feed.
type fedOperand struct {
	operand, feed int   // feed indexes the plan's feeds
	off           int64 // where in the feed it starts, in bytes
}

// checksOf finds the operations of a target whose data feeds decide about.
func checksOf(g *graph.Graph, t Target, feeds []plan.Binding) []check {
	roots := slices.Clone(t.Updates)
	for _, v := range t.Fetches {
		roots = append(roots, v.Node.ID)
	}
	byNode := map[graph.NodeID]int{}
	for i, b := range feeds {
		byNode[b.Node] = i
	}
	live := g.Ancestors(roots)
	var out []check
	for _, n := range g.Nodes()[:len(live)] {
		op, ok := n.Op.(graph.Checker)
		if !ok || !live[n.ID] {
			continue
		}
		if c := newCheck(n, op, byNode); len(c.fed) > 0 {
			out = append(out, c)
		}
	}
	return out
}

func newCheck(n *graph.Node, op graph.Checker, feeds map[graph.NodeID]int) check {
	c := check{node: n, op: op}
	for k, v := range n.In {
		in := tensor.View{Type: v.Type()}
		root, off := v.Resolve()
		if root.Node.Kind == graph.KindConstant {
			in.Data = root.Node.Data.Data[off:][:in.Type.Bytes()]
		}
		if feed, ok := feeds[root.Node.ID]; ok {
			c.fed = append(c.fed, fedOperand{k, feed, off})
		}
		c.in = append(c.in, in)
	}
	return c
}

// run reports data that the operation would refuse. inputs has the plan's feeds.
func (c check) run(inputs []graph.Value, feeds Feeds) error {
	in := slices.Clone(c.in)
	var names []string
	for _, f := range c.fed {
		names = append(names, inputs[f.feed].Node.Name)
		in[f.operand].Data = feeds[inputs[f.feed]].Data[f.off:][:in[f.operand].Type.Bytes()]
	}
	if err := c.op.CheckData(in); err != nil {
		return fmt.Errorf("input %s: %w", strings.Join(names, " or "), &graph.Error{
			Node: c.node.Name, Op: c.node.OpName(), Pos: c.node.Pos, In: c.node.InTypes(),
			Err: err})
	}
	return nil
}
