package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
)

// wgan builds the computations of a generator and a critic.
type wgan struct {
	WGANConfig
	declaring bool // parameters only
}

// generate is images of noise, f32[batch 3 pixels pixels] from −1 to 1.
func (p *wgan) generate(c *nn.Ctx, seed graph.Value) graph.Value {
	c = c.In("generator").Share("generator")
	defer c.Enter()()
	side := p.Pixels / 16
	noise := ops.RandomNormal(seed, p.batch(p.Noise), c.Noise("noise"))
	x := p.linear(c, noise, 8*p.Dim*side*side)
	x = ops.Reshape(x, p.batch(8*p.Dim, side, side).Shape...)
	x = p.residuals(c, x, p.blocks(), false)
	if p.Nets == netsGood {
		x = ops.Relu(p.norm(c.Of("norm"), x, false))
		return ops.Tanh(p.conv(c.Of("conv"), x, 3, 3, 1, he, true))
	}
	return ops.Tanh(ops.Scale(p.conv(c.Of("conv"), x, 3, 1, 1, balanced, true), 1.0/5))
}

// judge is the critic's opinion of images, f32[batch].
func (p *wgan) judge(c *nn.Ctx, images graph.Value) graph.Value {
	c = c.Share("critic")
	defer c.Enter()()
	blocks, size := mirrored(p.blocks()), 1
	if p.Nets == netsGood {
		size = 3
	}
	x := p.conv(c.Of("conv"), images, blocks[0].in, size, 1, balanced, true)
	x = p.residuals(c, x, blocks, true)
	side := p.Pixels / 16
	x = ops.Reshape(x, p.batch(8*p.Dim*side*side).Shape...)
	x = ops.Reshape(p.linear(c, x, 1), p.batch().Shape...)
	if p.Nets == netsGood {
		return x
	}
	return ops.Scale(x, 1.0/5)
}

// residuals are named by the size of their images: 16x16/0, 16x16/1, … 16x16/up. The
// norms of the critic's are of each image alone.
func (p *wgan) residuals(c *nn.Ctx, x graph.Value, blocks []residualShape,
	alone bool) graph.Value {
	count := map[int]int{}
	for _, s := range blocks {
		name := fmt.Sprint(count[s.from])
		switch {
		case s.grows():
			name = "up"
		case s.shrinks():
			name = "down"
		}
		count[s.from]++
		b := residual{p, c.In(fmt.Sprintf("%dx%d/%s", s.from, s.from, name)), s, alone}
		leave := b.Enter()
		if p.Nets == netsGood {
			x = b.wide(x)
		} else {
			x = b.narrow(x)
		}
		leave()
	}
	return x
}

// residual is a block: three convolutions with one norm behind them, or two with a
// norm before each; and a convolution in place of the identity where that does
// not fit.
type residual struct {
	*wgan
	*nn.Ctx
	residualShape
	alone bool
}

// narrow is a bottleneck block of 1×1, 3×3 and 1×1. The second convolution, and
// the one in place of the identity, have a stride of two where images shrink; the
// second is transposed where they grow.
func (b residual) narrow(x graph.Value) graph.Value {
	shortcut := x
	switch {
	case b.shrinks():
		shortcut = b.conv(b.Of("shortcut"), x, b.out, 1, 2, balanced, true)
	case b.grows():
		shortcut = ops.DepthToSpace(b.conv(b.Of("shortcut"), x, 4*b.out, 1, 1, balanced, true), 2)
	}
	y := b.conv(b.Of("conv1"), ops.Relu(x), b.in/2, 1, 1, he, true)
	y = b.middle(ops.Relu(y))
	y = b.conv(b.Of("conv3"), ops.Relu(y), b.out, 1, 1, he, false)
	return ops.Add(shortcut, ops.Scale(b.norm(b.Of("norm"), y, b.alone), 0.3))
}

// middle is the 3×3 convolution of a bottleneck block, padded as by TensorFlow.
func (b residual) middle(x graph.Value) graph.Value {
	c, out := b.Of("conv2"), b.out/2
	if b.grows() {
		return nn.ConvTranspose2D(c, x, out, 3, nn.ConvOptions{Stride: 2,
			Filter: fans(he, 4, 1)})
	}
	stride := 1
	if b.shrinks() {
		stride = 2
	}
	return b.conv(c, x, out, 3, stride, he, true)
}

