package ops

import (
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// partial is a reduction whose rows are reduced in parts, and then the parts, so that few long
// sums occupy a GPU. What the parts are depends on the shape alone.
type partial struct {
	reduction
	per, parts int
}

// columnParts are those of columns, each for a thread.
func (r reduction) columnParts() partial {
	const most, least = 1 << 8, 1 << 5
	return r.inParts(min(most, r.n/least))
}

func (r reduction) inParts(parts int) partial {
	parts = max(1, min(parts, r.n))
	per := max(1, (r.n+parts-1)/parts)
	return partial{r, per, max(1, (r.n+per-1)/per)}
}

// sumParts are those of a sum: the host's, so that it has the host's bits.
func (r reduction) sumParts() partial {
	p := r.inParts(r.blocks)
	p.parts = r.blocks // of which the last may be empty, as on the host
	return p
}

// scratch is the bytes of the parts' results.
func (p partial) scratch(size int64) int64 {
	if p.parts == 1 {
		return 0
	}
	return int64(p.outer) * int64(p.parts) * int64(p.inner) * size
}

// folded is the reduction of the parts.
func (p partial) folded() partial {
	p.n, p.per, p.parts = p.parts, p.parts, 1
	return p
}

// args are the geometry as kernels take it, and more.
func (p partial) args(more ...any) []any {
	return append([]any{p.outer, p.n, p.per, p.parts}, more...)
}

// stages runs a reduction, of parts into the scratch where there are several.
func (p partial) stages(c *cuda.Call, run func(p partial, to uint64, x cuda.Operand) cuda.Command,
) []cuda.Command {
	if p.parts == 1 {
		return []cuda.Command{run(p, c.Out[0].Addr, c.In[0])}
	}
	parts := cuda.Operand{Addr: c.Scratch, Type: c.Out[0].Type} // of that element type
	return []cuda.Command{run(p, c.Scratch, c.In[0]), run(p.folded(), c.Out[0].Addr, parts)}
}

// add adds up rows of neighbours, short rows, or columns.
func (p partial) add(to uint64, x cuda.Operand) cuda.Command {
	rows := p.outer * p.parts
	switch {
	case p.side == 0:
		return overWarps(kernelOf("sum_rows", x), rows, p.args(to, x)...)
	case p.side > 1:
		return launched(kernelOf("sum_beside", x), rows, p.args(to, x, p.inner, p.side)...)
	}
	return overElements(kernelOf("sum_columns", x), rows*p.inner, p.args(to, x, p.inner)...)
}

// summed is a sum whose parts its geometry says.
type summed interface{ geometry(t graph.Type) reduction }

func sumCUDA[O summed](o O, c *cuda.Call) ([]cuda.Command, error) {
	if elems(c.In[0]) == 0 {
		return []cuda.Command{wiped(c.Out[0])}, nil
	}
	return o.geometry(c.In[0].Type).sumParts().stages(c, partial.add), nil
}

func sumScratch[O summed](o O, in, _ []graph.Type) int64 {
	return o.geometry(in[0]).sumParts().scratch(4)
}

func sumPartCUDA(o sumPart, c *cuda.Call) ([]cuda.Command, error) {
	x, inner := c.In[len(c.In)-1], elems(c.Out[0])/o.Blocks
	per := (o.Rows + o.Blocks - 1) / o.Blocks
	return only(overElements("sum_part", o.Blocks*inner, c.Out[0], c.In[0], x, o.Blocks, per,
		o.From, x.Type.Size(0), inner))
}

// squares is a sum in spans.
func squares(n int) partial {
	return partial{reduction{outer: 1, n: n, inner: 1}, span, spans(n)}
}

func sumSquaresCUDA(o sumSquares, c *cuda.Call) ([]cuda.Command, error) {
	p := squares(elems(c.In[0]))
	if p.parts == 0 {
		return []cuda.Command{wiped(c.Out[0])}, nil
	}
	wide := c.Scratch + uint64(bytesOf(p.parts))
	if !o.Wide {
		wide = 0
	}
	list := []cuda.Command{overWarps(kernelOf("sum_squares", c.In[0]), p.parts,
		p.args(c.Scratch, wide, c.In[0])...),
		launched("sum_total", 1, c.Out[0], c.Scratch, p.parts)}
	if o.Wide {
		list = append(list, launched("sum_total", 1, c.Out[0].Addr+4, wide, p.parts))
	}
	return list, nil
}

func normFactorCUDA(o normFactor, c *cuda.Call) ([]cuda.Command, error) {
	return only(launched("norm_factor", 1, c.Out[0], c.In[0], o.Limit))
}

// dataKind is an element type as kernels of several tell them apart.
func dataKind(d graph.DType) int32 {
	switch d {
	case graph.F32:
		return 0
	case graph.I32:
		return 1
	}
	return 2
}

func (o extreme) parts(t tensor.Type) partial {
	return o.geometry(t).columnParts()
}

func extremeCUDA(o extreme, c *cuda.Call) ([]cuda.Command, error) {
	kind := dataKind(c.In[0].Type.DType)
	return o.parts(c.In[0].Type).stages(c, func(p partial, to uint64,
		x cuda.Operand) cuda.Command {
		return overElements("extreme", p.outer*p.parts*p.inner,
			p.args(to, x, p.inner, o.Least, kind)...)
	}), nil
}

func extremeScratch(o extreme, in, _ []graph.Type) int64 {
	return o.parts(in[0]).scratch(in[0].DType.Size())
}

func foldCUDA(o fold, c *cuda.Call) ([]cuda.Command, error) {
	kind := int32(c.In[0].Type.DType)
	return o.geometry(c.In[0].Type).sumParts().stages(c, func(p partial, to uint64,
		x cuda.Operand) cuda.Command {
		return overElements("fold_numbers", p.outer*p.parts*p.inner,
			p.args(to, x, p.inner, int32(foldings[o.Kind].point().kind), kind)...)
	}), nil
}

func argCUDA(o arg, c *cuda.Call) ([]cuda.Command, error) {
	t := c.In[0].Type
	kind, r := dataKind(t.DType), sum{Lo: o.Axis, Hi: o.Axis + 1}.geometry(t)
	if r.inner == 1 && kind < 2 {
		return only(overRows("arg_rows", r.outer, r.n, c.Out[0], c.In[0], r.outer, r.n, o.Least,
			kind))
	}
	return only(overElements("arg_columns", r.outer*r.inner, c.Out[0], c.In[0], r.outer, r.n,
		r.inner, o.Least, int32(t.DType)))
}

func prodCUDA(o prod, c *cuda.Call) ([]cuda.Command, error) {
	r := sum{Lo: o.Lo, Hi: o.Hi}.geometry(c.In[0].Type)
	return only(overElements("product", r.outer*r.inner, c.Out[0], c.In[0], r.outer, r.n, r.inner))
}

func othersCUDA(o others, c *cuda.Call) ([]cuda.Command, error) {
	r, tangent := o.geometry(c.In[0].Type), uint64(0)
	if o.Tangent {
		tangent = c.In[1].Addr
	}
	return only(overElements("others", r.outer*r.inner, c.Out[0], c.In[0], tangent, c.Scratch,
		r.outer, r.n, r.inner))
}

func cumSumCUDA(o cumSum, c *cuda.Call) ([]cuda.Command, error) {
	t := c.In[0].Type
	r := sum{Lo: o.Axis, Hi: o.Axis + 1}.geometry(t)
	return only(overElements("cumulate_columns", r.outer*r.inner, c.Out[0], c.In[0], r.outer, r.n,
		r.inner, o.Reverse, o.Exclusive, int32(t.DType)))
}

func topKCUDA(o topK, c *cuda.Call) ([]cuda.Command, error) {
	n, rows := c.In[0].Type.Size(-1), c.In[0].Type.Rows(1)
	return only(overRows(kernelOf("top_k", c.In[0]), rows, n, c.Out[0], c.Out[1], c.In[0], rows, n,
		o.K, o.Least))
}

func logSumExpCUDA(_ logSumExp, c *cuda.Call) ([]cuda.Command, error) {
	n, rows := c.In[0].Type.Size(-1), c.In[0].Type.Rows(1)
	if n == 0 {
		return only(cuda.Fill{Addr: c.Out[0].Addr, Words: int64(rows),
			Word: math.Float32bits(float32(math.Inf(-1)))})
	}
	return only(overRows(kernelOf("log_sum_exp", c.In[0]), rows, n, c.Out[0], c.In[0], rows, n))
}

func init() {
	cuda.Register(sumCUDA[sum], sumScratch[sum])
	cuda.Register(sumCUDA[sumLike], sumScratch[sumLike])
	cuda.Register(sumPartCUDA, nil)
	cuda.Register(sumSquaresCUDA, func(_ sumSquares, in, out []graph.Type) int64 {
		return int64(bytesOf(spans(in[0].Elems()))) * int64(out[0].Elems())
	})
	cuda.Register(normFactorCUDA, nil)
	cuda.Register(extremeCUDA, extremeScratch)
	cuda.Register(foldCUDA, func(o fold, in, _ []graph.Type) int64 {
		return o.geometry(in[0]).sumParts().scratch(in[0].DType.Size())
	})
	cuda.Register(argCUDA, nil)
	cuda.Register(prodCUDA, nil)
	cuda.Register(othersCUDA, func(_ others, in, _ []graph.Type) int64 {
		return 16 * int64(in[0].Elems())
	})
	cuda.Register(cumSumCUDA, nil)
	cuda.Register(topKCUDA, nil)
	cuda.Register(logSumExpCUDA, nil)
}
