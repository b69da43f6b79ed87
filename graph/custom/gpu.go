package custom

import (
	"fmt"
	"reflect"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// Operand is where a value is on a GPU.
type Operand struct {
	Addr uint64 // of its first byte
	Type graph.Type
}

// GPUCall is the operands and results of an operation on a GPU, in the order of the node. Scratch
// is the address of as many bytes as Cost declares.
type GPUCall struct {
	In, Out []Operand
	Scratch uint64
}

// Launch is a launch of a kernel. Arguments are uint64 for an address, [Operand] for its address,
// int64, int32, uint32 and float32, in the order of the kernel's parameters.
type Launch struct {
	Kernel      string
	Grid, Block [3]uint32
	Shared      uint32 // bytes of dynamic shared memory
	Args        []any
}

// RegisterGPU enters what operations of type O are on a GPU: kernels, and what launches them, one
// after the other. The text is CUDA C++ 17 without includes, compiled together with the kernels of
// this module and with --fmad=false; kernels in it are declared by extern "C" __global__ void, and
// have names that begin with the operation's, lest they be another's. An operation without GPU
// kernels is refused where a plan has it there. Bits may be other than the CPU's, so that updates
// which depend on them are made on the host, in every plan.
//
// It is called from init functions, after [Register], and panics on a second registration.
func RegisterGPU[O graph.Op](text string, fn func(op O, c *GPUCall) ([]Launch, error)) {
	t := reflect.TypeFor[O]()
	var op O
	if names[op.Name()] != t {
		panic(fmt.Sprintf("custom: %v has no kernel of the CPU", t))
	}
	cuda.Register(func(op O, c *cuda.Call) ([]cuda.Command, error) {
		launches, err := fn(op, &GPUCall{operands(c.In), operands(c.Out), c.Scratch})
		if err != nil {
			return nil, err
		}
		return commands(launches)
	}, func(op O, in, out []graph.Type) int64 { return op.Cost(in, out).Scratch })
	cuda.AddSource(text)
}

func operands(list []cuda.Operand) []Operand {
	out := make([]Operand, len(list))
	for i, o := range list {
		out[i] = Operand(o)
	}
	return out
}

// commands are launches as devices take them.
func commands(launches []Launch) ([]cuda.Command, error) {
	var list []cuda.Command
	for _, l := range launches {
		args, err := packed(l)
		if err != nil {
			return nil, err
		}
		list = append(list, cuda.Kernel{Name: l.Kernel, Grid: l.Grid, Block: l.Block,
			Shared: l.Shared, Args: args})
	}
	return list, nil
}

// packed are arguments as a kernel takes them.
func packed(l Launch) (a cuda.Args, err error) {
	for i, x := range l.Args {
		switch v := x.(type) {
		case Operand:
			a = cuda.Add(a, v.Addr)
		case uint64:
			a = cuda.Add(a, v)
		case int64:
			a = cuda.Add(a, v)
		case int32:
			a = cuda.Add(a, v)
		case uint32:
			a = cuda.Add(a, v)
		case float32:
			a = cuda.Add(a, v)
		default:
			return nil, fmt.Errorf("argument %d of kernel %s is a %T: want uint64, Operand, "+
				"int64, int32, uint32 or float32", i, l.Kernel, x)
		}
	}
	return a, nil
}