// wide is a block of two 3×3 convolutions. Images grow before the first one, and
// shrink after the second.
func (b residual) wide(x graph.Value) graph.Value {
	if b.declaring {
		return b.declareWide(x)
	}
	shortcut, y := x, b.normRelu("norm1", x)
	if b.grows() {
		shortcut, y = ops.ResizeNearest(shortcut, 2), ops.ResizeNearest(y, 2)
	}
	y = b.around("conv1", y, b.middleWidth(), false)
	y = b.around("conv2", b.normRelu("norm2", y), b.out, true)
	if b.shrinks() {
		shortcut, y = nn.AvgPool2D(shortcut, 2), nn.AvgPool2D(y, 2)
	}
	return ops.Add(b.fitting(shortcut), y)
}

// declareWide uses the parameters of a wide block in the order of checkpoints. The
// result has the block's type.
func (b residual) declareWide(x graph.Value) graph.Value {
	middle := ops.Zeros(b.Graph(), b.batch(b.middleWidth(), b.from, b.from))
	b.fitting(x)
	b.normRelu("norm1", x)
	b.normRelu("norm2", middle)
	b.around("conv1", x, b.middleWidth(), false)
	b.around("conv2", middle, b.out, true)
	return ops.Zeros(b.Graph(), b.batch(b.out, b.to, b.to))
}

// middleWidth is the channels between the two convolutions of a wide block.
func (b residual) middleWidth() int {
	if b.grows() {
		return b.out
	}
	return b.in
}

// fitting is the identity, or a convolution where that does not fit.
func (b residual) fitting(x graph.Value) graph.Value {
	if b.same() {
		return x
	}
	return b.conv(b.Of("shortcut"), x, b.out, 1, 1, balanced, true)
}

func (b residual) around(name string, x graph.Value, out int, bias bool) graph.Value {
	return b.conv(b.Of(name), x, out, 3, 1, he, bias)
}

func (b residual) normRelu(name string, x graph.Value) graph.Value {
	return ops.Relu(b.norm(b.Of(name), x, b.alone))
}

func (p *wgan) linear(c *nn.Ctx, x graph.Value, out int) graph.Value {
	return nn.Linear(c.Of("dense"), x, out, nn.LinearOptions{WeightName: "weights"})
}

// conv is a convolution that keeps an image's size but for the stride, with a bias or
// none. Initially it keeps the variance that gain says.
func (p *wgan) conv(c *nn.Ctx, x graph.Value, out, k, stride int, gain float64,
	bias bool) graph.Value {
	return nn.Conv2D(c, x, out, k, nn.ConvOptions{Stride: stride, NoBias: !bias,
		Filter: fans(gain, 1, stride*stride)})
}

// norm is a layer norm over an image, which can be differentiated twice, or a
// batch norm.
func (p *wgan) norm(c *nn.Ctx, x graph.Value, alone bool) graph.Value {
	if alone {
		return nn.GroupNorm(c, x, 1, nn.NormOptions{Eps: channelEps})
	}
	return nn.BatchNorm(c, x, nn.BatchNormOptions{Eps: channelEps, Untracked: true})
}

// The variance that weights keep, times the sum of the fans: halved by a
// rectifier, or not.
const (
	he       = 4
	balanced = 2
)

// fans is the uniform distribution of variance gain/(in/fewerIn + out/fewerOut):
// a stride divides what an element reaches, that of a transposed convolution what
// it is reached by.
func fans(gain float64, fewerIn, fewerOut int) nn.Init {
	return func(in, out int) graph.Init {
		// converted, or a division by a power of two would be fused with the sum
		fanIn := float64(float64(in) / float64(fewerIn))
		fanOut := float64(float64(out) / float64(fewerOut))
		variance := gain / (fanIn + fanOut)
		return nn.Uniform(math.Sqrt(3*variance))(in, out)
	}
}
