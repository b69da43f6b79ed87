package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// apply makes a node with one result.
func apply(op graph.Op, in ...graph.Value) graph.Value {
	n := graph.Apply(op, in...)
	if n == nil {
		return graph.Value{}
	}
	return n.Value(0)
}

// applyN makes a node with several results. If it cannot be made, so many zero
// values stand for them.
func applyN(results int, op graph.Op, in ...graph.Value) []graph.Value {
	n := graph.Apply(op, in...)
	if n == nil {
		return make([]graph.Value, results)
	}
	out := make([]graph.Value, len(n.Out))
	for i := range out {
		out[i] = n.Value(i)
	}
	return out
}

// none is the gradient list of an operation with k operands and no gradient.
func none(k int) []graph.Value { return make([]graph.Value, k) }

// arity checks the number of operands.
func arity(in []graph.Type, want int) error {
	if len(in) != want {
		return fmt.Errorf("want %d operands, have %d", want, len(in))
	}
	return nil
}

// want checks the number of operands and their element types.
func want(in []graph.Type, dtypes ...graph.DType) error {
	if err := arity(in, len(dtypes)); err != nil {
		return err
	}
	for i, d := range dtypes {
		if in[i].DType != d {
			return fmt.Errorf("operand %d is %s, want %s%s", i, in[i], d, convertible(in[i], d))
		}
	}
	return nil
}

// convertible is what an error adds about an operand of type t that should have another
// element type: nothing if it has it.
func convertible(t graph.Type, d graph.DType) string {
	if t.DType == d {
		return ""
	}
	return ": convert it with Cast"
}

// bytes is the traffic of an operation that reads and writes everything once.
func bytes(in, out []graph.Type) int64 {
	var n int64
	for _, t := range in {
		n += t.Bytes()
	}
	for _, t := range out {
		n += t.Bytes()
	}
	return n
}

// streaming is the cost of an operation that reads and writes everything once
// and spends flops on every element of result 0.
func streaming(in, out []graph.Type, flops int64) graph.Cost {
	return graph.Cost{FLOPs: flops * int64(out[0].Elems()), Bytes: bytes(in, out)}
}

// farBytes is the size from which a result bypasses the caches: half of the last
// level's usual size. A smaller one may still be there when it is read.
const farBytes = 16 << 20

// far reports whether result 0 is that large. It depends on the shape alone, and
// does not affect bits.
func far(c *kernel.Call) bool { return len(c.Out[0].Data) >= farBytes }

// farther has the vector primitives for such results.
var farther = vec.Far()

// grain is the least number of elements worth handing to another thread.
const grain = 1 << 14
