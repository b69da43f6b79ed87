package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Softmax is eˣ divided by its sum over the last axis.
func Softmax(x graph.Value) graph.Value { return apply(softmax{}, x) }

// MaskedSoftmax is Softmax, but a row of −Inf alone, of which there is no distribution, gives
// zeros and not NaN: a mask has hidden all that there is.
func MaskedSoftmax(x graph.Value) graph.Value { return apply(softmax{Masked: true}, x) }

// LogSoftmax is the logarithm of Softmax, computed without it.
func LogSoftmax(x graph.Value) graph.Value { return apply(softmax{Log: true}, x) }

// softmax is not masked if it is the logarithm.
type softmax struct{ Log, Masked bool }

func (s softmax) Name() string {
	if s.Log {
		return "log-softmax"
	}
	return "softmax"
}

// rowwise infers a result like operand 0 for operations on rows of the last
// axis, all operands of one shape.
func rowwise(in []graph.Type, n int) ([]graph.Type, error) {
	if err := arity(in, n); err != nil {
		return nil, err
	}
	for i, t := range in {
		if t.DType != graph.F32 {
			return nil, fmt.Errorf("operand %d is %s, want f32%s", i, t,
				convertible(t, graph.F32))
		}
		if t.Rank() == 0 || !t.SameShape(in[0]) {
			return nil, fmt.Errorf("operand %d is %s, want rows like %s", i, t, in[0])
		}
	}
	return in[:1:1], nil
}

// rowBlocks calls f with ranges of whole rows of n elements out of total, in
// parallel.
func rowBlocks(c *kernel.Call, total, n int, f func(lo, hi int)) {
	c.Pool.For(total/n, max(1, grain/4/n), func(lo, hi int) { f(lo*n, hi*n) })
}

// rows calls f with every row of n elements out of total, in parallel.
func rows(c *kernel.Call, total, n int, f func(lo, hi int)) {
	c.Pool.For(total/n, max(1, grain/4/n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i*n, (i+1)*n)
		}
	})
}

func (softmax) Infer(in []graph.Type) ([]graph.Type, error) { return rowwise(in, 1) }

func (softmax) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 15) }

// InPlace: a row is read before it is overwritten.
func (softmax) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (s softmax) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	y, d := n.Value(0), dout[0]
	if s.Log {
		return []graph.Value{Sub(d, Mul(Exp(y), SumKeep(d, -1)))}
	}
	return []graph.Value{apply(softmaxGrad{}, y, d)}
}

// betweenHidden visits runs of rows of n elements: those from one place to another, and what
// follows to the next, which is a row of −Inf alone or nothing.
func betweenHidden(x []float32, n int, visit func(from, to, hidden int)) {
	none, from := float32(math.Inf(-1)), 0
	for at := 0; at < len(x); at += n {
		if x[at] == none && vec.MaxOf(x[at:at+n]) == none {
			visit(from, at, at+n)
			from = at + n
		}
	}
	visit(from, len(x), len(x))
}

func softmaxCPU(s softmax, c *kernel.Call) error {
	x, out := c.In[0].F32(), c.Out[0].F32()
	n := c.In[0].Type.Size(-1)
	if !s.Log {
		rowBlocks(c, len(x), n, func(lo, hi int) {
			if !s.Masked {
				vec.SoftmaxRows(out[lo:hi], x[lo:hi], n, far(c))
				return
			}
			betweenHidden(x[lo:hi], n, func(from, to, hidden int) {
				vec.SoftmaxRows(out[lo+from:lo+to], x[lo+from:lo+to], n, far(c))
				clear(out[lo+to : lo+hidden])
			})
		})
		return nil
	}
	rows(c, len(x), n, func(lo, hi int) {
		most, rest := vec.LogSumExp(x[lo:hi])
		vec.Affine(out[lo:hi], x[lo:hi], most, 1, -rest)
	})
	return nil
}

// softmaxGrad is y·(d − Σy·d) for y = softmax(x).
type softmaxGrad struct{}

func (softmaxGrad) Name() string { return "softmax-grad" }

func (softmaxGrad) Infer(in []graph.Type) ([]graph.Type, error) { return rowwise(in, 2) }

func (softmaxGrad) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 4) }

// InPlace: the sum is taken before the gradient's row is overwritten; y is read
// after it.
func (softmaxGrad) InPlace(_, _ []graph.Type) []int { return []int{1} }

// VJP with e the gradient of the result: linear in d; in y it is
// e·(d − Σy·d) − d·Σe·y.
func (softmaxGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	y, d, e := n.In[0], n.In[1], dout[0]
	dy := Sub(Mul(e, Sub(d, SumKeep(Mul(y, d), -1))), Mul(d, SumKeep(Mul(e, y), -1)))
	return []graph.Value{dy, apply(softmaxGrad{}, y, e)}
}

func softmaxGradCPU(_ softmaxGrad, c *kernel.Call) error {
	y, d, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	n := c.In[0].Type.Size(-1)
	rowBlocks(c, len(y), n, func(lo, hi int) {
		vec.SoftmaxGrad(out[lo:hi], y[lo:hi], d[lo:hi], n, far(c))
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, softmaxCPU)
	kernel.Register(kernel.CPU, softmaxGradCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: softmax{}, In: []graph.Type{f(3, 5)}, Second: true},
		Sample{Op: softmax{}, In: []graph.Type{f(2, 3, 17)}, Second: true},
		Sample{Op: softmax{}, In: []graph.Type{f(1)}, Second: true},
		Sample{Op: softmax{Masked: true}, In: []graph.Type{f(3, 17)}, Second: true},
		Sample{Op: softmax{Log: true}, In: []graph.Type{f(3, 17)}, Second: true},
		Sample{Op: softmaxGrad{}, In: []graph.Type{f(3, 5), f(3, 5)}},
	)
}
