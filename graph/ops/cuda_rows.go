package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// lastRows are the rows of the last axis and their length.
func lastRows(o cuda.Operand) (rows, n int) { return o.Type.Rows(1), o.Type.Size(-1) }

func softmaxCUDA(o softmax, c *cuda.Call) ([]cuda.Command, error) {
	rows, n := lastRows(c.In[0])
	mode := int32(flag(o.Log) | flag(o.Masked)<<1)
	return only(overRows(kernelOf("softmax", c.In[0]), rows, n, c.Out[0], c.In[0], rows, n, mode))
}

func softmaxGradCUDA(_ softmaxGrad, c *cuda.Call) ([]cuda.Command, error) {
	rows, n := lastRows(c.In[0])
	return only(overRows(kernelOf("softmax_grad", c.In[0]), rows, n, c.Out[0], c.In[0], c.In[1],
		rows, n))
}

func crossEntropyCUDA(o crossEntropy, c *cuda.Call) ([]cuda.Command, error) {
	rows, n := lastRows(c.In[0])
	off := low(o.Smoothing, n)
	return only(overRows(kernelOf("cross_entropy", c.In[0]), rows, n, c.Out[0], c.In[0], c.In[1],
		rows, n, 1-o.Smoothing-off, off))
}

func crossEntropyGradCUDA(o crossEntropyGrad, c *cuda.Call) ([]cuda.Command, error) {
	rows, n := lastRows(c.In[0])
	off := low(o.Smoothing, n)
	return only(overRows(kernelOf("cross_entropy_grad", c.In[0]), rows, n, c.Out[0], c.In[0],
		c.In[1], c.In[2], rows, n, 1-o.Smoothing-off, off))
}

func correctCUDA(_ correct, c *cuda.Call) ([]cuda.Command, error) {
	rows, n := lastRows(c.In[0])
	return only(overRows(kernelOf("correct", c.In[0]), rows, n, c.Out[0], c.In[0], c.In[1], rows,
		n))
}

func keptLabelsCUDA(o keptLabels, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.In[0])
	return only(overElements("kept_labels", n, c.Out[0], c.Out[1], c.In[0], n, o.Ignore))
}

// rowNorm is a norm of rows: those of the last axis, or from an axis on.
type rowNorm struct {
	planes   // n rows of c channels, each of s elements
	eps      float32
	centered bool // or the root mean square
}

func lastAxis(t tensor.Type) planes { return planes{t.Rows(1), t.Size(-1), 1} }

// forward has no bias where its address is 0.
func (r rowNorm) forward(c *cuda.Call, bias uint64) ([]cuda.Command, error) {
	return only(overRows(kernelOf("row_norm", c.In[0]), r.n, r.c*r.s, c.Out[0], c.In[0], c.In[1],
		bias, r.n, r.c, r.s, r.eps, r.centered))
}

func (r rowNorm) backward(c *cuda.Call) cuda.Command {
	return overRows(kernelOf("norm_grad", c.In[0]), r.n, r.c*r.s, c.Out[0], c.In[0], c.In[1],
		c.In[2], r.n, r.c, r.s, r.eps, r.centered)
}

// moments puts the rows' moments into the scratch.
func (r rowNorm) moments(c *cuda.Call) cuda.Command {
	return overRows(kernelOf("norm_moments", c.In[0]), r.n, r.c*r.s, c.Scratch, c.In[0], r.n,
		r.c*r.s, r.eps, r.centered)
}

// scaleParts are the parts of the sum over rows.
func (r rowNorm) scaleParts() partial {
	return reduction{outer: 1, n: r.n, inner: r.c}.columnParts()
}

// scale is the gradient of the scale: the moments of the rows, parts of the sum, the sum.
func (r rowNorm) scale(c *cuda.Call) ([]cuda.Command, error) {
	if r.n == 0 {
		return only(wiped(c.Out[0]))
	}
	p, sums := r.scaleParts(), c.Out[0].Addr
	if p.parts > 1 {
		sums = c.Scratch + 8*uint64(r.n)
	}
	list := []cuda.Command{r.moments(c), overElements(kernelOf("norm_scale", c.In[0]), p.parts*r.c,
		p.args(sums, c.In[0], c.In[1], c.Scratch, r.c)...)}
	if p.parts > 1 {
		f := p.folded()
		list = append(list, overElements("sum_columns", r.c, f.args(c.Out[0], sums, r.c)...))
	}
	return list, nil
}

