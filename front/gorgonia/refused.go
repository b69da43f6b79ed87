package gorgonia

import (
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"
)

// Refusal is an operation that gomem cannot honour.
type Refusal struct {
	Op    string   // what Gorgonia calls it
	Why   string   // and what would work
	Nodes []string // that have it, by their names and numbers
}

// ErrRefused lists everything of a graph that gomem cannot honour.
type ErrRefused struct{ Refusals []Refusal }

// Error is one line.
func (e *ErrRefused) Error() string {
	var list []string
	for _, r := range e.Refusals {
		list = append(list, fmt.Sprintf("%s (%s): %s", r.Op, strings.Join(r.Nodes, ", "), r.Why))
	}
	return "gomem has not all that the graph has: " + strings.Join(list, "; ")
}

// add notes a node that is refused.
func (e *ErrRefused) add(n *G.Node, why string) {
	op, node := "input", fmt.Sprintf("%s, node %d", n.Name(), n.ID())
	if n.Op() != nil {
		op = n.Op().String()
	}
	i := slices.IndexFunc(e.Refusals, func(r Refusal) bool { return r.Op == op && r.Why == why })
	if i < 0 {
		e.Refusals = append(e.Refusals, Refusal{Op: op, Why: why, Nodes: []string{node}})
		return
	}
	e.Refusals[i].Nodes = append(e.Refusals[i].Nodes, node)
}

// refusal is the error of a maker that cannot honour its node.
type refusal string

// Error is why.
func (r refusal) Error() string { return string(r) }
