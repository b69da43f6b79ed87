package graph

import (
	"errors"
	"fmt"
	"slices"
)

// Verify proves that the graph is well formed: operands come before their
// users, the types are those that the operations infer, names are unique,
// only update nodes write, none of them a variable twice, what is sent is awaited
// before anything else reads it, and all that the nodes
// read, write and work in is at most 1 EiB, so that no sum of bytes in a plan
// overflows. Which updates make a step together is for [Graph.VerifyUpdates].
func (g *Graph) Verify() error {
	if g.err != nil {
		return g.err
	}
	names := make(map[string]bool, len(g.nodes))
	room := int64(mostBytes)
	for i, n := range g.nodes {
		if err := verifyNode(n, NodeID(i)); err != nil {
			return &Error{Node: n.Name, Op: n.OpName(), Pos: n.Pos, In: n.InTypes(), Err: err}
		}
		if names[n.Name] {
			return &Error{Node: n.Name, Op: n.OpName(), Pos: n.Pos,
				Err: fmt.Errorf("the name is taken")}
		}
		names[n.Name] = true
		if room = n.within(room); room < 0 {
			return &Error{Node: n.Name, Op: n.OpName(), Pos: n.Pos, In: n.InTypes(),
				Err: errors.New("with what comes before it, it reads, writes and works in more " +
					"than 1 EiB: make the model or the batch smaller")}
		}
	}
	return g.verifyExchanges()
}

// mostBytes bounds the bytes that the nodes of a graph read, write and work in,
// each node on its own. A plan has at most three slots or copies for each of
// these.
const mostBytes = 1 << 60

// within is what a node leaves of so many bytes; below zero if they do not do.
func (n *Node) within(room int64) int64 {
	take := func(bytes int64) {
		if bytes < 0 || bytes > room {
			room = -1
			return
		}
		room -= bytes
	}
	for _, v := range n.In {
		take(v.Type().Bytes())
	}
	for _, t := range n.Out {
		take(t.Bytes())
	}
	take(n.Cost().Scratch)
	return room
}

func verifyNode(n *Node, id NodeID) error {
	if n.ID != id {
		return fmt.Errorf("node %d has ID %d", id, n.ID)
	}
	for _, v := range n.In {
		if v.Node.ID >= id {
			return fmt.Errorf("operand %s is created later", v)
		}
		if v.Node.Kind == KindUpdate {
			return fmt.Errorf("operand %s is an update", v)
		}
	}
	if n.Leaf() {
		return n.Out[0].Check()
	}
	out, err := n.Op.Infer(n.InTypes())
	if err != nil {
		return err
	}
	if !slices.EqualFunc(out, n.Out, Type.Equal) {
		return fmt.Errorf("results are %v, the operation infers %v", n.Out, out)
	}
	for i, v := range n.In[:n.Mutates] {
		if v.Node.Kind != KindVariable || n.Kind != KindUpdate || slices.Contains(n.In[:i], v) {
			return fmt.Errorf("may not write %s", v)
		}
	}
	return nil
}

// VerifyUpdates proves that the updates can make one step: no variable is written
// by two of them, and they can be ordered after the readers of what they write. The
// error is an *[Error]. An update that is listed twice runs once.
func (g *Graph) VerifyUpdates(updates []NodeID) error {
	writer := map[NodeID]*Node{}
	for _, id := range updates {
		n := g.nodes[id]
		for _, v := range n.In[:n.Mutates] {
			if w := writer[v.Node.ID]; w != nil && w != n {
				return updatedTwice(v, w, n)
			}
			writer[v.Node.ID] = n
		}
	}
	return g.verifyUpdateOrder(g.Ancestors(updates))
}

// updatedTwice is the error of two updates of v in one step. It gives the line of one,
// and an Error the other's.
func updatedTwice(v Value, a, b *Node) error {
	return &Error{Node: b.Name, Op: b.Op.Name(), Pos: b.Pos, In: b.InTypes(),
		Err: fmt.Errorf("variable %s is updated by %s (%s) in the same step: have a target for "+
			"each", v, a.Name, a.Pos)}
}

// verifyUpdateOrder finds updates that would each have to run after the other.
func (g *Graph) verifyUpdateOrder(live []bool) error {
	succ := g.Successors(live)
	pending := succ.InDegrees()
	var ready []NodeID
	for _, n := range g.nodes {
		if live[n.ID] && !n.Leaf() && pending[n.ID] == 0 {
			ready = append(ready, n.ID)
		}
	}
	for len(ready) > 0 {
		id := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, s := range succ.Of(id) {
			if pending[s]--; pending[s] == 0 {
				ready = append(ready, s)
			}
		}
	}
	for _, n := range g.nodes {
		if n.Kind == KindUpdate && pending[n.ID] > 0 {
			return &Error{Node: n.Name, Op: n.Op.Name(), Pos: n.Pos, In: n.InTypes(),
				Err: fmt.Errorf("updates read what each other writes, so neither can run last")}
		}
	}
	return nil
}
