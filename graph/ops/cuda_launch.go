package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// The files cuda_*.go say what operations are on a GPU: for each, the commands that compute it.
// They stand beside the operations, whose types are nobody else's business, and need no driver:
// a command is data. Kernels are in internal/kernel/cuda/*.cu.
//
// A kernel cannot report an error. What [graph.Checker] refuses is refused where it is fed;
// besides, kernels neither read nor write outside a table: what they would take from there is
// not a number, and what they would add there is left out.

// threads is the threads of a block.
const threads = 256

// maxBlocks bounds the blocks of kernels whose threads take more than one element.
const maxBlocks = 1 << 16

// packed is arguments as a kernel takes them: an address, a number of 64 bits for an int, or
// one of 32.
func arguments(list ...any) cuda.Args {
	var a cuda.Args
	for _, x := range list {
		switch v := x.(type) {
		case cuda.Operand:
			a = cuda.Add(a, v.Addr)
		case uint64:
			a = cuda.Add(a, v)
		case int:
			a = cuda.Add(a, int64(v))
		case int32:
			a = cuda.Add(a, v)
		case uint32:
			a = cuda.Add(a, v)
		case float32:
			a = cuda.Add(a, v)
		case bool:
			a = cuda.Add(a, int32(flag(v)))
		default:
			panic(fmt.Sprintf("ops: %T is no argument of a kernel", x))
		}
	}
	return a
}

// flag is 1 for true.
func flag(v bool) int {
	if v {
		return 1
	}
	return 0
}

// overElements launches a thread for each of n elements.
func overElements(name string, n int, list ...any) cuda.Kernel {
	return launched(name, (n+threads-1)/threads, list...)
}

// launched launches so many blocks, or as many as there may be.
func launched(name string, blocks int, list ...any) cuda.Kernel {
	return cuda.Kernel{Name: name, Grid: [3]uint32{uint32(max(1, min(blocks, maxBlocks))), 1, 1},
		Block: [3]uint32{threads, 1, 1}, Args: arguments(list...)}
}

// longRow is the length from which a row has a block to itself rather than a warp.
const longRow = 1024

// overRows launches a team for each of so many rows; the kernel's last argument says whether a
// team is a block.
func overRows(name string, rows, length int, list ...any) cuda.Command {
	if length >= longRow {
		return launched(name, rows, append(list, true)...)
	}
	return overWarps(name, rows, append(list, false)...)
}

// overWarps launches a warp for each of so many rows.
func overWarps(name string, rows int, list ...any) cuda.Command {
	return launched(name, (rows*32+threads-1)/threads, list...)
}

// only is the only command of an operation.
func only(c cuda.Command) ([]cuda.Command, error) { return []cuda.Command{c}, nil }

// elems are the elements of an operand.
func elems(o cuda.Operand) int { return o.Type.Elems() }

// size is the bytes of an operand's elements.
func size(o cuda.Operand) int32 { return int32(o.Type.DType.Size()) }

// typesOf are the operands' types.
func typesOf(list []cuda.Operand) []graph.Type {
	types := make([]tensor.Type, len(list))
	for i, o := range list {
		types[i] = o.Type
	}
	return types
}
