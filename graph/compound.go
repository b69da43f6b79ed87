package graph

// Compound is implemented by operations that stand for several, as fusion makes
// them.
type Compound interface {
	// Operations is for how many.
	Operations() int
}

// Operations is for how many operations a node with an operation stands: one,
// unless it is a [Compound]. Whatever is measured in operations (the size of a
// partition, how far copies run ahead) means the same in a graph and in one fused
// from it.
func (n *Node) Operations() int {
	if c, ok := n.Op.(Compound); ok {
		return c.Operations()
	}
	return 1
}
