package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// Operations on bits are of integers of one element type; operands broadcast, and nothing here
// has a gradient.

// BitAnd is the bits that both have.
func BitAnd(a, b graph.Value) graph.Value { return apply(numeric{bitwise{bitAnd}}, a, b) }

// BitOr is the bits that one of two has, or both.
func BitOr(a, b graph.Value) graph.Value { return apply(numeric{bitwise{bitOr}}, a, b) }

// BitXor is the bits that exactly one of two has.
func BitXor(a, b graph.Value) graph.Value { return apply(numeric{bitwise{bitXor}}, a, b) }

// BitNot is the bits that a has not.
func BitNot(a graph.Value) graph.Value { return apply(numeric{bitwise{bitNot}}, a) }

// ShiftLeft is a with its bits b places further up; 0 where b is below 0 or as large as there are
// bits.
func ShiftLeft(a, b graph.Value) graph.Value { return apply(numeric{bitwise{shiftLeft}}, a, b) }

// ShiftRight is a with its bits b places further down, and its sign above them: −1 or 0 where b is
// below 0 or as large as there are bits.
func ShiftRight(a, b graph.Value) graph.Value { return apply(numeric{bitwise{shiftRight}}, a, b) }

type bitKind uint8

const (
	bitAnd bitKind = iota
	bitOr
	bitXor
	shiftLeft
	shiftRight
	bitNot
	numBits
)

// bitwise is what [numeric] does with bits.
type bitwise struct{ Kind bitKind }

func (o bitwise) Name() string {
	return [...]string{"bit-and", "bit-or", "bit-xor", "shift-left", "shift-right",
		"bit-not"}[o.Kind]
}

func (o bitwise) operands() int {
	if o.Kind == bitNot {
		return 1
	}
	return 2
}

// BitCast is x's bits as elements of another type of the same size, but not of bool: a view.
func BitCast(x graph.Value, to graph.DType) graph.Value {
	if x.Valid() && x.Type().DType == to {
		return x
	}
	return apply(bitCast{To: to}, x)
}

type bitCast struct{ To graph.DType }

func (bitCast) Name() string { return "bit-cast" }

func (o bitCast) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	if from := in[0].DType; o.To.Size() != from.Size() || o.To == graph.Bool && from != graph.Bool {
		return nil, fmt.Errorf("bits of %s are not those of %s: want a type of its size, or "+
			"convert it with Cast", in[0], o.To)
	}
	return []graph.Type{{DType: o.To, Shape: in[0].Shape}}, nil
}

func (bitCast) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{} }

// View: the same bytes.
func (bitCast) View(_, _ []graph.Type) []int64 { return []int64{0} }

func (bitCast) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

// Split is along all axes.
func (bitCast) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

func init() {
	for _, d := range tensor.DTypes() {
		if !d.Integer() {
			continue
		}
		for k := range numBits {
			o := numeric{bitwise{k}}
			in := []graph.Type{tensor.Of(d, 3, 5), tensor.Of(d, 5)}[:o.operands()]
			register(Sample{Op: o, In: in, NoGrad: []int{0, 1}[:len(in)]})
		}
	}
	register(Sample{Op: bitCast{graph.U32}, In: []graph.Type{tensor.Of(graph.F32, 3, 5)},
		NoGrad: []int{0}})
}
