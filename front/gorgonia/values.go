package gorgonia

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// elementOf is an element type of Gorgonia in gomem; false if gomem has none.
func elementOf(d tensor.Dtype) (graph.DType, bool) {
	e, ok := map[string]graph.DType{
		"float32": graph.F32, "float64": graph.F64, "bool": graph.Bool, "uint8": graph.U8,
		"int": graph.I64, "int64": graph.I64, "int32": graph.I32,
	}[d.String()]
	return e, ok
}

// typeOf is the type of a node's value.
func typeOf(n *G.Node) (graph.Type, error) {
	d, ok := elementOf(n.Dtype())
	if !ok {
		return graph.Type{}, refusal(fmt.Sprintf("elements of %s; there are f32, f64, integers "+
			"and truth values", n.Dtype()))
	}
	return graph.Of(d, n.Shape()...), nil
}

// tensorOf is a copy of the value that a node has, which is to be of a type.
func tensorOf(n *G.Node, want graph.Type) (gomem.Tensor, error) {
	v := n.Value()
	if v == nil {
		return gomem.Tensor{}, fmt.Errorf("node %s has no value: give it one by G.Let, "+
			"G.WithValue or G.WithInit", n.Name())
	}
	t, err := copied(v)
	switch {
	case err != nil:
		return t, fmt.Errorf("node %s: %w", n.Name(), err)
	case t.Type.DType != want.DType || !slices.Equal(t.Type.Sizes(), want.Sizes()):
		return t, fmt.Errorf("node %s has a value %s, want %s", n.Name(), t.Type, want)
	}
	return t, nil
}

// copied is a value of Gorgonia in gomem.
func copied(v G.Value) (gomem.Tensor, error) {
	data := v.Data()
	if d, ok := v.(*tensor.Dense); ok && d.RequiresIterator() {
		data = d.Materialize().Data()
	} else if ok && d.DataOrder().IsColMajor() {
		return gomem.Tensor{}, fmt.Errorf("its values are stored by columns: store them by rows")
	}
	sizes := v.Shape()
	switch x := data.(type) {
	case []float32:
		return gomem.F32(x, sizes...)
	case float32:
		return gomem.F32([]float32{x}, sizes...)
	case []float64:
		return gomem.F64(x, sizes...)
	case float64:
		return gomem.F64([]float64{x}, sizes...)
	case []int:
		return gomem.I64(wide(x), sizes...)
	case int:
		return gomem.I64([]int64{int64(x)}, sizes...)
	case []int64:
		return gomem.I64(x, sizes...)
	case []int32:
		return gomem.I32(x, sizes...)
	case []uint8:
		return gomem.U8(x, sizes...)
	case []bool:
		return gomem.Bool(x, sizes...)
	}
	return gomem.Tensor{}, fmt.Errorf("its value is a %T", data)
}

// wide are integers as such of 64 bits.
func wide(x []int) []int64 {
	out := make([]int64, len(x))
	for i, n := range x {
		out[i] = int64(n)
	}
	return out
}

// valueOf is a copy of a tensor of gomem as a value of Gorgonia's element type d.
func valueOf(t gomem.Tensor, d tensor.Dtype) G.Value {
	sizes := t.Type.Sizes()
	switch t.Type.DType {
	case graph.F32:
		return made(t.F32(), sizes, func(x float32) G.Value { return G.NewF32(x) })
	case graph.F64:
		return made(t.F64(), sizes, func(x float64) G.Value { return G.NewF64(x) })
	case graph.Bool:
		return made(t.Bool(), sizes, func(x bool) G.Value { return G.NewB(x) })
	case graph.I32:
		return made(t.I32(), sizes, func(x int32) G.Value { return G.NewI32(x) })
	case graph.U8:
		return made(t.U8(), sizes, func(x uint8) G.Value { return G.NewU8(x) })
	}
	if d == tensor.Int {
		return made(narrow(t.I64()), sizes, func(x int) G.Value { return G.NewI(x) })
	}
	return made(t.I64(), sizes, func(x int64) G.Value { return G.NewI64(x) })
}

// made is a value with the given sizes, of which none make a scalar.
func made[T any](x []T, sizes []int, scalar func(T) G.Value) G.Value {
	if len(sizes) == 0 {
		return scalar(x[0])
	}
	return tensor.New(tensor.WithShape(sizes...), tensor.WithBacking(slices.Clone(x)))
}

// narrow are integers as int, which has 64 bits where gomem runs.
func narrow(x []int64) []int {
	out := make([]int, len(x))
	for i, n := range x {
		out[i] = int(n)
	}
	return out
}

// give has a node hold a tensor, in the memory that it has if it can, so that who holds its value
// sees the new one, as after a step of a solver.
func give(n *G.Node, t gomem.Tensor) error {
	if d, ok := n.Value().(*tensor.Dense); ok && !d.RequiresIterator() && fill(d, t) {
		return nil
	}
	return G.UnsafeLet(n, valueOf(t, n.Dtype()))
}

// fill writes a tensor over one of Gorgonia's that has floating-point numbers.
func fill(d *tensor.Dense, t gomem.Tensor) bool {
	switch x := d.Data().(type) {
	case []float32:
		copy(x, t.F32())
	case []float64:
		copy(x, t.F64())
	default:
		return false
	}
	return true
}
