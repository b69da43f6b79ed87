package graph

import (
	"errors"
	"fmt"
)

// Copy appends a node like n, which may be of another graph, and returns it: it
// has n's kind, name, phase and model line and, if it is a leaf, n's data or
// initial value. A node with an operation gets op and the operands in instead
// of its own; an update writes the first of them, as many as n does. Rewrites
// build graphs with it. The error is an *[Error] and is not recorded.
func (g *Graph) Copy(n *Node, op Op, in ...Value) (*Node, error) {
	c := *n
	c.Op, c.In = op, in
	if err := g.checkCopy(&c, n.Leaf()); err != nil {
		return nil, &Error{Node: n.Name, Op: c.OpName(), Pos: n.Pos, Err: err}
	}
	var types []Type
	if !c.Leaf() {
		types = c.InTypes()
		var err error
		if c.Out, err = op.Infer(types); err == nil {
			err = checkResults(&c)
		}
		if err != nil {
			return nil, &Error{Node: n.Name, Op: op.Name(), Pos: n.Pos, In: types, Err: err}
		}
	}
	g.names.Add(c.Name)
	if g.device == nil && n.graph != nil {
		g.device = n.graph.device
	}
	g.add(&c, types)
	g.addWriter(&c)
	return &c, nil
}

func (g *Graph) checkCopy(c *Node, leaf bool) error {
	switch {
	case c.Leaf() != leaf:
		return errors.New("a leaf has no operation, and every other node has one")
	case g.names.Has(c.Name):
		return errors.New("the name is taken")
	case c.Mutates > len(c.In):
		return fmt.Errorf("an update of %d variables has %d operands", c.Mutates, len(c.In))
	}
	return g.checkOperands(c)
}
