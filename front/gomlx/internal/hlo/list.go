package hlo

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/custom"
	"github.com/gomem/gomem/graph/tensor"
)

// maxRank is the most axes that an attribute can hold.
const maxRank = 8

// list is numbers, one for each of some axes, as an attribute of an operation: comparable.
type list struct {
	N  int // may exceed maxRank; check rejects that
	At [maxRank]int
}

func listOf(x []int) list {
	l := list{N: len(x)}
	copy(l.At[:], x)
	return l
}

// of are the numbers.
func (l *list) of() []int { return l.At[:min(l.N, maxRank)] }

// check rejects more numbers than a list holds.
func check(lists ...list) error {
	for _, l := range lists {
		if l.N > maxRank {
			return fmt.Errorf("%d axes: there may be %d", l.N, maxRank)
		}
	}
	return nil
}

// noGradient is embedded by the operations, none of which has one.
type noGradient struct{}

func (noGradient) VJP(n *graph.Node, _ []graph.Value) []graph.Value {
	return make([]graph.Value, len(n.In))
}

// streaming is embedded by operations that do little for each element that they read and write.
type streaming struct{ noGradient }

func (streaming) Cost(in, out []graph.Type) graph.Cost {
	var c graph.Cost
	for _, t := range slices.Concat(in, out) {
		c.Bytes += t.Bytes()
		c.FLOPs += int64(t.Elems())
	}
	return c
}

// apply is result 0 of an operation on operands, or no value after an error of the graph.
func apply(op graph.Op, in ...graph.Value) graph.Value { return result(graph.Apply(op, in...)) }

func result(n *graph.Node) graph.Value {
	if n == nil {
		return graph.Value{}
	}
	return n.Value(0)
}

// operands rejects another number of operands.
func operands(in []graph.Type, n int) error {
	if len(in) != n {
		return fmt.Errorf("%d operands, want %d", len(in), n)
	}
	return check(list{N: rank(in)})
}

// rank is the most axes of operands.
func rank(in []graph.Type) int {
	most := 0
	for _, t := range in {
		most = max(most, t.Rank())
	}
	return most
}

// strides are how many units one step along each axis is, the last of which is one unit.
func strides(t tensor.Type, unit int) (s [maxRank]int) {
	for i := t.Rank() - 1; i >= 0; i-- {
		s[i] = unit
		unit *= t.Size(i)
	}
	return s
}

// odometer goes through all indices below sizes, the last axis first.
type odometer struct {
	sizes []int
	at    [maxRank]int
}

// next goes to the next index; false after the last.
func (o *odometer) next() bool {
	for i := len(o.sizes) - 1; i >= 0; i-- {
		if o.at[i]++; o.at[i] < o.sizes[i] {
			return true
		}
		o.at[i] = 0
	}
	return false
}

// seek goes to the n-th index.
func (o *odometer) seek(n int) {
	for i := len(o.sizes) - 1; i >= 0; i-- {
		o.at[i] = n % o.sizes[i]
		n /= o.sizes[i]
	}
}

// grain is how many elements are worth a thread.
const grain = 4096

// move copies a block of elements of so many bytes each: dst from d on and src from s on, whose
// axes have these strides, all in bytes.
func move(dst, src []byte, d, s, bytes int, sizes, ds, ss []int) {
	switch {
	case len(sizes) == 0:
		copy(dst[d:d+bytes], src[s:s+bytes])
	case len(sizes) == 1 && ds[0] == bytes && ss[0] == bytes:
		n := bytes * sizes[0]
		copy(dst[d:d+n], src[s:s+n])
	default:
		for i := range sizes[0] {
			move(dst, src, d+i*ds[0], s+i*ss[0], bytes, sizes[1:], ds[1:], ss[1:])
		}
	}
}

func init() {
	custom.Register(iotaCPU)
	custom.Register(padCPU)
	custom.Register(reinterpretCPU)
	custom.Register(foldCPU)
	custom.Register(dotCPU)
	custom.Register(convolveCPU)
	custom.Register(windowCPU)
	custom.Register(selectCPU)
	custom.Register(gatherCPU)
	custom.Register(scatterCPU)
	custom.Register(countCPU)
	custom.Register(randomCPU)
	custom.Register(wideCPU)
}
