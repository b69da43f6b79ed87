package models

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// channelEps is added to the variance that a batch norm divides by.
const channelEps = 1e-5

// resNet builds the computation of logits.
type resNet struct {
	ResNetConfig
	declaring bool // parameters only
}

// bottleneck is a block of convolutions of 1×1, 3×3 and 1×1 with a norm each: behind
// it in version 1, before it in version 2. The first of a stage has a projection in
// place of the identity, with a norm in version 1.
type bottleneck struct {
	*resNet
	*nn.Ctx
	width, stride int
	first         bool
}

// declare is a pass that uses the parameters in the order of checkpoints.
func (p *resNet) declare(c *nn.Ctx, in ...graph.Value) {
	q := resNet{ResNetConfig: p.ResNetConfig, declaring: true}
	q.run(c, in[0])
}

// run is the logits of images, f32[batch classes].
func (p *resNet) run(c *nn.Ctx, images graph.Value) graph.Value {
	defer c.Enter()()
	x := p.stem(c, images)
	for stage, blocks := range p.Blocks {
		for i := range blocks {
			b := bottleneck{p, c.In(fmt.Sprintf("stage%d/%d", stage+1, i)), p.Width << stage, 1,
				i == 0}
			if i == 0 && stage > 0 {
				b.stride = 2
			}
			x = b.block(x)
		}
	}
	if p.Version == 2 {
		x = ops.Relu(p.norm(c.Of("norm"), x, nn.Ones))
	}
	return nn.Linear(c.Of("dense"), ops.GlobalMean(x), p.Classes,
		nn.LinearOptions{WeightName: "weights"})
}

// stem is the first layer, which makes images half as large, and a pooling that
// does so again.
func (p *resNet) stem(c *nn.Ctx, images graph.Value) graph.Value {
	c = c.In("stem")
	defer c.Enter()()
	x := p.conv(c, images, p.Width, 7, 2)
	if p.Version == 1 {
		x = ops.Relu(p.norm(c.Of("norm"), x, nn.Ones))
	}
	return nn.MaxPool2D(x, 3, nn.PoolOptions{Stride: 2, Same: true})
}

func (b bottleneck) block(x graph.Value) graph.Value {
	defer b.Enter()()
	switch {
	case b.declaring:
		return b.declare(x)
	case b.Version == 1:
		return b.original(x)
	}
	return b.preactivated(x)
}

// declare uses a block's parameters in the order of checkpoints: convolutions, each
// with its norm, and then the projection. The result has the block's type.
func (b bottleneck) declare(x graph.Value) graph.Value {
	y := x
	for i := 1; i <= 3; i++ {
		next := b.layer(y, i)
		if b.Version == 1 {
			b.normOf(next, i)
		} else {
			b.normOf(y, i)
		}
		y = next
	}
	b.identity(x, x)
	return y
}

// original is a block of version 1: relu(x + norm(conv(…))).
func (b bottleneck) original(x graph.Value) graph.Value {
	shortcut := b.identity(x, x)
	y := ops.Relu(b.normOf(b.layer(x, 1), 1))
	y = ops.Relu(b.normOf(b.layer(y, 2), 2))
	y = b.normOf(b.layer(y, 3), 3)
	return ops.Relu(ops.Add(y, shortcut))
}

// preactivated is a block of version 2: x + conv(relu(norm(…))).
func (b bottleneck) preactivated(x graph.Value) graph.Value {
	y := ops.Relu(b.normOf(x, 1))
	shortcut := b.identity(x, y)
	y = b.layer(y, 1)
	y = b.layer(ops.Relu(b.normOf(y, 2)), 2)
	y = b.layer(ops.Relu(b.normOf(y, 3)), 3)
	return ops.Add(y, shortcut)
}

// identity is x, or the projection of normed in a stage's first block.
func (b bottleneck) identity(x, normed graph.Value) graph.Value {
	if !b.first {
		return x
	}
	y := b.conv(b.Of("project"), normed, 4*b.width, 1, b.stride)
	if b.Version == 1 {
		y = b.norm(b.Of("project/norm"), y, nn.Ones)
	}
	return y
}

// normOf is the norm of convolution i.
func (b bottleneck) normOf(x graph.Value, i int) graph.Value {
	scale := nn.Ones
	if b.Version == 1 && b.ZeroBlocks && i == 3 {
		scale = nn.Zeros
	}
	return b.norm(b.Of(fmt.Sprintf("norm%d", i)), x, scale)
}

// layer is convolution i, from 1, of a block.
func (b bottleneck) layer(x graph.Value, i int) graph.Value {
	c := b.Of(fmt.Sprintf("conv%d", i))
	switch i {
	case 1:
		return b.conv(c, x, b.width, 1, 1)
	case 2:
		return b.conv(c, x, b.width, 3, b.stride)
	}
	return b.conv(c, x, 4*b.width, 1, 1)
}

// conv is a convolution that keeps an image's size but for the stride.
func (p *resNet) conv(c *nn.Ctx, x graph.Value, out, k, stride int) graph.Value {
	return nn.Conv2D(c, x, out, k, nn.ConvOptions{Stride: stride, Pad: k / 2, NoBias: true,
		Filter: nn.LeCunTruncated})
}

func (p *resNet) norm(c *nn.Ctx, x graph.Value, scale nn.Init) graph.Value {
	return nn.BatchNorm(c, x, nn.BatchNormOptions{Eps: channelEps, Momentum: p.NormMomentum,
		Scale: scale})
}
