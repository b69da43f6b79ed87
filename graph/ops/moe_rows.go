package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// The operations of this file move rows between tokens, [T d], and the packed form of [Route] and
// [RouteChoices], [R d], of k choices a token. Each reads rows or inv, whichever lets every row of
// its result be computed on its own, and takes the other for its gradient.

// GatherRows packs x, f32[T d]: row r of the result, f32[R d], is row rows[r] of
// x, or zeros if that is negative.
func GatherRows(x, rows, inv graph.Value) graph.Value { return apply(gatherRows{}, x, rows, inv) }

type gatherRows struct{}

func (gatherRows) Name() string { return "gather-rows" }

func (gatherRows) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 3); err != nil {
		return nil, err
	}
	tokens, err := routed(in[1], in[2])
	if err == nil {
		err = matrix(in[0], tokens)
	}
	if err != nil {
		return nil, err
	}
	return []graph.Type{packed(in[0], in[1].Size(0))}, nil
}

// packed is the type of rows rows like those of t.
func packed(t graph.Type, rows int) graph.Type {
	return tensor.Named(graph.F32, graph.Dim{Size: rows}, t.Shape[1])
}

func (gatherRows) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: 2*out[0].Bytes() + in[1].Bytes()}
}

func (gatherRows) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{SumRows(dout[0], n.In[2], n.In[1]), {}, {}}
}

func gatherRowsCPU(_ gatherRows, c *kernel.Call) error {
	rows, _, err := routing(c.In[1], c.In[2])
	if err != nil {
		return err
	}
	x := c.In[0].F32()
	eachVector(c, func(r int, out []float32) {
		if t := int(rows[r]); t >= 0 {
			copy(out, x[t*len(out):])
		} else {
			clear(out)
		}
	})
	return nil
}

// eachVector calls f in parallel for every row of result 0.
func eachVector(c *kernel.Call, f func(r int, out []float32)) {
	out, d := c.Out[0].F32(), c.Out[0].Type.Size(1)
	c.Pool.For(len(out)/d, max(1, grain/d), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			f(r, out[r*d:(r+1)*d])
		}
	})
}

// SumRows is the opposite of [GatherRows]: row t of the result, f32[T d], is the
// sum of the packed rows of token t, in y, f32[R d].
func SumRows(y, inv, rows graph.Value) graph.Value { return apply(sumRows{}, y, inv, rows) }

type sumRows struct{}

func (sumRows) Name() string { return "sum-rows" }

func (sumRows) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 3); err != nil {
		return nil, err
	}
	tokens, err := routed(in[2], in[1])
	if err == nil {
		err = matrix(in[0], in[2].Size(0))
	}
	if err != nil {
		return nil, err
	}
	return []graph.Type{packed(in[0], tokens)}, nil
}

func (sumRows) Cost(in, out []graph.Type) graph.Cost { return streaming(in[:2], out, 1) }

func (sumRows) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{GatherRows(dout[0], n.In[2], n.In[1]), {}, {}}
}

func sumRowsCPU(_ sumRows, c *kernel.Call) error {
	_, inv, err := routing(c.In[2], c.In[1])
	if err != nil {
		return err
	}
	y, choices := c.In[0].F32(), c.In[1].Type.Size(1)
	eachVector(c, func(t int, out []float32) {
		clear(out)
		for _, r := range inv[choices*t : choices*(t+1)] {
			if r >= 0 {
				vec.Add(out, out, y[int(r)*len(out):])
			}
		}
	})
	return nil
}

// CombineRows weighs the experts' results, y f32[R d], by the gates, f32[T k]:
// row t of the result, f32[T d], is Σ gates[t,c]·y[inv[t,c]] over the choices c
// that there are.
func CombineRows(y, gates, inv, rows graph.Value) graph.Value {
	return apply(combineRows{}, y, gates, inv, rows)
}

type combineRows struct{}

func (combineRows) Name() string { return "combine-rows" }

func (combineRows) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 4); err != nil {
		return nil, err
	}
	tokens, err := routed(in[3], in[2])
	if err == nil {
		err = matrix(in[0], in[3].Size(0))
	}
	if err == nil {
		err = gated(in[1], in[2])
	}
	if err != nil {
		return nil, err
	}
	return []graph.Type{packed(in[0], tokens)}, nil
}

