package custom_test

import (
	"context"
	"fmt"
	"math"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/custom"
	"github.com/gomem/gomem/graph/ops"
)

// lisht is x·tanh(x) (Roy et al. 2019).
type lisht struct{}

// LiSHT applies it to f32 of any shape.
func LiSHT(x graph.Value) graph.Value {
	n := graph.Apply(lisht{}, x)
	if n == nil {
		return graph.Value{} // the graph has the error
	}
	return n.Value(0)
}

func (lisht) Name() string { return "lisht" }

func (lisht) Infer(in []graph.Type) ([]graph.Type, error) {
	if len(in) != 1 || in[0].DType != graph.F32 {
		return nil, fmt.Errorf("operands are %v, want one of f32", in)
	}
	return in[:1:1], nil
}

func (lisht) Cost(in, _ []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: 20 * int64(in[0].Elems()), Bytes: 2 * in[0].Bytes()}
}

// InPlace: every element depends on its own operand alone.
func (lisht) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP: d·(tanh x + x·(1 − tanh² x)).
func (lisht) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x := n.In[0]
	y := ops.Tanh(x)
	slope := ops.Add(y, ops.Mul(x, ops.AddScalar(ops.Neg(ops.Square(y)), 1)))
	return []graph.Value{ops.Mul(dout[0], slope)}
}

func lishtOf(x float32) float32 { return x * float32(math.Tanh(float64(x))) }

func lishtCPU(_ lisht, c *custom.Call) error {
	x, y := c.In[0].F32(), c.Out[0].F32()
	c.For(len(y), 1<<12, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i] = lishtOf(x[i])
		}
	})
	return nil
}

// lishtGPU is the same on a GPU.
const lishtGPU = `
extern "C" __global__ void lisht(float *y, const float *x, i64 n) {
	EACH(i, n) y[i] = x[i] * tanhf(x[i]);
}
`

func launchLisht(_ lisht, c *custom.GPUCall) ([]custom.Launch, error) {
	n := c.In[0].Type.Elems()
	return []custom.Launch{{Kernel: "lisht", Grid: [3]uint32{uint32(n/256 + 1), 1, 1},
		Block: [3]uint32{256, 1, 1}, Args: []any{c.Out[0], c.In[0], int64(n)}}}, nil
}

func init() {
	custom.Register(lishtCPU)
	custom.RegisterGPU(lishtGPU, launchLisht)
}

// Example trains a layer with an operation of its own, within a budget.
func Example() {
	ctx, g := context.Background(), graph.New()
	x := g.Input("x", graph.Of(graph.F32, 256, 64))
	w := g.Variable("w", graph.Of(graph.F32, 64, 64), graph.Init{Dist: graph.Normal, Scale: 0.1})
	loss := ops.Mean(ops.Square(LiSHT(ops.MatMul(x, w))))
	ops.SGD(w, autodiff.Grad(loss, w)[0], ops.Full(g, graph.Of(graph.F32), 0.05))
	s, err := gomem.Compile(ctx, g, gomem.Options{DeviceBytes: 200 << 10, Policy: "auto"},
		gomem.Training(g, loss))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	in := gomem.NewTensor(x.Type())
	for i := range in.F32() {
		in.F32()[i] = float32(i%7) - 3
	}
	var losses []float32
	for range 20 {
		fetched, err := s.Step(ctx, "train", gomem.Feeds{x: in})
		if err != nil {
			fmt.Println(err)
			return
		}
		losses = append(losses, fetched[0].F32()[0])
	}
	fmt.Println("the loss falls:", losses[19] < losses[0]/2)
	// Output:
	// the loss falls: true
}
