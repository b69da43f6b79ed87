package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// LayerNormOver is a layer norm over axis from and all that follow: over channels,
// height and width of images for from = 1. Scale and bias are f32[c], one for
// every step along axis from, as in convolutional critics (Gulrajani et al.
// 2017). It can be differentiated any number of times.
func LayerNormOver(x, scale, bias graph.Value, from int, eps float32) graph.Value {
	if x.Valid() {
		from = axis(from, x.Type().Rank())
	}
	return apply(layerOver{From: from, Eps: eps}, x, scale, bias)
}

// LayerNormComposed is LayerNormOver as a composition of sums and arithmetic.
func LayerNormComposed(x, scale, bias graph.Value, from int, eps float32) graph.Value {
	if !x.Valid() {
		return x
	}
	t := x.Type()
	if from = axis(from, t.Rank()); from < 0 {
		x.Graph().Fail(fmt.Errorf("%s has no such axis to normalise from", t))
		return graph.Value{}
	}
	if err := checkEpsilon(eps); err != nil {
		x.Graph().Fail(err)
		return graph.Value{}
	}
	axes := axesFrom(from, t.Rank())
	centered := Sub(x, meanKeep(x, axes...))
	inv := Rsqrt(AddScalar(meanKeep(Square(centered), axes...), eps))
	return Add(Mul(Mul(centered, inv), alongAxis(scale, from, x)), alongAxis(bias, from, x))
}

// axesFrom are the axes from one on.
func axesFrom(first, rank int) []int {
	var axes []int
	for i := first; i < rank; i++ {
		axes = append(axes, i)
	}
	return axes
}

type layerOver struct {
	From int
	Eps  float32
}

func (layerOver) Name() string { return "layer-norm-over" }

func (o layerOver) Infer(in []graph.Type) ([]graph.Type, error) {
	if _, err := channelled(in, o.From, o.Eps, false, true, true); err != nil {
		return nil, err
	}
	return in[:1:1], nil
}

func (layerOver) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 7) }

// InPlace: a row is read before it is overwritten.
func (layerOver) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (o layerOver) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return applyN(3, layerOverGrad(o), n.In[0], n.In[1], dout[0])
}

// planes is the geometry of a value that is normalised from an axis on, the axes
// before it merged.
func (o layerOver) planes(t graph.Type) planes {
	part := func(from, to int) int { return graph.Type{Shape: t.Shape[from:to]}.Elems() }
	return planes{part(0, o.From), t.Size(o.From), part(o.From+1, t.Rank())}
}

// row visits the channels of a row.
func (p planes) row(f func(ch, lo, hi int)) {
	for ch := range p.c {
		f(ch, ch*p.s, (ch+1)*p.s)
	}
}

func layerOverCPU(o layerOver, c *kernel.Call) error {
	x, scale, bias, out := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.Out[0].F32()
	p := o.planes(c.In[0].Type)
	rows(c, len(x), p.c*p.s, func(lo, hi int) {
		y, x := out[lo:hi], x[lo:hi]
		mean, inv := vec.Moments(x, o.Eps)
		p.row(func(ch, lo, hi int) {
			vec.Affine(y[lo:hi], x[lo:hi], mean, inv*scale[ch], bias[ch])
		})
	})
	return nil
}

// layerOverGrad is the gradient of layerOver by x, scale and bias, for operands x,
// scale and the gradient d of the result. With y the normalised row and
// g = d·scale: inv·(g − mean(g) − y·mean(g·y)), Σ d·y and Σ d.
type layerOverGrad struct {
	From int
	Eps  float32
}

func (layerOverGrad) Name() string { return "layer-norm-over-grad" }

func (o layerOverGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	c, err := channelled(in, o.From, o.Eps, false, true, false)
	if err != nil {
		return nil, err
	}
	return []graph.Type{in[0], c, c}, nil
}

// Cost: the scratch holds every row's sums, and a normalised row for every block.
func (o layerOverGrad) Cost(in, out []graph.Type) graph.Cost {
	c := streaming(in, out, 14)
	p := layerOver(o).planes(in[0])
	n := p.c * p.s
	c.Scratch = 4 * (2*int64(p.n)*int64(p.c) + int64(blocksOf(p.n, n, 1))*int64(n))
	return c
}

// InPlace: a row is done with when it is overwritten.
func (layerOverGrad) InPlace(_, _ []graph.Type) []int { return []int{2, 0} }

func (o layerOverGrad) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x := n.In[0]
	axes := axesFrom(o.From, x.Type().Rank())
	s := normSecond{x: x, scale: n.In[1], d: n.In[2], channel: o.From, axes: axes, eps: o.Eps}
	s.again = func(scale, d graph.Value) graph.Value { return applyN(3, o, x, scale, d)[0] }
	dx, dscale, dd := s.gradients(dout)
	return []graph.Value{dx, dscale, dd}
}

// form16: rows are converted one by one.
func (o layerOverGrad) form16() string { return "hfh>hff" }

