package ops

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// BatchNorm gives every channel of x f32[n c …] mean 0 and variance 1 over the
// batch, scales and shifts it: (x−μ)/√(σ²+eps)·scale + bias, with scale and bias
// f32[c] (Ioffe and Szegedy 2015). Also returned are μ and σ², f32[c], for
// running averages; σ² is that of the batch, divided by the number of elements
// and not by one less. Of no elements they are NaN. The gradient reads x, μ and σ².
func BatchNorm(x, scale, bias graph.Value, eps float32) (y, mean, variance graph.Value) {
	out := applyN(3, batchNorm{Eps: eps}, x, scale, bias)
	return out[0], out[1], out[2]
}

// BatchNormInference is BatchNorm with the given means and variances, all
// f32[c].
func BatchNormInference(x, scale, bias, mean, variance graph.Value, eps float32) graph.Value {
	if !x.Valid() {
		return x
	}
	if err := checkEpsilon(eps); err != nil {
		x.Graph().Fail(err)
		return graph.Value{}
	}
	factor := Mul(scale, Rsqrt(AddScalar(variance, eps)))
	shift := Sub(bias, Mul(mean, factor))
	return Add(Mul(x, alongAxis(factor, 1, x)), alongAxis(shift, 1, x))
}

// RunningAverage is average ← momentum·average + (1−momentum)·x.
func RunningAverage(average, x graph.Value, momentum float32) *graph.Node {
	return update(runningAverage{Momentum: momentum}, []graph.Value{average}, x)
}

// alongAxis gives a vector so many axes of size 1 that it broadcasts along an
// axis of x.
func alongAxis(v graph.Value, axis int, x graph.Value) graph.Value {
	if !v.Valid() || !x.Valid() || v.Type().Rank() != 1 || x.Type().Rank() <= axis {
		return v // the operation to come says what is wrong
	}
	shape := make([]graph.Dim, x.Type().Rank()-axis)
	for i := range shape {
		shape[i].Size = 1
	}
	shape[0] = v.Type().Shape[0]
	return Reshape(v, shape...)
}

type batchNorm struct{ Eps float32 }

func (batchNorm) Name() string { return "batch-norm" }

func checkEpsilon(eps float32) error {
	if !(eps >= 0) || math.IsInf(float64(eps), 0) {
		return fmt.Errorf("epsilon is %g, want a number not below 0", eps)
	}
	return nil
}

// channelled checks operand 0 f32[n c …], with channels along an axis, and
// further operands that are f32[c], or like operand 0.
func channelled(in []graph.Type, channel int, eps float32,
	vectors ...bool) (vector graph.Type, err error) {
	if err := arity(in, len(vectors)); err != nil {
		return vector, err
	}
	if err := checkEpsilon(eps); err != nil {
		return vector, err
	}
	if channel < 0 || in[0].Rank() <= channel {
		return vector, fmt.Errorf("%s has no axis %d for channels", in[0], channel)
	}
	vector = graph.Type{DType: graph.F32, Shape: in[0].Shape[channel : channel+1 : channel+1]}
	for i, t := range in {
		if vectors[i] && !t.Equal(vector) {
			return vector, fmt.Errorf("operand %d is %s, want %s%s", i, t, vector,
				convertible(t, graph.F32))
		}
		if !vectors[i] && (t.DType != graph.F32 || !t.SameShape(in[0])) {
			return vector, fmt.Errorf("operand %d is %s, want f32 like %s%s", i, t, in[0],
				convertible(t, graph.F32))
		}
	}
	return vector, nil
}

func (o batchNorm) Infer(in []graph.Type) ([]graph.Type, error) {
	c, err := channelled(in, 1, o.Eps, false, true, true)
	if err != nil {
		return nil, err
	}
	return []graph.Type{in[0], c, c}, nil
}

func (batchNorm) Cost(in, out []graph.Type) graph.Cost { return planesOf(in[0]).cost(in, out, 8) }

// InPlace: a channel is read before it is overwritten.
func (batchNorm) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (o batchNorm) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, scale, mean, variance := n.In[0], n.In[1], n.Value(1), n.Value(2)
	d := none(3)
	if dout[0].Valid() {
		d = applyN(3, batchNormGrad(o), x, scale, mean, variance, dout[0])
	}
	count := float32(x.Type().Elems() / max(1, mean.Type().Elems()))
	if dout[1].Valid() {
		d[0] = plus(d[0], BroadcastTo(alongAxis(Scale(dout[1], 1/count), 1, x),
			x.Type().Sizes()...))
	}
	if dout[2].Valid() {
		centered := Sub(x, alongAxis(mean, 1, x))
		d[0] = plus(d[0], Mul(centered, alongAxis(Scale(dout[2], 2/count), 1, x)))
	}
	return d
}

// plus is a + b, where either may be no value.
func plus(a, b graph.Value) graph.Value {
	if !a.Valid() {
		return b
	}
	if !b.Valid() {
		return a
	}
	return Add(a, b)
}

// planes is the geometry of n images of c channels of s elements.
type planes struct{ n, c, s int }

func planesOf(t graph.Type) planes {
	return planes{t.Size(0), t.Size(1), graph.Type{Shape: t.Shape[2:]}.Elems()}
}

// thinPlane is the size of a plane from which vectors run along it, and not across
// channels.
const thinPlane = 100

// thinBlock is the least columns of a block: rows far apart want to be long.
const thinBlock = 256

func (p planes) thin() bool { return p.s < thinPlane }

