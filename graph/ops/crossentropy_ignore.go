package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// CrossEntropyIgnoring is CrossEntropy where a position whose label is ignore, which may
// be any number, does not count, and where each class has a weight, f32[v], or all have
// 1 if weights is no value. A position's loss is Σ weight·p·(−log q) over the classes,
// p being the target and q the softmax, and its count the label's weight; both are 0 if
// it is ignored. Divide the sum of losses by that of counts for PyTorch's mean.
func CrossEntropyIgnoring(logits, labels, weights graph.Value, ignore int,
	smoothing float32) (losses, counts graph.Value) {
	if !logits.Valid() || !labels.Valid() || logits.Type().Rank() == 0 {
		losses = CrossEntropy(logits, labels, smoothing) // which says what is wrong
		return losses, losses
	}
	g, classes := logits.Graph(), logits.Type().Size(-1)
	if !weights.Valid() {
		return ignoring(labels, classes, ignore, func(kept graph.Value) graph.Value {
			return CrossEntropy(logits, kept, smoothing)
		})
	}
	parts := applyN(2, keptLabels{Ignore: ignore, Classes: classes}, labels)
	kept, counted := parts[0], parts[1]
	zero := Zeros(g, tensor.Of(graph.F32))
	if t := weights.Type(); t.Rank() != 1 || t.Size(0) != classes {
		g.Fail(fmt.Errorf("weights of %d classes are %s", classes, t))
		return graph.Value{}, graph.Value{}
	}
	counts = Where(counted, Take(weights, kept, 0), zero)
	if smoothing == 0 {
		return Where(counted, Weigh(CrossEntropy(logits, kept, 0), counts), zero), counts
	}
	return Where(counted, smoothed(logits, kept, weights, counts, smoothing), zero), counts
}

// LinearCrossEntropyIgnoring is [LinearCrossEntropy] where a position whose label is ignore, which
// may be any number, has no loss and does not count. The counts are 0 and 1.
func LinearCrossEntropyIgnoring(x, w, labels graph.Value, transposed bool, ignore int,
	smoothing float32) (losses, counts graph.Value) {
	if !x.Valid() || !w.Valid() || !labels.Valid() || w.Type().Rank() != 2 {
		losses = LinearCrossEntropy(x, w, labels, transposed, smoothing) // which says what is wrong
		return losses, losses
	}
	_, classes := flip(w.Type(), transposed)
	return ignoring(labels, classes, ignore, func(kept graph.Value) graph.Value {
		return LinearCrossEntropy(x, w, kept, transposed, smoothing)
	})
}

// ignoring is losses of labels, of which one does not count.
func ignoring(labels graph.Value, classes, ignore int,
	of func(kept graph.Value) graph.Value) (losses, counts graph.Value) {
	parts := applyN(2, keptLabels{Ignore: ignore, Classes: classes}, labels)
	kept, counted := parts[0], parts[1]
	zero := Zeros(labels.Graph(), tensor.Of(graph.F32))
	return Where(counted, of(kept), zero), Cast(counted, graph.F32)
}

// smoothed is the loss of targets that are spread over classes of different weights.
func smoothed(logits, labels, weights, counts graph.Value, smoothing float32) graph.Value {
	off := low(smoothing, weights.Type().Size(0))
	logs := LogSoftmax(logits)
	zero := Zeros(logits.Graph(), tensor.Of(graph.F32))
	along := Reshape(weights, logs.Type().Shape[logs.Type().Rank()-1])
	matter := Where(NotEqual(along, zero), logs, zero) // where a class has no weight, 0·∞
	label := Reshape(Gather(logs, ExpandDims(labels, -1), -1), labels.Type().Shape...)
	all := Reshape(MatMul(ExpandDims(matter, -2), ExpandDims(weights, -1)), labels.Type().Shape...)
	return Neg(Add(Scale(Weigh(label, counts), 1-smoothing-off), Scale(all, off)))
}

// keptLabels is labels with class 0 for those that are ignored, and where none is.
type keptLabels struct{ Ignore, Classes int }

func (keptLabels) Name() string { return "kept-labels" }

func (o keptLabels) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32); err != nil {
		return nil, err
	}
	if o.Classes < 1 || o.Ignore < math.MinInt32 || o.Ignore > math.MaxInt32 {
		return nil, fmt.Errorf("label %d is ignored of %d classes", o.Ignore, o.Classes)
	}
	return []graph.Type{in[0], {DType: graph.Bool, Shape: in[0].Shape}}, nil
}

func (keptLabels) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

func (keptLabels) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

// CheckData wants labels that are classes, or ignored.
func (o keptLabels) CheckData(in []tensor.View) error {
	for i, label := range known(in[0]) {
		if int(label) != o.Ignore && (label < 0 || int(label) >= o.Classes) {
			return fmt.Errorf("label %d at position %d is none of %d classes, nor %d, which is "+
				"ignored", label, i, o.Classes, o.Ignore)
		}
	}
	return nil
}

func keptLabelsCPU(o keptLabels, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	kept, counted := c.Out[0].I32(), c.Out[1].U8()
	c.Pool.For(len(kept), grain, func(lo, hi int) {
		for i, label := range c.In[0].I32()[lo:hi] {
			kept[lo+i], counted[lo+i] = label, 1
			if int(label) == o.Ignore {
				kept[lo+i], counted[lo+i] = 0, 0
			}
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, keptLabelsCPU)
	register(
		Sample{Op: keptLabels{Ignore: -100, Classes: 3},
			In: []graph.Type{tensor.Of(graph.I32, 3, 7)}, NoGrad: []int{0}},
		Sample{Op: keptLabels{Ignore: 1, Classes: 5}, In: []graph.Type{tensor.Of(graph.I32, 17)},
			NoGrad: []int{0}},
	)
}