// scratch16: beside, every block has a row of x, of d and of the result.
func (o layerOverGrad) scratch16(in, out []graph.Type) int64 {
	p := layerOver(o).planes(in[0])
	return 8 * (int64(p.n)*int64(p.c) + 2*int64(o.blocks(in[0], p))*int64(p.c)*int64(p.s))
}

// blocks is the number of blocks of rows: few where rows are converted.
func (layerOverGrad) blocks(x graph.Type, p planes) int {
	blocks := blocksOf(p.n, p.c*p.s, 1)
	if half(x) {
		blocks = min(blocks, (p.n+3)/4)
	}
	return blocks
}

func layerOverGradCPU(o layerOverGrad, c *kernel.Call) error {
	x, scale, d, out := c.In[0], c.In[1].F32(), c.In[2], c.Out[0]
	p := layerOver(o).planes(x.Type)
	n := p.c * p.s
	dscale, dbias, buf := floats(c.Scratch), floats(c.Scratch)[p.n*p.c:],
		floats(c.Scratch)[2*p.n*p.c:]
	blocks, rows := o.blocks(x.Type, p), 1
	if half(x.Type) {
		rows = 4
	}
	c.Pool.Run(blocks, func(b int) {
		buf := buf[b*rows*n : (b+1)*rows*n]
		y := buf[:n]
		first, end := block(b, blocks, p.n)
		for row := first; row < end; row++ {
			x, d, to := rowAs(x, row, n, buf, 1), rowAs(d, row, n, buf, 2), rowIn(out, row, n, buf)
			mean, inv := vec.Moments(x, o.Eps)
			vec.Affine(y, x, mean, inv, 0)
			sums := [2][]float32{dscale[row*p.c : (row+1)*p.c], dbias[row*p.c : (row+1)*p.c]}
			p.rowGrad(to, y, scale, d, inv, sums)
			if half(out.Type) {
				vec.BF16FromF32(out.U16()[row*n:(row+1)*n], to)
			}
		}
	})
	foldRows(c.Out[1].F32(), dscale[:p.n*p.c])
	foldRows(c.Out[2].F32(), dbias[:p.n*p.c])
	return nil
}

// rowAs is a row of n elements as f32, converted to row at of buf if it is in bfloat16.
func rowAs(v tensor.View, row, n int, buf []float32, at int) []float32 {
	if !half(v.Type) {
		return v.F32()[row*n : (row+1)*n]
	}
	x := buf[at*n : (at+1)*n]
	vec.F32FromBF16(x, v.U16()[row*n:(row+1)*n])
	return x
}

// rowIn is where a row of a result is made as f32: the last of buf if it is in bfloat16.
func rowIn(v tensor.View, row, n int, buf []float32) []float32 {
	if !half(v.Type) {
		return v.F32()[row*n : (row+1)*n]
	}
	return buf[3*n : 4*n]
}

// rowGrad is the gradient of a row with normalised elements y, and what it adds
// to those of the scale and the bias.
func (p planes) rowGrad(out, y, scale, d []float32, inv float32, sums [2][]float32) {
	var along, mean float64
	p.row(func(ch, lo, hi int) {
		sums[0][ch], sums[1][ch] = vec.Dot(d[lo:hi], y[lo:hi]), vec.Sum(d[lo:hi])
		along += float64(float64(scale[ch]) * float64(sums[0][ch]))
		mean += float64(float64(scale[ch]) * float64(sums[1][ch]))
		vec.MulScalar(out[lo:hi], d[lo:hi], scale[ch])
	})
	n := float64(len(y))
	vec.Axpy(out, -float32(along/n), y)
	vec.AddScalar(out, out, -float32(mean/n))
	vec.MulScalar(out, out, inv)
}

// foldRows adds up the rows of x, each as long as dst; of none the sum is zero.
func foldRows(dst, x []float32) {
	first := copy(dst, x)
	clear(dst[first:])
	for x = x[first:]; len(x) > 0; x = x[len(dst):] {
		vec.Add(dst, dst, x[:len(dst)])
	}
}

func init() {
	kernel.Register(kernel.CPU, layerOverCPU)
	kernel.Register(kernel.CPU, layerOverGradCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: layerOver{1, 0.1}, In: []graph.Type{f(3, 5, 2, 3), f(5), f(5)}, Second: true},
		Sample{Op: layerOver{0, 0.1}, In: []graph.Type{f(3, 5), f(3), f(3)}, Second: true},
		Sample{Op: layerOver{2, 0.1}, In: []graph.Type{f(2, 3, 17), f(17), f(17)}, Second: true},
		Sample{Op: layerOver{1, 0.1}, In: []graph.Type{f(2, 1, 5), f(1), f(1)}, Second: true},
		Sample{Op: layerOverGrad{1, 0.1}, In: []graph.Type{f(3, 5, 2, 3), f(5), f(3, 5, 2, 3)},
			Second: true},
		Sample{Op: layerOverGrad{1, 0.1}, In: []graph.Type{f(17, 3, 5), f(3), f(17, 3, 5)},
			Second: true},
	)
}
