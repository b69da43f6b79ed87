package models

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/tensor"
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
	m := newModel("resnet", c.Size, Images, c.Classes, c.schedule())
	m.DeviceBytes, m.HostBytes = replicaBudget(c.Size)
	batch := graph.Dim{Name: "batch", Size: c.Images}
	side := graph.Dim{Size: c.Pixels}
	images := m.InputOf("images", tensor.Named(graph.F32, batch, graph.Dim{Size: 3}, side, side))
	labels := m.InputOf("labels", tensor.Named(graph.I32, batch))
	w := newResNetWeights(m.Graph, c)
	p := &resNet{part: part{g: m.Graph, seed: m.Seed, training: true, fine: c.Fine},
		ResNetConfig: c, w: w}
	trainResNet(m, p, images, labels)
	evaluateResNet(m, p, images, labels)
	return m.done()
}

// trainResNet appends the training pass, the gradients and the updates.
func trainResNet(m *Model, p *resNet, images, labels graph.Value) {
	logits := p.run(images)
	loss := p.mean(ops.CrossEntropy(logits, labels, 0), labels)
	accuracy := p.mean(ops.Correct(logits, labels), labels)
	o := Objective{Name: "train", Times: 1, Loss: loss,
		Metrics: []Metric{{Name: "accuracy", Value: accuracy}}}
	opt := decayed{momentum{Mu: 0.9, Fine: p.Fine}, p.WeightDecay, p.w.exempt}
	m.minimize(o, p.w.all, opt, p.averages...)
}

// evaluateResNet appends the held-out pass: the same variables, with averages in
// place of the batch's means and variances.
func evaluateResNet(m *Model, p *resNet, images, labels graph.Value) {
	defer m.Graph.Scope("eval")()
	p.training = false
	logits := p.run(images)
	m.EvalLoss = p.mean(ops.CrossEntropy(logits, labels, 0), labels)
	m.EvalMetrics = []Metric{
		{Name: "accuracy", Value: p.mean(ops.Correct(logits, labels), labels)},
		{Name: fmt.Sprintf("accuracy among %d", p.guesses()),
			Value: p.mean(among(logits, labels, p.guesses()), labels)},
	}
	_, best := ops.TopK(logits, 1)
	m.EvalOutputs = []graph.Value{best}
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

// decayed is momentum with weight decay, from which some parameters are exempt.
type decayed struct {
	momentum
	Rate   float32
	exempt map[graph.NodeID]bool
}

func (o decayed) update(m *Model, w, grad graph.Value) []*graph.Node {
	if o.Rate > 0 && !o.exempt[w.Node.ID] {
		m.Graph.InPhase(graph.Update, func() { grad = ops.Add(grad, ops.Scale(w, o.Rate)) })
	}
	return o.momentum.update(m, w, grad)
}

// resNetWeights are the variables of the model.
type resNetWeights struct {
	parameters
	exempt map[graph.NodeID]bool // from weight decay: the norms'

	stem        graph.Value // [width 3 7 7]
	stemNorm    channelNorm // of version 1
	stages      [4][]bottleneck
	last        channelNorm // of version 2
	dense, bias graph.Value // [32·width classes] and [classes]
}

// channelNorm is a batch norm's scale and bias, and the averages of what it
// normalised by.
type channelNorm struct{ scale, bias, mean, variance graph.Value }

// bottleneck is a block's convolutions, of 1×1, 3×3 and 1×1, each with a norm: its
// own in version 1, that of its operand in version 2. The first of a stage also
// has a projection in place of the identity, with a norm in version 1.
type bottleneck struct {
	convs       [3]graph.Value
	norms       [3]channelNorm
	project     graph.Value
	projectNorm channelNorm
	stride      int
}

func newResNetWeights(g *graph.Graph, c ResNetConfig) *resNetWeights {
	w := &resNetWeights{parameters: parameters{g: g}, exempt: map[graph.NodeID]bool{}}
	w.stem = w.filters("stem", c.Width, 3, 7)
	if c.Version == 1 {
		w.stemNorm = w.norm("stem/norm", one(), c.Width)
	}
	in := c.Width
	for stage, blocks := range c.Blocks {
		width, stride := c.Width<<stage, 2
		if stage == 0 {
			stride = 1
		}
		for i := range blocks {
			name := fmt.Sprintf("stage%d/%d", stage+1, i)
			w.stages[stage] = append(w.stages[stage],
				w.bottleneck(name, c, in, width, stride, i == 0))
			in, stride = 4*width, 1
		}
	}
	if c.Version == 2 {
		w.last = w.norm("norm", one(), in)
	}
	w.dense = w.add("dense/weights", glorot(in, c.Classes), in, c.Classes)
	w.bias = w.add("dense/bias", graph.Init{}, c.Classes)
	return w
}

func (w *resNetWeights) bottleneck(name string, c ResNetConfig, in, width, stride int,
	first bool) bottleneck {
	defer w.g.Scope(name)()
	b := bottleneck{stride: stride}
	ins, outs, sizes := [3]int{in, width, width}, [3]int{width, width, 4 * width}, [3]int{1, 3, 1}
	for i := range b.convs {
		channels, scale := outs[i], one()
		switch {
		case c.Version == 2:
			channels = ins[i]
		case c.ZeroBlocks && i == 2:
			scale = graph.Init{}
		}
		b.convs[i] = w.filters(fmt.Sprintf("conv%d", i+1), outs[i], ins[i], sizes[i])
		b.norms[i] = w.norm(fmt.Sprintf("norm%d", i+1), scale, channels)
	}
	if first {
		b.project = w.filters("project", 4*width, in, 1)
		if c.Version == 1 {
			b.projectNorm = w.norm("project/norm", one(), 4*width)
		}
	}
	return b
}

// filters are [out in k k].
func (w *resNetWeights) filters(name string, out, in, k int) graph.Value {
	return w.add(name+"/filters", heTruncated(in*k*k), out, in, k, k)
}

func (w *resNetWeights) norm(name string, scale graph.Init, channels int) channelNorm {
	t := tensor.Of(graph.F32, channels)
	n := channelNorm{scale: w.add(name+"/scale", scale, channels),
		bias: w.add(name+"/bias", graph.Init{}, channels)}
	n.mean, n.variance = w.g.State(name+"/mean", t, graph.Init{}),
		w.g.State(name+"/variance", t, one())
	w.exempt[n.scale.Node.ID], w.exempt[n.bias.Node.ID] = true, true
	return n
}
