package ops

import (
	"math"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/quant"
)

// linearLosses are losses and gradients of so many rows, with several blocks of rows or one.
func linearLosses() (list []Sample) {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	for _, trans := range []bool{false, true} {
		for _, c := range longtest.Some(4, []struct{ n, d, v int }{{1, 3, 5}, {40, 8, 33},
			{700, 20, 50}, {1100, 17, 129}, {500, 600, 66000}}) {
			w := f(c.d, c.v)
			if trans {
				w = f(c.v, c.d)
			}
			o := linearLoss{Trans: trans, Smoothing: 0.1}
			s := Sample{Op: o, In: []graph.Type{f(c.n, c.d), w, tensor.Of(graph.I32, c.n)},
				Fill: fills{2: below(c.v)}}
			g := s
			g.Op, g.In = linearLossGrad(o), append(s.In[:3:3], f(c.n))
			list = append(list, s, g)
			if c.n == 700 {
				g.In = []graph.Type{f(7, 100, c.d), w, tensor.Of(graph.I32, 7, 100), f(7, 100)}
				list = append(list, g)
			}
			list = append(list, fixed(s, fixedLoss{Of: o})...)
		}
	}
	for _, format := range []quant.Format{quant.Q8_0, quant.BF16} {
		o := fixedLoss{Of: linearLoss{Trans: true}, Format: format, Width: 512}
		w, fill := tensor.Of(graph.BF16, 1500, 512), fills{2: below(1500)}
		if format == quant.Q8_0 {
			w, fill[1] = tensor.Of(graph.U8, 1500, 544), packedRows(format, 512)
		}
		s := Sample{In: []graph.Type{f(7, 75, 512), w, tensor.Of(graph.I32, 7, 75)}, Fill: fill}
		list = append(list, fixed(s, o)...)
	}
	return list
}

// fixed are the loss, and its gradient, by the matrix of a sample, which is not trained.
func fixed(s Sample, o fixedLoss) []Sample {
	g := s
	s.Op, g.Op = o, fixedLossGrad(o)
	g.In = append(s.In[:3:3], tensor.Of(graph.F32, s.In[2].Sizes()...))
	return []Sample{s, g}
}

// apart computes what a sample stands for, operation by operation.
func (s Sample) apart(t *testing.T, in []tensor.View) (out []tensor.View) {
	t.Helper()
	g, known := graph.New(), map[graph.Value]tensor.View{}
	var leaves []graph.Value
	for i, v := range in {
		leaf := g.Input(string(rune('a'+i)), v.Type)
		leaves, known[leaf] = append(leaves, leaf), v
	}
	results := Apart(s.Op, leaves, func(_ string, op graph.Op, in ...graph.Value) graph.Value {
		part, views := Sample{Op: op}, []tensor.View{}
		for _, v := range in {
			part.In, views = append(part.In, v.Type()), append(views, known[v])
		}
		y := apply(op, in...)
		known[y] = part.compute(t, views, nil)[0]
		return y
	})
	for _, v := range results {
		out = append(out, known[v])
	}
	return out
}

// TestLinearLossIsItsParts: losses and gradients have the bits of the operations that they stand
// for, on any number of threads.
func TestLinearLossIsItsParts(t *testing.T) {
	threads := pool.New(3)
	defer threads.Close()
	for _, s := range linearLosses() {
		in := s.operands(3)
		want := s.apart(t, in)
		if !same(want, s.compute(t, in, nil)) || !same(want, s.compute(t, in, threads)) {
			t.Errorf("%s: other bits than those of its parts", s.name())
		}
	}
}

// TestLinearLossIsPlain: where the blocks of rows are the runs of a sum, the parts are those that
// MatMul and CrossEntropy have, and their gradients; else the sum has the runs of blocks.
func TestLinearLossIsPlain(t *testing.T) {
	for _, c := range []struct {
		n, v, rows int
		op         graph.Op
	}{{512, 50257, 512, matMul{TransA: true}}, {8192, 50257, 512, matMul{TransA: true}},
		{8192, 131072, 256, matMulPart{MatMul: matMul{TransA: true}, Block: 256}},
		{100, 1 << 22, 16, matMulPart{MatMul: matMul{TransA: true}, Block: 16}}} {
		g, o := graph.New(), linearLoss{Trans: true}
		in := []graph.Value{g.Input("x", tensor.Of(graph.F32, c.n, 768)),
			g.Input("w", tensor.Of(graph.F32, c.v, 768))}
		b := o.blocks([]graph.Type{in[0].Type(), in[1].Type()})
		if op := o.sum(in); op != c.op || b.rows != c.rows {
			t.Errorf("%d rows of %d classes: %d at a time, and %+v", c.n, c.v, b.rows, op)
		}
	}
}

// TestLinearLossInF64: against sums of float64, of the loss, of rows and of the matrix.
func TestLinearLossInF64(t *testing.T) {
	const n, d, v = 600, 4, 7
	o := linearLossGrad{Trans: true}
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	s := Sample{Op: o, In: []graph.Type{f(n, d), f(v, d), tensor.Of(graph.I32, n), f(n)},
		Fill: fills{2: below(v)}}
	in := s.operands(5)
	x, w, labels, g := in[0].F32(), in[1].F32(), in[2].I32(), in[3].F32()
	losses, dx, dw := make([]float64, n), make([]float64, n*d), make([]float64, v*d)
	for i := range n {
		var p [v]float64
		sum := 0.0
		for k := range p {
			dot := 0.0
			for j := range d {
				dot += float64(float64(x[i*d+j]) * float64(w[k*d+j]))
			}
			p[k] = math.Exp(dot)
			sum += p[k]
		}
		losses[i] = math.Log(sum) - math.Log(p[labels[i]])
		for k := range p {
			e := p[k] / sum
			if k == int(labels[i]) {
				e--
			}
			for j := range d {
				dx[i*d+j] += float64(float64(g[i]) * e * float64(w[k*d+j]))
				dw[k*d+j] += float64(float64(g[i]) * e * float64(x[i*d+j]))
			}
		}
	}
	for k, out := range s.compute(t, in, nil) {
		want := [][]float64{losses, dx, dw}[k]
		for i, y := range out.F32() {
			if math.Abs(float64(y)-want[i]) > 2e-5*(1+math.Abs(want[i])) {
				t.Fatalf("result %d: element %d is %g, want %g", k, i, y, want[i])
			}
		}
	}
}