// blocks is the number of blocks of channels.
func (p planes) blocks() int {
	least := 1
	if p.thin() {
		least = min(p.c, (thinBlock+p.s-1)/max(1, p.s))
	}
	return blocksOf(p.c, p.n*p.s, least)
}

// cost: the scratch holds a plane for every block, or the columns of thin planes.
func (p planes) cost(in, out []graph.Type, flops int64) graph.Cost {
	c := streaming(in, out, flops)
	c.Scratch = 4 * int64(p.blocks()) * int64(p.s)
	if p.thin() {
		c.Scratch = 4 * thinVectors * int64(p.c) * int64(p.s)
	}
	return c
}

// channels visits the channels, in parallel, each with room for a plane.
func (p planes) channels(c *kernel.Call, f func(ch int, buf []float32)) {
	blocks := p.blocks()
	c.Pool.Run(blocks, func(b int) {
		buf := floats(c.Scratch)[b*p.s : (b+1)*p.s]
		lo, hi := block(b, blocks, p.c)
		for ch := lo; ch < hi; ch++ {
			f(ch, buf)
		}
	})
}

// each visits the planes of a channel.
func (p planes) each(ch int, f func(lo, hi int)) {
	for i := range p.n {
		lo := (i*p.c + ch) * p.s
		f(lo, lo+p.s)
	}
}

// moments are the mean and the variance of a channel: those of its planes, which
// are in the cache for the second look, combined as by Chan, Golub and LeVeque
// (1979).
func (p planes) moments(x []float32, ch int, buf []float32) (mean, variance float64) {
	if p.n == 0 {
		return math.NaN(), math.NaN()
	}
	var m moments
	p.each(ch, func(lo, hi int) { m.add(x[lo:hi], buf) })
	return m.mean, m.squares / float64(m.n)
}

// moments are those of so many elements: their mean, and the sum of the squares of what differs
// from it.
type moments struct {
	n             int
	mean, squares float64
}

// add adds a plane; buf has room for it.
func (m *moments) add(plane, buf []float32) {
	count, n := float64(m.n), float64(len(plane))
	mean := float64(vec.Sum(plane)) / n
	vec.AddScalar(buf, plane, -float32(mean))
	delta := mean - m.mean
	total := count + n
	m.mean += delta * n / total
	m.squares += float64(vec.SumSquares(buf)) + delta*delta*count*n/total
	m.n += len(plane)
}

// inverse is 1/√(variance+eps).
func inverse(variance, eps float32) float32 {
	return float32(1 / math.Sqrt(float64(variance)+float64(eps)))
}

func batchNormCPU(o batchNorm, c *kernel.Call) error {
	x, scale, bias := c.In[0].F32(), c.In[1].F32(), c.In[2].F32()
	out, mean, variance := c.Out[0].F32(), c.Out[1].F32(), c.Out[2].F32()
	p := planesOf(c.In[0].Type)
	if p.thin() {
		p.columns(c, func(t columns) { t.normalize(out, x, scale, bias, mean, variance, o.Eps) })
		return nil
	}
	p.channels(c, func(ch int, buf []float32) {
		m, v := p.moments(x, ch, buf)
		mean[ch], variance[ch] = float32(m), float32(v)
		factor := scale[ch] * inverse(variance[ch], o.Eps)
		p.each(ch, func(lo, hi int) {
			vec.Affine(out[lo:hi], x[lo:hi], mean[ch], factor, bias[ch])
		})
	})
	return nil
}

type runningAverage struct{ Momentum float32 }

func (runningAverage) Name() string { return "running-average" }

func (o runningAverage) Infer(in []graph.Type) ([]graph.Type, error) {
	if !(o.Momentum >= 0 && o.Momentum <= 1) {
		return nil, fmt.Errorf("momentum %v is outside [0, 1]", o.Momentum)
	}
	return nil, checkUpdate(in, 2, 0)
}

func (runningAverage) Cost(in, _ []graph.Type) graph.Cost { return updateCost(in, 2, 1, 3) }

func (runningAverage) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func runningAverageCPU(o runningAverage, c *kernel.Call) error {
	v, x := c.In[0].F32(), c.In[1].F32()
	c.Pool.For(len(v), grain, func(lo, hi int) {
		vec.MulScalar(v[lo:hi], v[lo:hi], o.Momentum)
		vec.Axpy(v[lo:hi], 1-o.Momentum, x[lo:hi])
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, batchNormCPU)
	kernel.Register(kernel.CPU, runningAverageCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: batchNorm{0.1}, In: []graph.Type{f(3, 5, 4, 3), f(5), f(5)}, Second: true},
		Sample{Op: batchNorm{1e-5}, In: []graph.Type{f(2, 1, 17), f(1), f(1)}, Second: true},
		Sample{Op: batchNorm{0.1}, In: []graph.Type{f(7, 3), f(3), f(3)}, Second: true},
		Sample{Op: batchNorm{0.1}, In: []graph.Type{f(1, 3, 1, 1), f(3), f(3)}, Second: true},
		Sample{Op: batchNorm{0.1}, In: []graph.Type{f(3, 70, 17, 17), f(70), f(70)}, Tol: 3e-2},
		Sample{Op: batchNorm{0.1}, In: []graph.Type{f(130, 150), f(150), f(150)}, Tol: 3e-2},
		Sample{Op: batchNorm{0.1}, In: []graph.Type{f(3, 5, 11, 10), f(5), f(5)}, Tol: 3e-2},
		Sample{Op: runningAverage{0.9}, In: []graph.Type{f(5, 17), f(5, 17)}, Update: 1},
	)
}
