package graph

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/gomem/gomem/internal/count"
)

// WriteTo prints one node a line: ID, phase, name, operation with attributes,
// operands, result types, model line.
func (g *Graph) WriteTo(w io.Writer) (int64, error) {
	b := count.NewWriter(w)
	for _, n := range g.nodes {
		fmt.Fprintf(b, "%5d %-8s %s = %s", n.ID, n.Phase, n.Name, n.OpName())
		if n.Op != nil {
			fmt.Fprintf(b, "%+v", n.Op)
		}
		fmt.Fprintf(b, "(%s)", list(n.In))
		for _, t := range n.Out {
			fmt.Fprintf(b, " %s", t)
		}
		if n.Pos != "" {
			fmt.Fprintf(b, "  # %s", n.Pos)
		}
		fmt.Fprintln(b)
	}
	return b.Done()
}

// WriteDot prints the graph in Graphviz's language.
func (g *Graph) WriteDot(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "digraph gomem {\n  node [shape=box fontname=monospace];")
	for _, n := range g.nodes {
		fmt.Fprintf(b, "  n%d [label=%q];\n", n.ID,
			fmt.Sprintf("%s\n%s %v", n.Name, n.OpName(), n.Out))
		for i, v := range n.In {
			style := ""
			if i < n.Mutates {
				style = " [dir=both]"
			}
			fmt.Fprintf(b, "  n%d -> n%d%s;\n", v.Node.ID, n.ID, style)
		}
	}
	fmt.Fprintln(b, "}")
	return b.Flush()
}

// list prints values with spaces between them.
func list(vs []Value) string {
	words := make([]string, len(vs))
	for i, v := range vs {
		words[i] = v.String()
	}
	return strings.Join(words, " ")
}
