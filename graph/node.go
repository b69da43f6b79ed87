package graph

import (
	"fmt"

	"github.com/gomem/gomem/graph/tensor"
)

// NodeID numbers nodes densely in order of creation.
type NodeID int32

// Kind says what a node is.
type Kind uint8

// The kinds of nodes.
const (
	KindCompute  Kind = iota // a pure function of its operands
	KindInput                // fed at every step
	KindVariable             // state that lives between steps
	KindConstant             // data known when the graph is built
	KindUpdate               // writes variables in place; has no result
)

// String is the kind in lower case.
func (k Kind) String() string {
	return [...]string{"compute", "input", "variable", "constant", "update"}[k]
}

// Phase says which part of a training step a node belongs to.
type Phase uint8

// The phases.
const (
	Forward Phase = iota
	Backward
	Update
)

// String is the phase in lower case.
func (p Phase) String() string { return [...]string{"forward", "backward", "update"}[p] }

// Node is one node of a graph. Its fields are read-only for everybody but the
// graph that made it.
type Node struct {
	ID    NodeID
	Name  string // unique, scoped: "enc/3/att/qk"
	Kind  Kind
	Op    Op // nil for leaves
	In    []Value
	Out   []Type
	Phase Phase
	Pos   string // file:line in the model

	Mutates int         // update: In[:Mutates] are the variables it writes
	State   bool        // variable: optimizer state rather than a parameter
	Init    Init        // variable: its value before the first step
	Shared  *How        // variable: other workers write it too, see [Graph.Share]
	Data    tensor.View // constant: its value
	Member  Member      // variable: which element of an axis it is, see [Graph.Place]

	graph   *Graph
	cost    Cost    // of executing it, by its operation
	root    Value   // of a view: the value whose bytes its results are
	offsets []int64 // of a view: where in root each result starts, in bytes
}

// Member says of a variable that it is element I of N of an axis that is not in its type,
// as the weights of one of several experts are. The zero Member is of no axis.
type Member struct {
	Axis string
	I, N int
}

// Graph is the graph that the node belongs to.
func (n *Node) Graph() *Graph { return n.graph }

// Leaf reports whether the node has no operation to execute.
func (n *Node) Leaf() bool { return n.Op == nil }

// Value is result i of the node.
func (n *Node) Value(i int) Value { return Value{n, i} }

// InTypes are the types of the operands.
func (n *Node) InTypes() []Type {
	types := make([]Type, len(n.In))
	for i, v := range n.In {
		types[i] = v.Type()
	}
	return types
}

// OpName is the operation's name, or the kind of a leaf.
func (n *Node) OpName() string {
	if n.Leaf() {
		return n.Kind.String()
	}
	return n.Op.Name()
}

// Executes reports whether the node has something to execute: leaves and views
// have nothing.
func (n *Node) Executes() bool {
	_, view := n.Op.(Viewer)
	return !view && !n.Leaf()
}

// Hosted reports whether every plan has the node on the host; see [Device].
func (n *Node) Hosted() bool {
	d := n.graph.device
	return d != nil && d.Hosted != nil && n.Executes() && d.Hosted(n)
}

// Library is which library of the device computes the node there, "" where the device's own kernels
// do; see [Device].
func (n *Node) Library() string {
	if d := n.graph.device; d != nil && d.Library != nil && n.Executes() {
		return d.Library(n)
	}
	return ""
}

// Cost is the cost of executing the node; nothing for one that does not execute.
func (n *Node) Cost() Cost {
	c := n.cost
	if d := n.graph.device; d != nil && d.Scratch != nil && n.Executes() {
		c.Scratch = d.Scratch(n)
	}
	return c
}

// Value is one result of a node. The zero Value is no value: an operation on
// it records nothing and yields the zero Value again.
type Value struct {
	Node  *Node
	Index int
}

// Valid reports whether v is a value at all.
func (v Value) Valid() bool { return v.Node != nil }

// exists reports whether the node has such a result; an update has none.
func (v Value) exists() bool { return v.Node != nil && v.Index >= 0 && v.Index < len(v.Node.Out) }

// Type is the value's type; the zero Type if v is not valid, or its node has no
// such result.
func (v Value) Type() Type {
	if !v.exists() {
		return Type{}
	}
	return v.Node.Out[v.Index]
}

// Graph is the graph the value belongs to, nil if it is not valid.
func (v Value) Graph() *Graph {
	if v.Node == nil {
		return nil
	}
	return v.Node.graph
}

// String is the node's name, with ":1" for its second result.
func (v Value) String() string {
	switch {
	case v.Node == nil:
		return "none"
	case v.Index == 0:
		return v.Node.Name
	default:
		return fmt.Sprintf("%s:%d", v.Node.Name, v.Index)
	}
}

// Resolve follows views: it returns the value whose bytes hold v, and the
// offset in bytes at which v starts inside it.
func (v Value) Resolve() (root Value, off int64) {
	if !v.exists() || v.Node.offsets == nil {
		return v, 0
	}
	return v.Node.root, v.Node.offsets[v.Index]
}

// settle notes what is asked for again and again: what the node costs, and where the
// results of a view are, so that Resolve need not walk through views of views. The types
// are those of the operands.
func (n *Node) settle(types []Type) {
	n.cost, n.root, n.offsets = Cost{}, Value{}, nil
	view, ok := n.Op.(Viewer)
	if !ok {
		if !n.Leaf() {
			n.cost = n.Op.Cost(types, n.Out)
		}
		return
	}
	root, start := n.In[0].Resolve()
	n.root, n.offsets = root, make([]int64, len(n.Out))
	for i, off := range view.View(types, n.Out) {
		n.offsets[i] = start + off
	}
}
