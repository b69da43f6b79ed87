package nn

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/tensor"
)

// CrossEntropyOptions are those of [CrossEntropy].
type CrossEntropyOptions struct {
	// Smoothing is the probability that is spread over all classes, the label's included.
	Smoothing float32
	// Padding says that label 0 is no class: such positions do not count.
	Padding bool
	Weights graph.Value // f32 of the labels' shape: how much a position counts
	Classes graph.Value // f32[classes]: how much a label counts
}

// CrossEntropy is the mean cross-entropy, f32[], of logits f32[… classes] and
// labels i32[…] in [0, classes): over all positions, or weighted ones. If no
// position counts it is 0.
func CrossEntropy(logits, labels graph.Value, options ...CrossEntropyOptions) graph.Value {
	if !logits.Valid() || !labels.Valid() || !rank("cross-entropy", logits, 1) {
		return graph.Value{}
	}
	o, ok := one(logits.Graph(), options)
	if !ok {
		return graph.Value{}
	}
	classes := logits.Type().Size(-1)
	smoothing := o.Smoothing * (float32(classes-1) / float32(classes))
	losses := ops.CrossEntropy(logits, labels, smoothing)
	return MeanOver(losses, o.weights(labels, classes))
}

// weights is how much each position counts; no value if all count alike.
func (o CrossEntropyOptions) weights(labels graph.Value, classes int) (w graph.Value) {
	times := func(x graph.Value) {
		if w.Valid() {
			x = ops.Mul(w, x)
		}
		w = x
	}
	if o.Padding {
		times(ops.NotZero(labels))
	}
	if o.Weights.Valid() {
		times(o.Weights)
	}
	if o.Classes.Valid() {
		table := ops.ReshapeSizes(o.Classes, classes, 1)
		times(ops.Reshape(ops.Embedding(table, labels), labels.Type().Shape...))
	}
	return w
}

// MeanOver is the mean of x with weights, 0 or more, of its shape: Σ x·weight / Σ weight,
// where a sum of weights below 1 counts as 1. Without weights, the zero Value, it is
// the mean of all elements.
func MeanOver(x, weights graph.Value) graph.Value {
	if !weights.Valid() || !x.Valid() {
		return ops.Mean(x)
	}
	count := ops.Maximum(ops.Sum(weights), ops.Ones(x.Graph(), tensor.Of(graph.F32)))
	return ops.Div(ops.Sum(ops.Mul(x, weights)), count)
}

// Accuracy is the share, f32[], of positions whose largest logit is the label's:
// logits f32[… classes], labels i32[…]. The options say which positions count.
func Accuracy(logits, labels graph.Value, options ...CrossEntropyOptions) Metric {
	if !logits.Valid() || !labels.Valid() || !rank("accuracy", logits, 1) {
		return Metric{Name: "accuracy"}
	}
	o, _ := one(logits.Graph(), options)
	right := ops.Correct(logits, labels)
	weights := o.weights(labels, logits.Type().Size(-1))
	return Metric{Name: "accuracy", Value: MeanOver(right, weights)}
}

// MSE is the mean square, f32[], of x − y.
func MSE(x, y graph.Value) graph.Value { return ops.Mean(ops.Square(ops.Sub(x, y))) }

// BinaryCrossEntropy is the mean cross-entropy, f32[], of probabilities σ(logits) and
// labels, f32 of one shape, from 0 to 1.
func BinaryCrossEntropy(logits, labels graph.Value) graph.Value {
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
