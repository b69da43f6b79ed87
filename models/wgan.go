package models

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/tensor"
)

// WGAN builds the Wasserstein networks with gradient penalty of Gulrajani et al.
// (2017) for images of 64×64: a generator, which makes images of noise, and a
// critic, which tells them from real ones. Their training alternates: some steps
// of the critic on mean D(fake) − mean D(real) + Penalty·mean((‖∇D(x)‖−1)²), with x
// between a fake and a real image, then one of the generator on −mean D(fake). Its
// data are images f32[batch 3 pixels pixels] from −1 to 1 and labels i32[batch],
// of which held-out batches use that 0 marks a row without an image; there are no
// classes.
//
// The noise is drawn in the graph, another for every execution; only the samples
// that an evaluation shows are always of the same. The generator's norms are of
// the batch's statistics, in evaluation too.
func WGAN(c WGANConfig) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := newModel("wgan", c.Size, Images, 0, c.schedule())
	m.DeviceBytes, m.HostBytes = replicaBudget(c.Size)
	batch := graph.Dim{Name: "batch", Size: c.Images}
	side := graph.Dim{Size: c.Pixels}
	images := m.InputOf("images", tensor.Named(graph.F32, batch, graph.Dim{Size: 3}, side, side))
	labels := m.InputOf("labels", tensor.Named(graph.I32, batch))
	p := &wgan{
		part: part{g: m.Graph, seed: m.Seed, fine: c.Fine}, WGANConfig: c,
		generator: newGenerator(m.Graph, c), critic: newCritic(m.Graph, c),
	}
	opt := adam{Beta1: 0, Beta2: 0.9, Eps: 1e-8, Fine: c.Fine}
	m.minimize(p.criticLoss(images), p.critic.all, opt)
	m.minimize(p.generatorLoss(), p.generator.all, opt)
	p.evaluate(m, images, labels)
	return m.done()
}

// criticLoss is the critic's objective. Wasserstein, the metric, is how far apart
// the critic has brought real and fake images: an estimate of the distance of
// their distributions.
func (p *wgan) criticLoss(images graph.Value) Objective {
	defer p.scope("critic-loss")()
	fakes := p.generate(p.seed)
	distance := ops.Sub(ops.Mean(p.judge("real", images)), ops.Mean(p.judge("fake", fakes)))
	penalty := p.penalty(images, fakes)
	return Objective{
		Name: "critic", Times: p.CriticTimes,
		Loss: ops.Sub(ops.Scale(penalty, p.Penalty), distance),
		Metrics: []Metric{{Name: "wasserstein", Value: distance},
			{Name: "penalty", Value: penalty}},
	}
}

// smallestSlope is what a slope of zero counts as: its gradient is not finite.
const smallestSlope = 1e-8

// penalty is the mean square by which the critic's slope, at random points between
// real and fake images, differs from 1. The gradient of the images is a part of
// the loss: minimize differentiates it again.
func (p *wgan) penalty(images, fakes graph.Value) graph.Value {
	defer p.scope("penalty")()
	share := ops.RandomUniform(p.seed, p.batch(1, 1, 1), p.path+"share")
	between := ops.Add(images, ops.Mul(ops.Sub(fakes, images), share))
	gradient := autodiff.Grad(ops.Sum(p.judge("between", between)), between)[0]
	square := ops.Sum(ops.Square(gradient), 1, 2, 3)
	slope := ops.Sqrt(ops.AddScalar(square, smallestSlope*smallestSlope))
	return ops.Mean(ops.Square(ops.AddScalar(slope, -1)))
}

// generatorLoss is the generator's objective.
func (p *wgan) generatorLoss() Objective {
	defer p.scope("generator-loss")()
	return Objective{Name: "generator", Times: 1,
		Loss: ops.Neg(ops.Mean(p.judge("fake", p.generate(p.seed))))}
}

// evaluate appends the held-out pass, whose loss is the critic's without penalty,
// and samples.
func (p *wgan) evaluate(m *Model, images, labels graph.Value) {
	defer p.scope("eval")()
	real, fake := p.mean(p.judge("real", images), labels),
		ops.Mean(p.judge("fake", p.generate(p.seed)))
	m.EvalLoss = ops.Sub(fake, real)
	defer p.scope("samples")()
	always := ops.Pad(ops.Slice(p.seed, 0, 0, 1), 0, 0, 1) // the run's seed, and no execution
	m.EvalOutputs = []graph.Value{p.generate(always)}
}

// batch is a type with so much for each image.
func (p *wgan) batch(sizes ...int) graph.Type {
	dims := []graph.Dim{{Name: "batch", Size: p.Images}}
	for _, n := range sizes {
		dims = append(dims, graph.Dim{Size: n})
	}
	return tensor.Named(graph.F32, dims...)
}

// adversary is the weights of the generator or of the critic. The dense layer is
// the generator's first or the critic's last one, the convolution the
// generator's last or the critic's first.
type adversary struct {
	parameters
	dense  affine
	conv   filterBank
	blocks []residual
	norm   affineNorm // of the good generator's output
}

// filterBank is a convolution's filters, and a bias [out] or none.
type filterBank struct{ filters, bias graph.Value }

// affineNorm is a norm's scale and bias, one for each channel. It normalises each
// image alone, or each channel over the batch.
type affineNorm struct {
	scale, bias graph.Value
	alone       bool
}

