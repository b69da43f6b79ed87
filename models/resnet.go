package models

import (
	"fmt"
	"path"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// ResNet builds He et al.'s residual network with bottleneck blocks as the
// official TensorFlow models have it: version 1 with the stride on the 3×3
// convolution ("v1.5"), or version 2 with norms before convolutions. Its data are
// images f32[batch 3 pixels pixels] and labels i32[batch], where 0 marks a row
// without an image, which counts for nothing but in the norms' statistics.
//
// Weight decay is a term of the gradients, WeightDecay·w, rather than of the loss:
// the updates are the same, the loss is the cross-entropy alone, and no partition
// reads all weights to add up squares. The average of variances is that of the
// variances by which the batches were divided, not of unbiased estimates.
func ResNet(c ResNetConfig) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Blocks, _ = c.blocks()
	m := newModel("resnet", c.Size, Images, c.Classes, c.schedule(), c.Fine)
	m.DeviceBytes, m.HostBytes = replicaBudget(c.Size)
	images, labels := m.images(c.Images, c.Pixels)
	p := &resNet{ResNetConfig: c}
	m.Declare(p.declare, images)
	p.train(m, images, labels)
	p.evaluate(m, images, labels)
	return m.done()
}

// images are the inputs of models of images.
func (m *Model) images(n, pixels int) (images, labels graph.Value) {
	batch, side := graph.Dim{Name: "batch", Size: n}, graph.Dim{Size: pixels}
	return m.InputOf("images", tensor.Named(graph.F32, batch, graph.Dim{Size: 3}, side, side)),
		m.InputOf("labels", tensor.Named(graph.I32, batch))
}

// train appends the training pass, the gradients and the updates.
func (p *resNet) train(m *Model, images, labels graph.Value) {
	logits := p.run(m.Training(), images)
	counted := nn.CrossEntropyOptions{Padding: true}
	loss := nn.CrossEntropy(logits, labels, counted)
	p.Training.Minimize(&m.Model, loss, nn.Momentum{Mu: 0.9}, nn.MinimizeOptions{
		Metrics: []Metric{nn.Accuracy(logits, labels, counted)},
		Decay:   p.WeightDecay, Exempt: ofNorm})
}

// ofNorm is the parameters of norms, which are exempt from weight decay.
func ofNorm(parameter graph.Value) bool {
	return strings.HasPrefix(path.Base(path.Dir(parameter.Node.Name)), "norm")
}

// evaluate appends the held-out pass: the same variables, with averages in place of
// the batch's means and variances.
func (p *resNet) evaluate(m *Model, images, labels graph.Value) {
	c := m.Model.Evaluation()
	defer c.Enter()()
	counted := nn.CrossEntropyOptions{Padding: true}
	logits := p.run(c, images)
	loss := nn.CrossEntropy(logits, labels, counted)
	accuracy := nn.Accuracy(logits, labels, counted)
	several := nn.MeanOver(among(logits, labels, p.guesses()), ops.NotZero(labels))
	m.Evaluate(loss, accuracy,
		Metric{Name: fmt.Sprintf("accuracy among %d", p.guesses()), Value: several})
	_, best := ops.TopK(logits, 1)
	m.Output(best)
}

// guesses is how many of the largest logits the label may be among: 5, or all
// kinds of a model of fewer. Class 0 is the background, which no image is.
func (c ResNetConfig) guesses() int { return min(5, c.Classes-1) }

// among is 1 where a label is one of the k largest logits, and 0 elsewhere.
func among(logits, labels graph.Value, k int) graph.Value {
	if !logits.Valid() {
		return logits
	}
	_, best := ops.TopK(logits, k)
	return ops.TakeLast(ops.Sum(ops.OneHot(best, logits.Type().Size(-1)), 1), labels)
}
