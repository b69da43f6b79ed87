package graph

import (
	"bufio"
	"fmt"
	"io"
)

// WriteTo prints one node a line: ID, phase, name, operation with attributes,
// operands, result types, model line.
func (g *Graph) WriteTo(w io.Writer) (int64, error) {
	b := &countingWriter{w: bufio.NewWriter(w)}
	for _, n := range g.nodes {
		fmt.Fprintf(b, "%5d %-8s %s = %s", n.ID, n.Phase, n.Name, n.OpName())
		if n.Op != nil {
			fmt.Fprintf(b, "%+v", n.Op)
		}
		b.list("(", n.In, ")")
		for _, t := range n.Out {
			fmt.Fprintf(b, " %s", t)
		}
		if n.Pos != "" {
			fmt.Fprintf(b, "  # %s", n.Pos)
		}
		fmt.Fprintln(b)
	}
	return b.n, b.w.Flush()
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

type countingWriter struct {
	w *bufio.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (c *countingWriter) list(open string, vs []Value, end string) {
	fmt.Fprint(c, open)
	for i, v := range vs {
		if i > 0 {
			fmt.Fprint(c, " ")
		}
		fmt.Fprint(c, v)
	}
	fmt.Fprint(c, end)
}
