// Package custom lets a program bring operations of its own: beside those of graph/ops, with
// gradients, and under every policy, budget and number of threads with the same bits.
//
// An operation is a comparable struct, whose fields are its attributes, with the methods of
// [graph.Op]: Name, Infer (the shape rule, which rejects operands), Cost and VJP (the gradient,
// made of other operations; zero values where there is none). What it can do besides is a method,
// too: [graph.InPlacer], where the kernel may write over an operand, [graph.Checker] and
// [graph.Splitter]. [Register] gives it a kernel of the CPU, [RegisterGPU] one of NVIDIA GPUs; a
// constructor applies it with [graph.Apply]:
//
//	type triple struct{}
//
//	func Triple(x graph.Value) graph.Value {
//		n := graph.Apply(triple{}, x)
//		if n == nil {
//			return graph.Value{} // the graph has the error
//		}
//		return n.Value(0)
//	}
//
//	func init() { custom.Register(tripleCPU) }
//
// Package opstest has the checks that operations are held to.
//
// # What a kernel owes
//
// All elements of all results are written, and nothing else: operands only where an update says
// so. Results depend on operands alone, not on what memory held, on addresses, nor on the number
// of threads: [Call.For] divides elements of results, and a sum is added up in one order. What
// memory is needed besides is declared in Cost, and given as scratch. A product that is added to
// something is converted first, float32(a*b) + c, if bits are to be those of other processors.
package custom

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// Call is one launch of a kernel of the CPU.
type Call struct {
	In      []tensor.View // the operands, in the order of the node; what an update writes is here
	Out     []tensor.View // the results
	Scratch []byte        // of the size that Cost declared, aligned to 64 bytes
	pool    *pool.Pool
}

// For calls f with ranges that together are 0 to n−1, in parallel where a range has grain
// elements or more: some ten thousand operations.
func (c *Call) For(n, grain int, f func(lo, hi int)) { c.pool.For(n, grain, f) }

// names are the operations of this package by their names.
var names = map[string]reflect.Type{}

// builtin are the names of graph/ops.
var builtin = sync.OnceValue(func() map[string]bool {
	taken := map[string]bool{}
	for _, s := range ops.Samples() {
		taken[s.Op.Name()] = true
	}
	return taken
})

// Register enters the kernel of operations of type O. It is called from init functions, and
// panics where the type is no comparable struct, has a kernel already, or its name, which is that
// of its zero value, is another operation's. The kernel is not called where no result has an
// element. Its error ends the step.
func Register[O graph.Op](fn func(op O, c *Call) error) {
	claim[O]()
	kernel.Register(kernel.CPU, func(op O, c *kernel.Call) error {
		return fn(op, &Call{In: c.In, Out: c.Out, Scratch: c.Scratch, pool: c.Pool})
	})
}

// claim takes the name of an operation.
func claim[O graph.Op]() {
	t := reflect.TypeFor[O]()
	if t.Kind() != reflect.Struct || !t.Comparable() {
		panic(fmt.Sprintf("custom: operation %v is no comparable struct", t))
	}
	var op O
	name := op.Name()
	switch other, ok := names[name]; {
	case name == "":
		panic(fmt.Sprintf("custom: operation %v has no name", t))
	case builtin()[name]:
		panic(fmt.Sprintf("custom: %v is called %q, as an operation of graph/ops is", t, name))
	case ok:
		panic(fmt.Sprintf("custom: %v is called %q, as %v is", t, name, other))
	}
	names[name] = t
}
