// Package kernel is the registry of compute kernels: for a kind of device and
// the Go type of an operation, the function that computes it on raw memory.
//
// The registry is keyed by type, so an operation's file registers its kernel
// without a string key, and this package need not know graphs. Registration
// happens in init functions and is over when main starts; look-ups after that
// need no lock. The loops themselves are in the subpackages: gemm for matrix
// products, vec for vector primitives, pool for threads.
package kernel

import (
	"fmt"
	"reflect"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// Kind names a kind of device.
type Kind string

// CPU is the reference device.
const CPU Kind = "cpu"

// Call is one launch: operands, results and what else a kernel may touch. In
// and Out are in the order of the node; operands that an update writes are in
// In. A kernel touches nothing else and allocates nothing that grows with its
// operands: that memory is Scratch, of the size its Cost declared.
type Call struct {
	In, Out []tensor.View
	Scratch []byte
	Pool    *pool.Pool // nil: one thread
}

// Func computes an operation on a device.
type Func func(op any, c *Call) error

type key struct {
	kind Kind
	op   reflect.Type
}

var registry = map[key]Func{}

// Register enters the kernel of operations of type O for a kind of device. It
// is called from init functions and panics on a second registration. The kernel is not
// called where all results are without elements; operands may be.
func Register[O any](k Kind, fn func(O, *Call) error) {
	id := key{k, reflect.TypeFor[O]()}
	if _, ok := registry[id]; ok {
		panic(fmt.Sprintf("kernel: %v registered twice for %s", id.op, k))
	}
	registry[id] = func(op any, c *Call) error {
		if c.empty() {
			return nil
		}
		return fn(op.(O), c)
	}
}

// empty reports whether a call has results, but none of them an element: then there is
// nothing to compute, and kernels need not think of it.
func (c *Call) empty() bool {
	for _, v := range c.Out {
		if len(v.Data) > 0 {
			return false
		}
	}
	return len(c.Out) > 0
}

// Lookup finds the kernel of an operation.
func Lookup(k Kind, op any) (Func, error) {
	fn, ok := registry[key{k, reflect.TypeOf(op)}]
	if !ok {
		return nil, fmt.Errorf("no %s kernel for %T", k, op)
	}
	return fn, nil
}