func (combineRows) Cost(in, out []graph.Type) graph.Cost { return streaming(in[:3], out, 4) }

func (combineRows) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	y, gates, inv, rows := n.In[0], n.In[1], n.In[2], n.In[3]
	return []graph.Value{
		apply(spreadRows{}, dout[0], gates, rows, inv),
		apply(dotRows{}, dout[0], y, inv, rows), {}, {},
	}
}

func combineRowsCPU(_ combineRows, c *kernel.Call) error {
	_, inv, err := routing(c.In[3], c.In[2])
	if err != nil {
		return err
	}
	y, gates, choices := c.In[0].F32(), c.In[1].F32(), c.In[1].Type.Size(1)
	eachVector(c, func(t int, out []float32) {
		clear(out)
		for at := choices * t; at < choices*(t+1); at++ {
			if r := inv[at]; r >= 0 {
				vec.Axpy(out, gates[at], y[int(r)*len(out):])
			}
		}
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, gatherRowsCPU)
	kernel.Register(kernel.CPU, sumRowsCPU)
	kernel.Register(kernel.CPU, combineRowsCPU)
	kernel.Register(kernel.CPU, spreadRowsCPU)
	kernel.Register(kernel.CPU, dotRowsCPU)
	x, y, gates := tensor.Of(graph.F32, 4, 17), tensor.Of(graph.F32, 8, 17),
		tensor.Of(graph.F32, 4, 2)
	rows, inv := tensor.Of(graph.I32, 8), tensor.Of(graph.I32, 4, 2)
	// Three choices of two tokens, one of which has two.
	three, rows3, inv3 := fills{1: fill32(1, 0, 1, 0, 1, -1), 2: fill32(1, -1, 3, 4, 0, 2)},
		tensor.Of(graph.I32, 6), tensor.Of(graph.I32, 2, 3)
	back := fills{2: three[2], 3: three[1]}
	x3, y3, gates3 := tensor.Of(graph.F32, 2, 17), tensor.Of(graph.F32, 6, 17),
		tensor.Of(graph.F32, 2, 3)
	register(
		Sample{Op: gatherRows{}, In: []graph.Type{x3, rows3, inv3}, Fill: three,
			NoGrad: []int{1, 2}, Second: true},
		Sample{Op: sumRows{}, In: []graph.Type{y3, inv3, rows3}, Second: true,
			Fill: fills{1: three[2], 2: three[1]}, NoGrad: []int{1, 2}},
		Sample{Op: combineRows{}, In: []graph.Type{y3, gates3, inv3, rows3}, Fill: back,
			NoGrad: []int{2, 3}, Second: true},
		Sample{Op: spreadRows{}, In: []graph.Type{x3, gates3, rows3, inv3}, Second: true,
			Fill: fills{2: three[1], 3: three[2]}, NoGrad: []int{2, 3}},
		Sample{Op: dotRows{}, In: []graph.Type{x3, y3, inv3, rows3}, Fill: back,
			NoGrad: []int{2, 3}, Second: true},
	)
	// Four tokens, of which two have one choice only.
	at := func(r, i int) fills {
		return fills{
			r: fill32(1, 2, 0, 3, 1, 2, -1, -1),
			i: fill32(2, -1, 0, 4, 1, 5, 3, -1),
		}
	}
	register(
		Sample{Op: gatherRows{}, In: []graph.Type{x, rows, inv}, Fill: at(1, 2),
			NoGrad: []int{1, 2}, Second: true},
		Sample{Op: sumRows{}, In: []graph.Type{y, inv, rows}, Fill: at(2, 1), NoGrad: []int{1, 2},
			Second: true},
		Sample{Op: combineRows{}, In: []graph.Type{y, gates, inv, rows}, Fill: at(3, 2),
			NoGrad: []int{2, 3}, Second: true},
		Sample{Op: spreadRows{}, In: []graph.Type{x, gates, rows, inv}, Fill: at(2, 3),
			NoGrad: []int{2, 3}, Second: true},
		Sample{Op: dotRows{}, In: []graph.Type{x, y, inv, rows}, Fill: at(3, 2),
			NoGrad: []int{2, 3}, Second: true},
	)
}
