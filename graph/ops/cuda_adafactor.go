package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// adafactorPlan is the geometry of an update, and where what it computes on the way is in the
// scratch. All sums have the host's order.
type adafactorPlan struct {
	factors
	factored         bool
	elements, parts  int    // parts of which there are sums of squares: rows, or spans
	means            uint64 // sums of the statistics of rows, in 64 bits
	rows, cols       uint64 // sums of squares in blocks, and then the rows' factors
	updates, weights uint64 // sums of squares of parts
	rate             uint64
	total            uint64 // bytes
}

// planOf lays the scratch out from an address on.
func (o adafactor) planOf(t tensor.Type, at uint64) adafactorPlan {
	p := adafactorPlan{elements: t.Elems(), parts: spans(t.Elems()),
		factors: factors{1, 1, 1, 1, 1}}
	start := at
	take := func(n int) uint64 {
		from := at
		at += bytesOf(n)
		return from
	}
	if first, second, ok := AdafactorAxes(t, o.MinDim); ok && p.elements > 0 {
		f := newFactors(t, first, second)
		p.factors, p.factored, p.parts = f, true, f.rows()
		p.means = take(2 * f.a * f.b * f.c)
		p.rows, p.cols = take(f.rowStats()*f.colBlocks()), take(f.colStats()*f.rowBlocks())
	}
	p.updates, p.weights, p.rate = take(p.parts), take(p.parts), take(1)
	p.total = at - start
	return p
}

// shape is the geometry as kernels take it, and more.
func (p adafactorPlan) shape(more ...any) []any {
	return append([]any{p.a, p.p, p.b, p.q, p.c, blockRows, p.blockQ()}, more...)
}

func (o adafactor) update(c *cuda.Call, gate opening) ([]cuda.Command, error) {
	if elems(c.In[0]) == 0 {
		return nil, nil
	}
	last := len(c.In) - 1
	p := o.planOf(c.In[0].Type, c.Scratch)
	w, v, g, lr, step := c.In[0], c.In[last-3], c.In[last-2], c.In[last-1], c.In[last]
	var list []cuda.Command
	if p.factored {
		list = append(o.averages(c, p, gate), overWarps("adafactor_squares", p.parts,
			p.shape(p.updates, p.weights, w, v, p.rows, g)...))
	} else {
		list = []cuda.Command{overWarps("adafactor_moments", p.parts, gate.args(p.updates,
			p.weights, w, v, g, step, p.elements, o.Decay, o.Eps1)...)}
	}
	return append(list,
		launched("adafactor_rate", 1, p.rate, p.updates, p.weights, lr, p.elements, p.parts,
			o.Eps2, o.Clip, o.Absolute),
		overElements("adafactor", p.elements, gate.args(p.shape(w, v, p.rows, g, p.rate,
			p.elements)...)...)), nil
}

// averages are the moving averages of rows and columns, and the rows' factors.
func (o adafactor) averages(c *cuda.Call, p adafactorPlan, gate opening) []cuda.Command {
	vr, vc, g, step := c.In[1], c.In[2], c.In[3], c.In[5]
	moving := func(v cuda.Operand, sums uint64, blocks, of int) cuda.Command {
		n := elems(v)
		return overShares("moving_means", n, gate.args(v, sums, step, n, blocks, of, o.Decay,
			o.Eps1)...)
	}
	n := p.b * p.c // distance between neighbours along p
	return []cuda.Command{
		overWarps("adafactor_rows", p.parts*p.colBlocks(), p.shape(p.rows, g)...),
		overElements("adafactor_columns", p.colStats()*p.rowBlocks(), p.shape(p.cols, g)...),
		moving(vr, p.rows, p.colBlocks(), p.q),
		moving(vc, p.cols, p.rowBlocks(), p.p),
		launched("row_sums", p.a*n, p.means, vr, p.a, p.p, n),
		overElements("row_factors", p.rowStats(), p.rows, vr, p.means, p.a, p.p, n),
	}
}

func init() {
	cuda.Register(updateCUDA[adafactor], func(o adafactor, in, _ []graph.Type) int64 {
		return int64(o.planOf(in[0], 0).total)
	})
}
