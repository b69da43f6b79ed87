package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Full is a value of type t with every element the same: the given one as [Cast] makes it of f32.
func Full(g *graph.Graph, t graph.Type, value float32) graph.Value {
	if t.DType != graph.F32 && t.DType.Size() > 0 {
		return BroadcastTo(scalarOf(g, t.DType, float64(value)), t.Sizes()...)
	}
	if t.DType != graph.F32 {
		g.Fail(fmt.Errorf("filled value of type %s, want an element type", t))
		return graph.Value{}
	}
	n := g.Apply(fill{Value: value, Shape: newDims(t.Shape)})
	if n == nil {
		return graph.Value{}
	}
	return n.Value(0)
}

// scalar is a number of the element type of a value.
func scalar(like graph.Value, x float64) graph.Value {
	if d := like.Type().DType; d != graph.F32 {
		return scalarOf(like.Graph(), d, x)
	}
	return Full(like.Graph(), tensor.Of(graph.F32), float32(x))
}

// scalarOf is a constant.
func scalarOf(g *graph.Graph, d graph.DType, x float64) graph.Value {
	v := tensor.New(tensor.Of(graph.F64))
	v.F64()[0] = x
	return g.Constant("number", v.As(d))
}

// Ones is Full with 1.
func Ones(g *graph.Graph, t graph.Type) graph.Value { return Full(g, t, 1) }

// Zeros is Full with 0.
func Zeros(g *graph.Graph, t graph.Type) graph.Value { return Full(g, t, 0) }

// fill needs no operand.
type fill struct {
	Value float32
	Shape dims
}

func (fill) Name() string { return "fill" }

func (f fill) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 0); err != nil {
		return nil, err
	}
	if err := f.Shape.check(); err != nil {
		return nil, err
	}
	return []graph.Type{f.Shape.typ(graph.F32)}, nil
}

func (fill) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (fill) VJP(*graph.Node, []graph.Value) []graph.Value { return nil }

func fillCPU(f fill, c *kernel.Call) error {
	out := c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) { repeat(out[lo:hi], f.Value) })
	return nil
}

func init() {
	kernel.Register(kernel.CPU, fillCPU)
	register(Sample{Op: fill{Value: 2.5, Shape: sized([]int{3, 5})}},
		Sample{Op: fill{Value: 1, Shape: newDims(tensor.Of(graph.F32).Shape)}})
}
