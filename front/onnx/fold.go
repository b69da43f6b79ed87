package onnx

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/reference"
)

// mostFolded is how large the results of a node may be, in bytes, that is executed while the
// network is built: shapes and indices are small, and what is large is the plan's to place.
const mostFolded = 1 << 20

// fold executes a node all of whose operands are known, and reports whether it did.
func (n *node) fold(op operator) bool {
	if op.random || len(n.in) == 0 {
		return false
	}
	for _, o := range n.in {
		if o.known == nil && !o.absent() {
			return false
		}
	}
	outer, g := n.b.g, graph.New()
	n.b.g = g
	defer func() {
		n.b.g = outer
		if err := g.Err(); err != nil {
			fail("%w", err)
		}
	}()
	op.build(n)
	values, at, size := []graph.Value(nil), []int(nil), int64(0)
	for i, o := range n.out {
		if o.value.Valid() {
			values, at = append(values, o.value), append(at, i)
			size += o.value.Type().Bytes()
		}
	}
	if size > mostFolded {
		n.out = nil
		return false
	}
	data, err := reference.Values(g, values...)
	if err != nil {
		fail("%w", err)
	}
	for i, v := range data {
		n.out[at[i]] = operand{known: &v}
	}
	return true
}