func (r rowNorm) scaleScratch() int64 { return 8*int64(r.n) + r.scaleParts().scratch(4) }

func layerNormCUDA(o layerNorm, c *cuda.Call) ([]cuda.Command, error) {
	return rowNorm{lastAxis(c.In[0].Type), o.Eps, true}.forward(c, c.In[2].Addr)
}

func layerNormGradCUDA(o layerNormGrad, c *cuda.Call) ([]cuda.Command, error) {
	return only(rowNorm{lastAxis(c.In[0].Type), o.Eps, true}.backward(c))
}

func layerScaleGradCUDA(o layerScaleGrad, c *cuda.Call) ([]cuda.Command, error) {
	return rowNorm{lastAxis(c.In[0].Type), o.Eps, true}.scale(c)
}

func rmsNormCUDA(o rmsNorm, c *cuda.Call) ([]cuda.Command, error) {
	return rowNorm{lastAxis(c.In[0].Type), o.Eps, false}.forward(c, 0)
}

func rmsNormGradCUDA(o rmsNormGrad, c *cuda.Call) ([]cuda.Command, error) {
	return only(rowNorm{lastAxis(c.In[0].Type), o.Eps, false}.backward(c))
}

func rmsScaleGradCUDA(o rmsScaleGrad, c *cuda.Call) ([]cuda.Command, error) {
	return rowNorm{lastAxis(c.In[0].Type), o.Eps, false}.scale(c)
}

func layerOverCUDA(o layerOver, c *cuda.Call) ([]cuda.Command, error) {
	return rowNorm{o.planes(c.In[0].Type), o.Eps, true}.forward(c, c.In[2].Addr)
}

// layerOverGradCUDA has the gradients of scale and bias first: that of x may take the place of
// what they read.
func layerOverGradCUDA(o layerOverGrad, c *cuda.Call) ([]cuda.Command, error) {
	r := rowNorm{layerOver(o).planes(c.In[0].Type), o.Eps, true}
	scales := c.Scratch + 8*uint64(r.n)
	biases := scales + 4*uint64(r.n*r.c)
	fold := func(to cuda.Operand, from uint64) cuda.Command {
		p := reduction{outer: 1, n: r.n, inner: r.c}.inParts(1)
		return overElements("sum_columns", r.c, p.args(to, from, r.c)...)
	}
	if elems(c.In[0]) == 0 {
		return []cuda.Command{wiped(c.Out[1]), wiped(c.Out[2])}, nil
	}
	return []cuda.Command{r.moments(c),
		overRows(kernelOf("norm_channels", c.In[0]), r.n*r.c, r.s, scales, biases, c.In[0], c.In[2],
			c.Scratch, r.n, r.c, r.s),
		fold(c.Out[1], scales), fold(c.Out[2], biases), r.backward(c)}, nil
}

func init() {
	cuda.Register(softmaxCUDA, nil)
	cuda.Register(softmaxGradCUDA, nil)
	cuda.Register(crossEntropyCUDA, nil)
	cuda.Register(crossEntropyGradCUDA, nil)
	cuda.Register(correctCUDA, nil)
	cuda.Register(keptLabelsCUDA, nil)
	cuda.Register(layerNormCUDA, nil)
	cuda.Register(layerNormGradCUDA, nil)
	cuda.Register(layerScaleGradCUDA, func(_ layerScaleGrad, in, _ []graph.Type) int64 {
		return rowNorm{planes: lastAxis(in[0])}.scaleScratch()
	})
	cuda.Register(rmsNormCUDA, nil)
	cuda.Register(rmsNormGradCUDA, nil)
	cuda.Register(rmsScaleGradCUDA, func(_ rmsScaleGrad, in, _ []graph.Type) int64 {
		return rowNorm{planes: lastAxis(in[0])}.scaleScratch()
	})
	cuda.Register(layerOverCUDA, nil)
	cuda.Register(layerOverGradCUDA, func(o layerOverGrad, in, _ []graph.Type) int64 {
		p := layerOver(o).planes(in[0])
		return 8 * int64(p.n) * int64(1+p.c)
	})
}
