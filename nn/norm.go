package nn

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// NormOptions are those of [LayerNorm], [RMSNorm] and [GroupNorm].
type NormOptions struct {
	Eps    float32 // added to what is divided by; 0 means 1e-5
	Scale  Init    // nil means ones
	NoBias bool    // of LayerNorm and GroupNorm
	Name   string  // of the scale of RMSNorm; "" means "scale"
}

func (o NormOptions) eps() float32 { return orDefault(o.Eps, 1e-5) }

// LayerNorm normalises rows of the last axis to mean 0 and variance 1, and then
// scales and shifts elements (Ba et al. 2016): scale and bias f32[n].
func LayerNorm(c *Ctx, x graph.Value, options ...NormOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !rank("layer norm", x, 1) {
		return graph.Value{}
	}
	defer c.Enter()()
	n := x.Type().Size(-1)
	scale := c.Param("scale", o.Scale.or(Ones), n)
	return c.layerNorm(x, scale, c.bias(o, n), o)
}

func (c *Ctx) layerNorm(x, scale, bias graph.Value, o NormOptions) graph.Value {
	if c.model.Fine {
		return ops.LayerNormComposed(x, scale, bias, -1, o.eps())
	}
	return ops.LayerNorm(x, scale, bias, o.eps())
}

// bias is a norm's bias, or zeros.
func (c *Ctx) bias(o NormOptions, n int) graph.Value {
	if o.NoBias {
		return ops.Zeros(c.Graph(), tensor.Of(graph.F32, n))
	}
	return c.Param("bias", nil, n)
}

// RMSNorm divides rows of the last axis by their root mean square, and then scales
// elements (Zhang and Sennrich 2019): scale f32[n].
func RMSNorm(c *Ctx, x graph.Value, options ...NormOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !rank("RMS norm", x, 1) {
		return graph.Value{}
	}
	defer c.Enter()()
	scale := c.Param(either(o.Name, "scale"), o.Scale.or(Ones), x.Type().Size(-1))
	if c.model.Fine {
		return fineRMSNorm(x, scale, o.eps())
	}
	return ops.RMSNorm(x, scale, o.eps())
}

// GroupNorm normalises so many groups of an image's channels, each alone, to mean 0
// and variance 1, and then scales and shifts channels (Wu and He 2018): x f32[batch
// channels height width], scale and bias f32[channels]. One group is a layer norm
// of the image, as many as channels an instance norm.
func GroupNorm(c *Ctx, x graph.Value, groups int, options ...NormOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !exact("group norm", x, 4, "batch, channels, height and width") {
		return graph.Value{}
	}
	t := x.Type()
	batch, channels := t.Size(0), t.Size(1)
	if groups < 1 || channels%groups != 0 {
		c.Graph().Fail(errorf("group norm of %d channels in %d groups, which do not divide them",
			channels, groups))
		return graph.Value{}
	}
	defer c.Enter()()
	scale, bias := c.Param("scale", o.Scale.or(Ones), channels), c.bias(o, channels)
	switch {
	case groups == 1 && c.model.Fine:
		return ops.LayerNormComposed(x, scale, bias, 1, o.eps())
	case groups == 1:
		return ops.LayerNormOver(x, scale, bias, 1, o.eps())
	}
	row := channels / groups * t.Size(2) * t.Size(3)
	y := ops.ReshapeSizes(x, batch*groups, row)
	flat := tensor.Of(graph.F32, row)
	y = c.layerNorm(y, ops.Ones(c.Graph(), flat), ops.Zeros(c.Graph(), flat), o)
	y = ops.Mul(ops.Reshape(y, t.Shape...), ops.ReshapeSizes(scale, channels, 1, 1))
	return ops.Add(y, ops.ReshapeSizes(bias, channels, 1, 1))
}

// BatchNormOptions are those of [BatchNorm].
type BatchNormOptions struct {
	Eps      float32 // added to variances; 0 means 1e-5
	Momentum float32 // share of the running averages that is kept a step; 0 means 0.9
	Scale    Init    // nil means ones
	// Untracked keeps no running averages: every pass uses its batch's statistics.
	Untracked bool
}

// BatchNorm normalises channels over the batch and the image to mean 0 and variance
// 1, and then scales and shifts them (Ioffe and Szegedy 2015): x f32[batch channels
// …] or f32[batch channels]; scale, bias, and the running averages mean and variance
// f32[channels]. A training pass uses the batch's statistics, and its objective
// moves the averages towards them; other passes use the averages. The averaged
// variance is the one that was divided by, not an unbiased estimate. A batch of nothing
// leaves the averages as they are.
func BatchNorm(c *Ctx, x graph.Value, options ...BatchNormOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !rank("batch norm", x, 2) {
		return graph.Value{}
	}
	defer c.Enter()()
	eps, channels := orDefault(o.Eps, 1e-5), x.Type().Size(1)
	scale := c.Param("scale", o.Scale.or(Ones), channels)
	bias := c.Param("bias", nil, channels)
	if o.Untracked {
		y, _, _ := ops.BatchNorm(x, scale, bias, eps)
		return y
	}
	mean, variance := c.Average("mean", nil, channels), c.Average("variance", Ones, channels)
	if !c.Training() {
		return ops.BatchNormInference(x, scale, bias, mean, variance, eps)
	}
	y, batchMean, batchVariance := ops.BatchNorm(x, scale, bias, eps)
	momentum := orDefault(o.Momentum, 0.9)
	if y.Type().Elems() > 0 { // of nothing there is no mean to move to
		c.Update(ops.RunningAverage(mean, batchMean, momentum))
		c.Update(ops.RunningAverage(variance, batchVariance, momentum))
	}
	return y
}
