package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// CrossEntropy is the cross-entropy of every position: logits f32[… v], labels
// i32[…] → f32[…]. With smoothing s the target has probability 1−s, and every
// other class s/(v−1); the target's entropy is not subtracted.
func CrossEntropy(logits, labels graph.Value, smoothing float32) graph.Value {
	return apply(crossEntropy{Smoothing: smoothing}, logits, labels)
}

type crossEntropy struct{ Smoothing float32 }

func (crossEntropy) Name() string { return "cross-entropy" }

// classified checks logits f32[… v] and labels i32[…].
func classified(in []graph.Type, smoothing float32) error {
	if err := want(in[:min(2, len(in))], graph.F32, graph.I32); err != nil {
		return err
	}
	k := in[0].Rank() - 1
	if k < 0 || !(graph.Type{Shape: in[0].Shape[:k]}).SameShape(graph.Type{Shape: in[1].Shape}) {
		return fmt.Errorf("logits %s do not match labels %s", in[0], in[1])
	}
	if !(smoothing >= 0 && smoothing < 1) {
		return fmt.Errorf("label smoothing is %g, want 0 or more, but less than 1", smoothing)
	}
	if smoothing > 0 && in[0].Size(-1) < 2 {
		return fmt.Errorf("labels of a single class cannot be smoothed")
	}
	return nil
}

func (o crossEntropy) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 2); err != nil {
		return nil, err
	}
	if err := classified(in, o.Smoothing); err != nil {
		return nil, err
	}
	return []graph.Type{{DType: graph.F32, Shape: in[1].Shape}}, nil
}

func (crossEntropy) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: 14 * int64(in[0].Elems()), Bytes: bytes(in, out)}
}

func (o crossEntropy) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(crossEntropyGrad(o), n.In[0], n.In[1], dout[0]), {}}
}

// low is the probability of a class that is not the label.
func low(smoothing float32, classes int) float32 {
	if smoothing == 0 {
		return 0
	}
	return smoothing / float32(classes-1)
}

func crossEntropyCPU(o crossEntropy, c *kernel.Call) error {
	x, labels, out := c.In[0].F32(), c.In[1].I32(), c.Out[0].F32()
	v := c.In[0].Type.Size(-1)
	if err := checkIDs(labels, v); err != nil {
		return err
	}
	off := low(o.Smoothing, v)
	rowBlocks(c, len(x), v, func(lo, hi int) {
		var room []float32
		if off != 0 {
			room = make([]float32, min(v, narrow))
		}
		for at := lo; at < hi; at += v {
			row, label := x[at:at+v], x[at+int(labels[at/v])]
			most, rest := vec.LogSumExp(row)
			loss := rest + float32((1-o.Smoothing-off)*(most-label))
			if off != 0 {
				loss += float32(off * sumBelow(row, most, room))
			}
			out[at/v] = loss
		}
	})
	return nil
}

// sumBelow is Σ most−x[i], without what the sum of x would lose to rounding if all are
// large.
func sumBelow(x []float32, most float32, room []float32) (sum float32) {
	for len(x) > 0 {
		n := min(len(x), len(room))
		vec.Affine(room[:n], x[:n], most, -1, 0)
		sum += vec.Sum(room[:n])
		x = x[n:]
	}
	return sum
}

// crossEntropyGrad is (softmax(logits) − target)·dloss; it computes the softmax
// again rather than keep it.
type crossEntropyGrad struct{ Smoothing float32 }

func (crossEntropyGrad) Name() string { return "cross-entropy-grad" }

func (o crossEntropyGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.F32, graph.I32, graph.F32); err != nil {
		return nil, err
	}
	if err := classified(in, o.Smoothing); err != nil {
		return nil, err
	}
	if !in[2].SameShape(in[1]) {
		return nil, fmt.Errorf("gradient %s of losses like %s", in[2], in[1])
	}
	return in[:1:1], nil
}

func (crossEntropyGrad) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 17) }

// InPlace: a row of logits is read before it is overwritten. The logits are the
// largest value of a language model; its gradient need not be a second one.
func (crossEntropyGrad) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP with e the gradient of the result: that of the logits goes through the softmax p,
// that of the loss's gradient is Σ e·(p − target).
func (o crossEntropyGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, labels, d, e := n.In[0], n.In[1], n.In[2], dout[0]
	p, off := Softmax(x), low(o.Smoothing, x.Type().Size(-1))
	dx := apply(softmaxGrad{}, p, Mul(e, ExpandDims(d, -1)))
	chosen := Reshape(apply(gatherLast{}, ExpandDims(labels, -1), e), d.Type().Shape...)
	dd := Sub(Sum(Mul(e, p), -1), Scale(chosen, 1-o.Smoothing-off))
	if off != 0 {
		dd = Sub(dd, Scale(Sum(e, -1), off))
	}
	return []graph.Value{dx, {}, dd}
}

func crossEntropyGradCPU(o crossEntropyGrad, c *kernel.Call) error {
	x, labels, d, out := c.In[0].F32(), c.In[1].I32(), c.In[2].F32(), c.Out[0].F32()
	v := c.In[0].Type.Size(-1)
	if err := checkIDs(labels, v); err != nil {
		return err
	}
	off := low(o.Smoothing, v)
	rows(c, len(x), v, func(lo, hi int) {
		row, i := out[lo:hi], lo/v
		if d[i] == 0 { // padding: nothing to learn
			clear(row)
			return
		}
		vec.SoftmaxAffine(row, x[lo:hi], d[i], -off*d[i])
		row[labels[i]] -= float32((1 - o.Smoothing - off) * d[i])
	})
	return nil
}

// Correct is 1 where the largest logit, which is that of [ArgMax], is the label's, and
// 0 elsewhere: logits f32[… v], labels i32[…] → f32[…]. It has no gradient.
func Correct(logits, labels graph.Value) graph.Value { return apply(correct{}, logits, labels) }

type correct struct{}

func (correct) Name() string { return "correct" }

func (correct) Infer(in []graph.Type) ([]graph.Type, error) { return crossEntropy{}.Infer(in) }

func (correct) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(in[0].Elems()), Bytes: bytes(in, out)}
}

func (correct) VJP(*graph.Node, []graph.Value) []graph.Value { return none(2) }

func correctCPU(_ correct, c *kernel.Call) error {
	x, labels, out := c.In[0].F32(), c.In[1].I32(), c.Out[0].F32()
	v := c.In[0].Type.Size(-1)
	if err := checkIDs(labels, v); err != nil {
		return err
	}
	rows(c, len(x), v, func(lo, hi int) {
		out[lo/v] = 0
		if firstLargest(x[lo:hi]) == int(labels[lo/v]) {
			out[lo/v] = 1
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, crossEntropyCPU)
	kernel.Register(kernel.CPU, crossEntropyGradCPU)
	kernel.Register(kernel.CPU, correctCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	label := fills{1: below(5)}
	register(
		Sample{Op: crossEntropy{}, In: []graph.Type{f(3, 5), ids(3)}, Fill: label,
			NoGrad: []int{1}, Second: true},
		Sample{Op: crossEntropy{0.1}, In: []graph.Type{f(2, 3, 17), ids(2, 3)}, Fill: label,
			NoGrad: []int{1}, Second: true},
		Sample{Op: crossEntropyGrad{0.1}, In: []graph.Type{f(3, 5), ids(3), f(3)}, Fill: label,
			NoGrad: []int{1}, Second: true},
		Sample{Op: correct{}, In: []graph.Type{f(3, 5), ids(3)}, Fill: label, NoGrad: []int{0, 1}},
	)
}