// residual is a block: three convolutions with one norm behind them, or two with a
// norm before each; and a convolution in place of the identity where that does
// not fit.
type residual struct {
	residualShape
	name     string
	convs    []filterBank
	norms    []affineNorm
	shortcut filterBank
}

func newGenerator(g *graph.Graph, c WGANConfig) *adversary {
	defer g.Scope("generator")()
	w := &adversary{parameters: parameters{g: g}}
	side := c.Pixels / 16
	w.dense = w.linear(c.Noise, 8*c.Dim*side*side)
	w.residuals(c, c.blocks(), false)
	if last := c.blocks()[len(c.blocks())-1]; c.Nets == netsGood {
		w.norm = w.channels("norm", last.out, false)
		w.conv = w.filters("conv", last.out, 3, 3, he, true)
	} else {
		w.conv = w.filters("conv", last.out, 3, 1, balanced, true)
	}
	return w
}

func newCritic(g *graph.Graph, c WGANConfig) *adversary {
	defer g.Scope("critic")()
	w := &adversary{parameters: parameters{g: g}}
	blocks := mirrored(c.blocks())
	size := 1
	if c.Nets == netsGood {
		size = 3
	}
	w.conv = w.filters("conv", 3, blocks[0].in, size, balanced, true)
	w.residuals(c, blocks, true)
	side := c.Pixels / 16
	w.dense = w.linear(8*c.Dim*side*side, 1)
	return w
}

// residuals are named by the size of their images: 16x16/0, 16x16/1, … 16x16/up.
func (w *adversary) residuals(c WGANConfig, blocks []residualShape, alone bool) {
	count := map[int]int{}
	for _, s := range blocks {
		name := fmt.Sprintf("%dx%d/%d", s.from, s.from, count[s.from])
		switch {
		case s.grows():
			name = fmt.Sprintf("%dx%d/up", s.from, s.from)
		case s.shrinks():
			name = fmt.Sprintf("%dx%d/down", s.from, s.from)
		}
		count[s.from]++
		leave := w.g.Scope(name)
		b := residual{residualShape: s, name: name}
		if c.Nets == netsGood {
			w.wide(&b, alone)
		} else {
			w.narrow(&b, alone)
		}
		w.blocks = append(w.blocks, b)
		leave()
	}
}

// narrow is a bottleneck block of 1×1, 3×3 and 1×1. The second convolution, and
// the one in place of the identity, have a stride of two where images shrink; the
// second is transposed where they grow.
func (w *adversary) narrow(b *residual, alone bool) {
	in, out := b.in/2, b.out/2
	switch {
	case b.shrinks():
		b.shortcut = w.bank("shortcut", fans(balanced, b.in, b.out, 1, 4), b.out, b.out, b.in, 1)
	case b.grows():
		b.shortcut = w.filters("shortcut", b.in, 4*b.out, 1, balanced, true)
	}
	first := w.filters("conv1", b.in, in, 1, he, true)
	var second filterBank
	switch {
	case b.shrinks():
		second = w.bank("conv2", fans(he, 9*in, 9*out, 1, 4), out, out, in, 3)
	case b.grows():
		second = w.bank("conv2", fans(he, 9*in, 9*out, 4, 1), out, in, out, 3)
	default:
		second = w.filters("conv2", in, out, 3, he, true)
	}
	b.convs = []filterBank{first, second, w.filters("conv3", out, b.out, 1, he, false)}
	b.norms = []affineNorm{w.channels("norm", b.out, alone)}
}

// wide is a block of two 3×3 convolutions. Images grow before the first one, and
// shrink after the second.
func (w *adversary) wide(b *residual, alone bool) {
	middle := b.in
	if b.grows() {
		middle = b.out
	}
	if !b.same() {
		b.shortcut = w.filters("shortcut", b.in, b.out, 1, balanced, true)
	}
	b.norms = []affineNorm{w.channels("norm1", b.in, alone), w.channels("norm2", middle, alone)}
	b.convs = []filterBank{w.filters("conv1", b.in, middle, 3, he, false),
		w.filters("conv2", middle, b.out, 3, he, true)}
}

func (w *adversary) channels(name string, n int, alone bool) affineNorm {
	return affineNorm{w.add(name+"/scale", one(), n), w.add(name+"/bias", graph.Init{}, n), alone}
}

// filters are [out in k k].
func (w *adversary) filters(name string, in, out, k int, gain float64, bias bool) filterBank {
	biases := 0
	if bias {
		biases = out
	}
	return w.bank(name, fans(gain, in*k*k, out*k*k, 1, 1), biases, out, in, k)
}

// bank is filters [rows columns k k], and so many biases.
func (w *adversary) bank(name string, init graph.Init, biases, rows, columns, k int) filterBank {
	f := filterBank{filters: w.add(name+"/filters", init, rows, columns, k, k)}
	if biases > 0 {
		f.bias = w.bias(name, biases)
	}
	return f
}

func (w *adversary) bias(name string, n int) graph.Value {
	return w.add(name+"/bias", graph.Init{}, n)
}

func (w *adversary) linear(in, out int) affine {
	return affine{w.add("dense/weights", glorot(in, out), in, out), w.bias("dense", out)}
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
func fans(gain float64, in, out, fewerIn, fewerOut int) graph.Init {
	// converted, or a division by a power of two would be fused with the sum
	fanIn := float64(float64(in) / float64(fewerIn))
	fanOut := float64(float64(out) / float64(fewerOut))
	return uniform(gain / (fanIn + fanOut))
}
