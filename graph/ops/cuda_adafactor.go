package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/tensor"
)

// adafactorPlan is the geometry of an update: what is factored, how sums are in parts, and
// where they are in the scratch.
type adafactorPlan struct {
	factors
	factored         bool
	elements         int
	rowSums, colSums partial // of squares of the gradient
	means            partial // of statistics of rows
	squares          partial // of updates and elements
	rows, cols, mean uint64  // where statistics, and then factors, are
	room             uint64  // for parts of them
	updates, weights uint64
	total            uint64 // bytes
}

// planOf lays the scratch out from an address on.
func (o adafactor) planOf(t tensor.Type, at uint64) adafactorPlan {
	p := adafactorPlan{elements: t.Elems(), factors: factors{1, 1, 1, 1, 1}}
	start := at
	take := func(n int) uint64 {
		from := at
		at += bytesOf(n)
		return from
	}
	p.squares = reduction{outer: 1, n: p.elements, inner: 1}.inParts(min(1024,
		p.elements/longRow))
	p.updates, p.weights = take(p.squares.parts), take(p.squares.parts)
	first, second, ok := AdafactorAxes(t, o.MinDim)
	if p.factored = ok; ok {
		f := newFactors(t, first, second)
		p.factors = f
		p.rowSums = partsOf(f.rows(), f.q, f.c)
		p.colSums = partsOf(f.a, f.p, f.b*f.width())
		p.means = partsOf(f.a, f.p, f.b*f.c)
		p.rows, p.cols, p.mean = take(f.rowStats()), take(f.colStats()), take(f.a*f.b*f.c)
		p.room = take(int(max(p.rowSums.scratch(1), p.colSums.scratch(1), p.means.scratch(1))))
	}
	p.total = at - start
	return p
}

// partsOf is a sum over n of outer·inner columns, or rows, in parts.
func partsOf(outer, n, inner int) partial {
	r := reduction{outer: outer, n: n, inner: inner}
	if inner == 1 {
		return r.rowParts()
	}
	return r.columnParts()
}

// summed adds squares up, or elements, by way of the room where they are in parts.
func (p adafactorPlan) summed(s partial, to, from uint64, squared bool) []cuda.Command {
	call := &cuda.Call{In: []cuda.Operand{{Addr: from}}, Out: []cuda.Operand{{Addr: to}},
		Scratch: p.room}
	first := squared
	return s.stages(call, func(s partial, to, from uint64) cuda.Command {
		if !first {
			return s.add(to, from)
		}
		first = false
		if s.inner == 1 {
			return overRows("sum_squares", s.outer*s.parts, s.per, s.args(to, from)...)
		}
		return overElements("square_columns", s.outer*s.parts*s.inner, s.args(to, from, s.inner)...)
	})
}

func (o adafactor) update(c *cuda.Call, gate opening) ([]cuda.Command, error) {
	if elems(c.In[0]) == 0 {
		return nil, nil
	}
	last := len(c.In) - 1
	p := o.planOf(c.In[0].Type, c.Scratch)
	w, v, g, lr, step := c.In[0], c.In[last-3], c.In[last-2], c.In[last-1], c.In[last]
	f := p.factors
	shape := []any{f.a, f.p, f.b, f.q, f.c}
	var list []cuda.Command
	if p.factored {
		list = o.averages(c, p, gate)
	}
	squares := append(gate.args(shape...), p.squares.args(p.updates, p.weights, w, v, p.rows, g,
		step, o.Decay, o.Eps1)...)
	applied := append(gate.args(shape...), w, v, p.rows, g, p.updates, p.weights, lr, p.elements,
		p.squares.parts, o.Eps2, o.Clip, o.Absolute)
	return append(list, overRows("adafactor_squares", p.squares.parts, p.squares.per, squares...),
		overElements("adafactor", p.elements, applied...)), nil
}

// averages are the moving averages of rows and columns, and the rows' factors.
func (o adafactor) averages(c *cuda.Call, p adafactorPlan, gate opening) []cuda.Command {
	vr, vc, g, step := c.In[1], c.In[2], c.In[3], c.In[5]
	f := p.factors
	moving := func(v cuda.Operand, sums uint64, of int) cuda.Command {
		n := elems(v)
		return overElements("moving_means", n, gate.args(v, sums, step, n, of, o.Decay,
			o.Eps1)...)
	}
	list := p.summed(p.rowSums, p.rows, g.Addr, true)
	list = append(list, moving(vr, p.rows, f.q))
	list = append(list, p.summed(p.colSums, p.cols, g.Addr, true)...)
	list = append(list, moving(vc, p.cols, f.p))
	list = append(list, p.summed(p.means, p.mean, vr.Addr, false)...)
	return append(list, overElements("row_factors", f.rowStats(), p.rows, vr, p.mean,
		f.rowStats(), f.p, f.b*f.c))
}

func init() {
	cuda.Register(updateCUDA[adafactor], func(o adafactor, in, _ []graph.Type) int64 {
		return int64(o.planOf(in[0], 0).total)
	})
}
