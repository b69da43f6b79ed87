package ops

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
)

// maxRank is the largest rank that an attribute can hold.
const maxRank = 8

// dims is a list of axes as an attribute: comparable, unlike a slice.
type dims struct {
	N int // may exceed maxRank; Infer rejects that
	D [maxRank]graph.Dim
}

func newDims(list []graph.Dim) dims {
	d := dims{N: len(list)}
	copy(d.D[:], list)
	return d
}

func sized(sizes []int) dims {
	list := make([]graph.Dim, len(sizes))
	for i, n := range sizes {
		list[i].Size = n
	}
	return newDims(list)
}

// check rejects lists that are too long or sizes below one.
func (d dims) check() error {
	if d.N > maxRank {
		return fmt.Errorf("%d axes are more than %d", d.N, maxRank)
	}
	return d.typ(graph.F32).Check()
}

func (d dims) typ(t graph.DType) graph.Type {
	return graph.Type{DType: t, Shape: slices.Clone(d.D[:min(d.N, maxRank)])}
}

// String prints sizes and names: "[batch:4 8]".
func (d dims) String() string { return d.typ(graph.F32).String()[len("f32"):] }

// axis turns a possibly negative axis into one in [0, rank), or -1.
func axis(i, rank int) int {
	if i < 0 {
		i += rank
	}
	if i < 0 || i >= rank {
		return -1
	}
	return i
}

// noSecond records that an operation's gradient cannot be differentiated.
func noSecond(n *graph.Node) []graph.Value {
	n.Graph().Fail(fmt.Errorf("%s (%s) has no gradient of its own", n.Name, n.Op.Name()))
	return none(len(n.In))
}
