package models

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// wgan builds the computations of a generator and a critic.
type wgan struct {
	part
	WGANConfig
	generator, critic *adversary
}

// generate is images of noise, f32[batch 3 pixels pixels] from −1 to 1.
func (p *wgan) generate(seed graph.Value) graph.Value {
	defer p.scope("generator")()
	w, side := p.generator, p.Pixels/16
	x := p.linear(ops.RandomNormal(seed, p.batch(p.Noise), p.path+"noise"), w.dense)
	x = ops.Reshape(x, p.batch(8*p.Dim, side, side).Shape...)
	x = p.residuals(x, w)
	if p.Nets == netsGood {
		return ops.Tanh(p.conv(p.normRelu(x, w.norm), w.conv, ops.Conv{Pad: ops.SamePad(3)}))
	}
	return ops.Tanh(ops.Scale(p.conv(x, w.conv, ops.Conv{}), 1.0/5))
}

// judge is the critic's opinion of images, f32[batch].
func (p *wgan) judge(name string, images graph.Value) graph.Value {
	defer p.scope(name)()
	w, side := p.critic, p.Pixels/16
	first := ops.Conv{}
	if p.Nets == netsGood {
		first.Pad = ops.SamePad(3)
	}
	x := p.residuals(p.conv(images, w.conv, first), w)
	x = ops.Reshape(x, p.batch(8*p.Dim*side*side).Shape...)
	x = ops.Reshape(p.linear(x, w.dense), p.batch().Shape...)
	if p.Nets == netsGood {
		return x
	}
	return ops.Scale(x, 1.0/5)
}

func (p *wgan) residuals(x graph.Value, w *adversary) graph.Value {
	for _, b := range w.blocks {
		leave := p.scope(b.name)
		if p.Nets == netsGood {
			x = p.wide(x, b)
		} else {
			x = p.narrow(x, b)
		}
		leave()
	}
	return x
}

// narrow is a bottleneck block.
func (p *wgan) narrow(x graph.Value, b residual) graph.Value {
	half := ops.Conv{Stride: [2]int{2, 2}}
	shortcut := x
	switch {
	case b.shrinks():
		shortcut = p.conv(x, b.shortcut, half)
	case b.grows():
		shortcut = ops.DepthToSpace(p.conv(x, b.shortcut, ops.Conv{}), 2)
	}
	y := p.conv(ops.Relu(x), b.convs[0], ops.Conv{})
	y = p.middle(ops.Relu(y), b)
	y = p.norm(p.conv(ops.Relu(y), b.convs[2], ops.Conv{}), b.norms[0])
	return ops.Add(shortcut, ops.Scale(y, 0.3))
}

// middle is the 3×3 convolution of a bottleneck block, padded as by TensorFlow.
func (p *wgan) middle(x graph.Value, b residual) graph.Value {
	before, after := tensorFlowPad(max(b.from, b.to), 3, 2)
	half := ops.Conv{Stride: [2]int{2, 2}, Pad: [4]int{before, before, after, after}}
	switch {
	case b.shrinks():
		return p.conv(x, b.convs[1], half)
	case b.grows():
		y := ops.ConvTranspose2D(x, b.convs[1].filters, half, [2]int{b.to, b.to})
		return p.shift(y, b.convs[1].bias)
	}
	return p.conv(x, b.convs[1], ops.Conv{Pad: ops.SamePad(3)})
}

// wide is a block of two convolutions of 3×3.
func (p *wgan) wide(x graph.Value, b residual) graph.Value {
	around := ops.Conv{Pad: ops.SamePad(3)}
	shortcut, y := x, p.normRelu(x, b.norms[0])
	if b.grows() {
		shortcut, y = ops.ResizeNearest(shortcut, 2), ops.ResizeNearest(y, 2)
	}
	y = p.conv(y, b.convs[0], around)
	y = p.conv(p.normRelu(y, b.norms[1]), b.convs[1], around)
	if b.shrinks() {
		mean := ops.Window{Size: [2]int{2, 2}}
		shortcut, y = ops.AvgPool2D(shortcut, mean), ops.AvgPool2D(y, mean)
	}
	if !b.same() {
		shortcut = p.conv(shortcut, b.shortcut, ops.Conv{})
	}
	return ops.Add(shortcut, y)
}

func (p *wgan) linear(x graph.Value, w affine) graph.Value {
	return ops.Add(ops.MatMul(x, w.weight), w.bias)
}

func (p *wgan) conv(x graph.Value, w filterBank, c ops.Conv) graph.Value {
	return p.shift(ops.Conv2D(x, w.filters, c), w.bias)
}

// shift adds a number for each channel, where there is one.
func (p *wgan) shift(x, bias graph.Value) graph.Value {
	if !bias.Valid() {
		return x
	}
	return ops.Add(x, ops.ReshapeSizes(bias, bias.Type().Size(0), 1, 1))
}

func (p *wgan) normRelu(x graph.Value, n affineNorm) graph.Value { return ops.Relu(p.norm(x, n)) }

// norm is a layer norm over an image, which can be differentiated twice, or a
// batch norm.
func (p *wgan) norm(x graph.Value, n affineNorm) graph.Value {
	switch {
	case n.alone && p.fine:
		return ops.LayerNormComposed(x, n.scale, n.bias, 1, channelEps)
	case n.alone:
		return ops.LayerNormOver(x, n.scale, n.bias, 1, channelEps)
	}
	y, _, _ := ops.BatchNorm(x, n.scale, n.bias, channelEps)
	return y
}
