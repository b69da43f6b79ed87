package gbt

// Node is one of a tree's: a leaf with a value, or a question with two nodes below it.
type Node struct {
	Feature int32   // whose value is asked for; -1: this is a leaf
	Limit   float32 // values up to this one go left
	Value   float32 // of a leaf
}

// Tree is its nodes: 0 is the root, and below node i are 2i+1, to the left, and 2i+2.
type Tree []Node

// nodes is how many a tree of a depth may have.
func nodes(depth int) int { return 2<<depth - 1 }

// newTree is one leaf.
func newTree(depth int) Tree {
	t := make(Tree, nodes(depth))
	for i := range t {
		t[i].Feature = -1
	}
	return t
}

// At is the value of the leaf that a sample comes to; value is that of a feature of its.
func (t Tree) At(value func(feature int32) float32) float32 {
	i := 0
	for t[i].Feature >= 0 {
		if value(t[i].Feature) <= t[i].Limit {
			i = 2*i + 1
		} else {
			i = 2*i + 2
		}
	}
	return t[i].Value
}

// Forest is what is learnt: a number, and trees whose values are added to it.
type Forest struct {
	Base  float32
	Trees []Tree
}
