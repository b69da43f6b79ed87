package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// LogSumExp is log Σ eˣ over some axes, all of them if none are given, which are
// dropped; computed without overflow. It is −Inf where all are, of no elements too, and
// +Inf where one is.
func LogSumExp(x graph.Value, axes ...int) graph.Value {
	x, lo, hi := together(x, axes)
	if lo == hi {
		return x
	}
	if hi < x.Type().Rank() {
		x = lastly(x, axesFrom(lo, hi))
	}
	shape := x.Type().Shape
	kept := len(shape) - (hi - lo)
	row := graph.Dim{Size: graph.Type{Shape: shape[kept:]}.Elems()}
	return apply(logSumExp{}, Reshape(x, append(shape[:kept:kept], row)...))
}

// logSumExp is over the last axis.
type logSumExp struct{}

func (logSumExp) Name() string { return "log-sum-exp" }

func (logSumExp) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32); err != nil {
		return nil, err
	}
	if in[0].Rank() == 0 {
		return nil, fmt.Errorf("%s has no rows of elements", in[0])
	}
	out, err := dropped(in[0], in[0].Rank()-1, in[0].Rank())
	return []graph.Type{out}, err
}

func (logSumExp) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: 12 * int64(in[0].Elems()), Bytes: bytes(in, out)}
}

// VJP: the share of each element is its softmax.
func (logSumExp) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x := n.In[0]
	return []graph.Value{Mul(Softmax(x), ExpandDims(dout[0], -1))}
}

// Cut is between rows.
func (logSumExp) Cut(in, out []graph.Type) (graph.Cut, bool) {
	return cutRows(in, out, out[0].Rank())
}

// Part is the operation itself.
func (o logSumExp) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

func logSumExpCPU(_ logSumExp, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	n := c.In[0].Type.Size(-1)
	if n == 0 {
		for i := range out {
			out[i] = float32(math.Inf(-1))
		}
		return nil
	}
	rows(c, len(x), n, func(lo, hi int) {
		most, rest := vec.LogSumExp(x[lo:hi])
		if out[lo/n] = most; !math.IsInf(float64(most), 0) {
			out[lo/n] = most + rest
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, logSumExpCPU)
	for _, sizes := range [][]int{{3, 17}, {2, 3, 5}, {1}} {
		register(Sample{Op: logSumExp{}, In: []graph.Type{tensor.Of(graph.F32, sizes...)},
			Second: true})
	}
}
