package nn

import (
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// CrossEntropyOptions are those of [CrossEntropy] and [Accuracy].
type CrossEntropyOptions struct {
	// Smoothing is the probability that is spread over all classes, the label's included.
	Smoothing float32
	// Padding says that label 0 is no class: such positions do not count.
	Padding bool
	// Ignore is the label of positions that do not count, such as −100; nil means none.
	// It need not be a class.
	Ignore  *int
	Weights graph.Value // f32 of the labels' shape, from 0: how much a position counts
	Classes graph.Value // f32[classes], from 0: how much a class counts
}

// none is a label that no position has.
const none = math.MinInt32

// least is what a sum of weights counts as at least, so that there is a mean of
// nothing: 0.
const least = 1e-30

// CrossEntropy is the mean cross-entropy, f32[], of logits f32[… classes] and
// labels i32[…] in [0, classes): over all positions, or weighted ones. If no
// position counts it is 0. With weights of classes it is PyTorch's: the mean is
// weighted by those of the labels, and smoothing spreads over weighted classes.
func CrossEntropy(logits, labels graph.Value, options ...CrossEntropyOptions) graph.Value {
	if !logits.Valid() || !labels.Valid() || !rank("cross-entropy", logits, 1) {
		return graph.Value{}
	}
	o, ok := one(logits.Graph(), options)
	if !ok || !o.check(labels) || o.Weights.Valid() && !alone("cross-entropy", labels, o.Weights) {
		return graph.Value{}
	}
	smoothing := o.spread(logits.Type().Size(-1))
	if o.plain() {
		losses := ops.CrossEntropy(logits, labels, smoothing)
		return MeanOver(losses, o.counted(labels))
	}
	return o.mean(ops.CrossEntropyIgnoring(logits, labels, o.Classes, o.ignored(), smoothing))
}

// LinearCrossEntropy is [CrossEntropy] of a linear layer's results, the product of x f32[… size]
// and w f32[size classes], or f32[classes size] if it is transposed, as embeddings are: without the
// logits in memory, of which there are many where the vocabulary is large
// ([ops.LinearCrossEntropy]). With weights of classes there are logits.
func LinearCrossEntropy(x, w, labels graph.Value, transposed bool,
	options ...CrossEntropyOptions) graph.Value {
	if !x.Valid() || !w.Valid() || !labels.Valid() || !rank("linear cross-entropy", w, 2) {
		return graph.Value{}
	}
	o, ok := one(x.Graph(), options)
	if ok && o.Classes.Valid() {
		return CrossEntropy(ops.MatMulT(x, w, false, transposed), labels, o)
	}
	if !ok || !o.check(labels) || o.Weights.Valid() &&
		!alone("linear cross-entropy", labels, o.Weights) {
		return graph.Value{}
	}
	classes := w.Type().Size(1)
	if transposed {
		classes = w.Type().Size(0)
	}
	if o.plain() {
		losses := ops.LinearCrossEntropy(x, w, labels, transposed, o.spread(classes))
		return MeanOver(losses, o.counted(labels))
	}
	return o.mean(ops.LinearCrossEntropyIgnoring(x, w, labels, transposed, o.ignored(),
		o.spread(classes)))
}

// spread is what other classes than the label have together.
func (o CrossEntropyOptions) spread(classes int) float32 {
	return o.Smoothing * (float32(classes-1) / float32(classes))
}

// mean is that of losses and counts of positions, which have weights.
func (o CrossEntropyOptions) mean(losses, counts graph.Value) graph.Value {
	if o.Weights.Valid() {
		losses, counts = ops.Weigh(losses, o.Weights), ops.Mul(counts, o.Weights)
	}
	return over(ops.Sum(losses), ops.Sum(counts), least)
}

// check reports options that contradict each other.
func (o CrossEntropyOptions) check(labels graph.Value) bool {
	if o.Padding && o.Ignore != nil {
		labels.Graph().Fail(errorf("label %d and padding, label 0, are both to be left out",
			*o.Ignore))
		return false
	}
	return true
}

// plain says that positions count or not, and no more.
func (o CrossEntropyOptions) plain() bool {
	return o.Ignore == nil && !o.Weights.Valid() && !o.Classes.Valid()
}

// counted is 1 where labels are not padding; no value if none is.
func (o CrossEntropyOptions) counted(labels graph.Value) graph.Value {
	if !o.Padding {
		return graph.Value{}
	}
	return ops.NotZero(labels)
}

// ignored is the label that does not count.
func (o CrossEntropyOptions) ignored() int {
	switch {
	case o.Ignore != nil:
		return *o.Ignore
	case o.Padding:
		return 0
	}
	return none
}

// MeanOver is the mean of x with weights, such as 0 and 1, of its shape:
// Σ x·weight / Σ weight, where a sum of weights below 1 counts as 1. What has weight 0 may
// be anything, infinite and NaN too. Without weights, the zero Value, it is the mean of all
// elements.
func MeanOver(x, weights graph.Value) graph.Value {
	if !weights.Valid() || !x.Valid() {
		return ops.Mean(x)
	}
	if !alone("mean", x, weights) {
		return graph.Value{}
	}
	count := ops.Maximum(ops.Sum(weights), ops.Ones(x.Graph(), tensor.Of(graph.F32)))
	return ops.Div(ops.Sum(ops.Weigh(x, weights)), count)
}

// over is a sum by a count, which is a number at least.
func over(sum, count graph.Value, atLeast float32) graph.Value {
	if !sum.Valid() {
		return sum
	}
	return ops.Div(sum, ops.Maximum(count, ops.Full(sum.Graph(), tensor.Of(graph.F32), atLeast)))
}

// Accuracy is the share, f32[], of positions whose largest logit is the label's:
// logits f32[… classes], labels i32[…]. The options say which positions count, and how
// much.
func Accuracy(logits, labels graph.Value, options ...CrossEntropyOptions) Metric {
	m := Metric{Name: "accuracy"}
	if !logits.Valid() || !labels.Valid() || !rank("accuracy", logits, 1) {
		return m
	}
	o, ok := one(logits.Graph(), options)
	if !ok || !o.check(labels) || o.Weights.Valid() && !alone("accuracy", labels, o.Weights) {
		return m
	}
	if o.plain() {
		right := ops.Correct(logits, labels)
		m.Value = MeanOver(right, o.counted(labels))
		return m
	}
	ignored := labels.Graph().Constant("ignored", tensor.FromI32([]int32{int32(o.ignored())}))
	kept := ops.NotEqual(labels, ignored)
	zero := labels.Graph().Constant("zero", tensor.FromI32([]int32{0}))
	known := ops.Where(kept, labels, zero)
	counts := ops.Cast(kept, graph.F32)
	if o.Weights.Valid() {
		counts = ops.Mul(counts, o.Weights)
	}
	if o.Classes.Valid() {
		counts = ops.Mul(counts, ops.Take(o.Classes, known, 0))
	}
	right := ops.Mul(ops.Correct(logits, known), counts)
	m.Value = over(ops.Sum(right), ops.Sum(counts), least)
	return m
}

// MSE is the mean square, f32[], of x − y: of one shape, or one of them one number.
func MSE(x, y graph.Value) graph.Value {
	if !pairs("mean square", x, y) {
		return graph.Value{}
	}
	return ops.Mean(ops.Square(ops.Sub(x, y)))
}

// L1 is the mean magnitude, f32[], of x − y: of one shape, or one of them one number.
func L1(x, y graph.Value) graph.Value {
	if !pairs("mean magnitude", x, y) {
		return graph.Value{}
	}
	return ops.Mean(ops.Abs(ops.Sub(x, y)))
}

// Huber is the mean, f32[], of half the squares of x − y, and of what goes on as a
// straight line where that is larger than delta (Huber 1964): of one shape, or one of them
// one number.
func Huber(x, y graph.Value, delta float32) graph.Value {
	if x.Valid() && !(delta > 0) {
		x.Graph().Fail(errorf("Huber's loss with delta %v: want a positive number", delta))
		return graph.Value{}
	}
	if !pairs("Huber's loss", x, y) {
		return graph.Value{}
	}
	d := ops.Abs(ops.Sub(x, y))
	near := ops.Clip(d, 0, delta)
	far := ops.Scale(ops.Sub(d, near), delta)
	return ops.Mean(ops.Add(ops.Scale(ops.Square(near), 0.5), far))
}

// BinaryCrossEntropy is the mean cross-entropy, f32[], of probabilities σ(logits) and
// labels, f32 of one shape, or one of them one number, from 0 to 1.
func BinaryCrossEntropy(logits, labels graph.Value) graph.Value {
	if !pairs("binary cross-entropy", logits, labels) {
		return graph.Value{}
	}
	// (1−y)·x + log(1+e^−x), of which nothing is a difference of large numbers
	others := ops.AddScalar(ops.Neg(labels), 1)
	return ops.Mean(ops.Add(ops.Mul(others, logits), ops.Softplus(ops.Neg(logits))))
}

// CTC is the mean connectionist temporal classification loss, f32[], of the
// utterances that have frames enough for their labels: see [ops.CTCLoss].
func CTC(logits, labels, labelLengths, frames graph.Value) graph.Value {
	readable := ops.CTCReadable(labels, labelLengths, frames)
	return MeanOver(ops.CTCLoss(logits, labels, labelLengths, frames), readable)
}

// pairs reports whether each element of x has one of y: a loss of all pairs of elements, as
// of [4 1] and [4], is what nobody means. One number may be for all.
func pairs(what string, x, y graph.Value) bool {
	if x.Valid() && y.Valid() && (x.Type().Rank() == 0 || y.Type().Rank() == 0) {
		return true
	}
	return alone(what, x, y)
}

// alone reports whether x and y are of one shape, but for the names of axes.
func alone(what string, x, y graph.Value) bool {
	if !x.Valid() || !y.Valid() {
		return false // the graph's error says why
	}
	if a, b := x.Type(), y.Type(); !slices.Equal(a.Sizes(), b.Sizes()) {
		x.Graph().Fail(errorf("%s of %s and %s: want one shape, as ops.Reshape makes of those "+
			"that have as many elements", what, a, b))
		return false
	}
	return true
}
