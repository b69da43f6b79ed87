package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Full is an f32 value of type t with every element the same.
func Full(g *graph.Graph, t graph.Type, value float32) graph.Value {
	if t.DType != graph.F32 {
		g.Fail(fmt.Errorf("filled value of type %s, want f32", t))
		return graph.Value{}
	}
	n := g.Apply(fill{Value: value, Shape: newDims(t.Shape)})
	if n == nil {
		return graph.Value{}
	}
	return n.Value(0)
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
