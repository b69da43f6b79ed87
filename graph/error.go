package graph

import (
	"fmt"
	"strings"
)

// Error is a mistake in building a graph, with where the model made it.
type Error struct {
	Node string // name of the node that could not be made, "" for a mistake of the model
	Op   string // its operation
	Pos  string // file:line in the model
	In   []Type // types of its operands
	Err  error
}

// Error is one line: node, operation, operand types, cause, place.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Node != "" {
		b.WriteString(e.Node + ": ")
	}
	b.WriteString(e.Op + "[")
	for i, t := range e.In {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t.String())
	}
	fmt.Fprintf(&b, "]: %v", e.Err)
	if e.Pos != "" {
		fmt.Fprintf(&b, " (%s)", e.Pos)
	}
	return b.String()
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }
