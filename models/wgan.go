package models

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
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
	m := newModel("wgan", c.Size, Images, 0, c.schedule(), c.Fine)
	m.DeviceBytes, m.HostBytes = replicaBudget(c.Size)
	images, labels := m.images(c.Images, c.Pixels)
	m.Declare(func(at *nn.Ctx, in ...graph.Value) {
		p := &wgan{WGANConfig: c, declaring: true}
		p.generate(at, at.Seed())
		p.judge(at.In("judge"), in[0])
	}, images)
	p := &wgan{WGANConfig: c}
	at := m.Training()
	p.criticLoss(m, at.In("critic-loss"), images)
	p.generatorLoss(m, at.In("generator-loss"))
	p.evaluate(m, images, labels)
	return m.done()
}

// optimizer is that of either network.
func (c WGANConfig) optimizer() nn.Optimizer { return nn.Adam{Betas: []float32{0, 0.9}} }

// criticLoss appends the critic's objective. Wasserstein, the metric, is how far apart
// the critic has brought real and fake images: an estimate of the distance of
// their distributions.
func (p *wgan) criticLoss(m *Model, c *nn.Ctx, images graph.Value) {
	leave := c.Enter()
	fakes := p.generate(c, c.Seed())
	distance := ops.Sub(ops.Mean(p.judge(c.In("real"), images)),
		ops.Mean(p.judge(c.In("fake"), fakes)))
	penalty := p.penalty(c.In("penalty"), images, fakes)
	loss := ops.Sub(ops.Scale(penalty, p.Penalty), distance)
	leave()
	p.Training.Minimize(&m.Model, loss, p.optimizer(), nn.MinimizeOptions{
		Name: "critic", Times: p.CriticTimes, Of: []string{"critic"},
		Metrics: []Metric{{Name: "wasserstein", Value: distance},
			{Name: "penalty", Value: penalty}},
	})
}

// smallestSlope is what a slope of zero counts as: its gradient is not finite.
const smallestSlope = 1e-8

// penalty is the mean square by which the critic's slope, at random points between
// real and fake images, differs from 1. The gradient of the images is a part of
// the loss: Minimize differentiates it again.
func (p *wgan) penalty(c *nn.Ctx, images, fakes graph.Value) graph.Value {
	defer c.Enter()()
	share := ops.RandomUniform(c.Seed(), p.batch(1, 1, 1), c.Noise("share"))
	between := ops.Add(images, ops.Mul(ops.Sub(fakes, images), share))
	gradient := autodiff.Grad(ops.Sum(p.judge(c.In("between"), between)), between)[0]
	square := ops.Sum(ops.Square(gradient), 1, 2, 3)
	slope := ops.Sqrt(ops.AddScalar(square, smallestSlope*smallestSlope))
	return ops.Mean(ops.Square(ops.AddScalar(slope, -1)))
}

// generatorLoss appends the generator's objective.
func (p *wgan) generatorLoss(m *Model, c *nn.Ctx) {
	leave := c.Enter()
	loss := ops.Neg(ops.Mean(p.judge(c.In("fake"), p.generate(c, c.Seed()))))
	leave()
	p.Training.Minimize(&m.Model, loss, p.optimizer(), nn.MinimizeOptions{Name: "generator",
		Of: []string{"generator"}})
}

// evaluate appends the held-out pass, whose loss is the critic's without penalty,
// and samples.
func (p *wgan) evaluate(m *Model, images, labels graph.Value) {
	c := m.Model.Evaluation()
	defer c.Enter()()
	real := nn.MeanOver(p.judge(c.In("real"), images), ops.NotZero(labels))
	fake := ops.Mean(p.judge(c.In("fake"), p.generate(c, c.Seed())))
	m.Evaluate(ops.Sub(fake, real))
	c = c.In("samples")
	defer c.Enter()()
	always := ops.Pad(ops.Slice(c.Seed(), 0, 0, 1), 0, 0, 1) // the run's seed, and no execution
	m.Output(p.generate(c, always))
}

// batch is a type with so much for each image.
func (p *wgan) batch(sizes ...int) graph.Type {
	dims := []graph.Dim{{Name: "batch", Size: p.Images}}
	for _, n := range sizes {
		dims = append(dims, graph.Dim{Size: n})
	}
	return tensor.Named(graph.F32, dims...)
}
