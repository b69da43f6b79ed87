package program

import (
	"fmt"

	"github.com/gomem/gomem/graph"
)

// DeadCode marks as live what the fetches and the updates depend on: the
// pruning to the fetches that TensorFlow does before it runs a graph. It comes
// first, since a dead use would keep its operands in memory for nobody.
func DeadCode() Pass {
	return Pass{Name: "deadcode", Run: func(p *Program) error {
		roots := append([]graph.NodeID(nil), p.Updates...)
		for _, v := range p.Fetches {
			switch {
			case !v.Valid():
				return fmt.Errorf("a fetch is no value")
			case v.Graph() != p.Graph:
				return fmt.Errorf("fetch %s belongs to another graph", v)
			}
			if root, _ := v.Resolve(); root.Node.Leaf() {
				return fmt.Errorf("fetch %s is a %s: only computed values can be fetched", v,
					root.Node.Kind)
			}
			roots = append(roots, v.Node.ID)
		}
		p.Live = p.Graph.Ancestors(roots)
		return nil
	}}
}
