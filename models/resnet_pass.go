package models

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// channelEps is added to the variance that a batch norm divides by.
const channelEps = 1e-5

// resNet builds the computation of logits.
type resNet struct {
	part
	ResNetConfig
	w        *resNetWeights
	averages []*graph.Node // updates of the norms' averages, in training
}

// run is the logits of images, f32[batch classes].
func (p *resNet) run(images graph.Value) graph.Value {
	x := p.stem(images)
	for stage, blocks := range p.w.stages {
		for i, b := range blocks {
			leave := p.scope(fmt.Sprintf("stage%d/%d", stage+1, i))
			if p.Version == 1 {
				x = p.original(x, b)
			} else {
				x = p.preactivated(x, b)
			}
			leave()
		}
	}
	if p.Version == 2 {
		x = p.normRelu(x, p.w.last)
	}
	return ops.Add(ops.MatMul(ops.GlobalMean(x), p.w.dense), p.w.bias)
}

// stem is the first layer, which makes images half as large, and a pooling that
// does so again.
func (p *resNet) stem(images graph.Value) graph.Value {
	defer p.scope("stem")()
	x := ops.Conv2D(images, p.w.stem, ops.Conv{Stride: [2]int{2, 2}, Pad: ops.SamePad(7)})
	if p.Version == 1 {
		x = p.normRelu(x, p.w.stemNorm)
	}
	if !x.Valid() {
		return x
	}
	before, after := tensorFlowPad(x.Type().Size(2), 3, 2)
	return ops.MaxPool2D(x, ops.Window{
		Size: [2]int{3, 3}, Stride: [2]int{2, 2}, Pad: [4]int{before, before, after, after},
	})
}

// tensorFlowPad is TensorFlow's padding "SAME" of n elements under windows: as
// much as makes ⌈n/stride⌉ of them, the odd one behind.
func tensorFlowPad(n, window, stride int) (before, after int) {
	windows := (n + stride - 1) / stride
	total := max(0, (windows-1)*stride+window-n)
	return total / 2, total - total/2
}

// original is a block of version 1: relu(x + norm(conv(…))).
func (p *resNet) original(x graph.Value, b bottleneck) graph.Value {
	shortcut := x
	if b.project.Valid() {
		shortcut = p.norm(p.conv(x, b.project, 1, b.stride), b.projectNorm)
	}
	y := p.normRelu(p.conv(x, b.convs[0], 1, 1), b.norms[0])
	y = p.normRelu(p.conv(y, b.convs[1], 3, b.stride), b.norms[1])
	y = p.norm(p.conv(y, b.convs[2], 1, 1), b.norms[2])
	return ops.Relu(ops.Add(y, shortcut))
}

// preactivated is a block of version 2: x + conv(relu(norm(…))).
func (p *resNet) preactivated(x graph.Value, b bottleneck) graph.Value {
	y := p.normRelu(x, b.norms[0])
	shortcut := x
	if b.project.Valid() {
		shortcut = p.conv(y, b.project, 1, b.stride)
	}
	y = p.conv(y, b.convs[0], 1, 1)
	y = p.conv(p.normRelu(y, b.norms[1]), b.convs[1], 3, b.stride)
	y = p.conv(p.normRelu(y, b.norms[2]), b.convs[2], 1, 1)
	return ops.Add(y, shortcut)
}

// conv is a convolution that keeps an image's size but for the stride.
func (p *resNet) conv(x, filters graph.Value, k, stride int) graph.Value {
	return ops.Conv2D(x, filters, ops.Conv{Stride: [2]int{stride, stride}, Pad: ops.SamePad(k)})
}

func (p *resNet) normRelu(x graph.Value, n channelNorm) graph.Value {
	return ops.Relu(p.norm(x, n))
}

// norm is a batch norm. In training it notes the update of its averages.
func (p *resNet) norm(x graph.Value, n channelNorm) graph.Value {
	if !p.training {
		return ops.BatchNormInference(x, n.scale, n.bias, n.mean, n.variance, channelEps)
	}
	y, mean, variance := ops.BatchNorm(x, n.scale, n.bias, channelEps)
	if y.Valid() {
		p.averages = append(p.averages,
			ops.RunningAverage(n.mean, mean, p.NormMomentum),
			ops.RunningAverage(n.variance, variance, p.NormMomentum))
	}
	return y
}
