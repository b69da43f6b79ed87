package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// spreadRows is the gradient of [CombineRows] with respect to its rows: for x
// f32[T d], gates f32[T k], rows and inv, row r of the result, f32[R d], is the
// gate of the choice that r belongs to times its token's row of x.
type spreadRows struct{}

func (spreadRows) Name() string { return "spread-rows" }

func (spreadRows) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 4); err != nil {
		return nil, err
	}
	tokens, err := routed(in[2], in[3])
	if err == nil {
		err = matrix(in[0], tokens)
	}
	if err == nil {
		err = gated(in[1], in[3])
	}
	if err != nil {
		return nil, err
	}
	return []graph.Type{packed(in[0], in[2].Size(0))}, nil
}

// gated checks that t is f32[T k], an element for each choice of inv, which is i32[T k].
func gated(t, inv graph.Type) error {
	if want := tensor.Of(graph.F32, inv.Sizes()...); !t.Equal(want) {
		return fmt.Errorf("gates are %s, want %s", t, want)
	}
	return nil
}

func (spreadRows) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(out[0].Elems()), Bytes: bytes(in, out) + in[0].Bytes()}
}

func (spreadRows) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, gates, rows, inv := n.In[0], n.In[1], n.In[2], n.In[3]
	return []graph.Value{
		CombineRows(dout[0], gates, inv, rows),
		apply(dotRows{}, x, dout[0], inv, rows), {}, {},
	}
}

func spreadRowsCPU(_ spreadRows, c *kernel.Call) error {
	rows, inv, err := routing(c.In[2], c.In[3])
	if err != nil {
		return err
	}
	x, gates, choices := c.In[0].F32(), c.In[1].F32(), c.In[1].Type.Size(1)
	eachVector(c, func(r int, out []float32) {
		t := int(rows[r])
		if t < 0 {
			clear(out)
			return
		}
		choice, last := choices*t, choices*(t+1)-1
		for choice < last && int(inv[choice]) != r {
			choice++
		}
		vec.MulScalar(out, x[t*len(out):], gates[choice])
	})
	return nil
}

// dotRows is the gradient of [CombineRows] with respect to its gates: for x
// f32[T d], y f32[R d], inv and rows, element t, c of the result, f32[T k], is
// the inner product of row t of x and the packed row of y of choice c.
type dotRows struct{}

func (dotRows) Name() string { return "dot-rows" }

func (dotRows) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 4); err != nil {
		return nil, err
	}
	tokens, err := routed(in[3], in[2])
	if err == nil {
		err = matrix(in[0], tokens)
	}
	if err == nil {
		err = matrix(in[1], in[3].Size(0))
	}
	if err == nil && in[0].Size(1) != in[1].Size(1) {
		err = fmt.Errorf("rows of %s and %s differ in length", in[0], in[1])
	}
	if err != nil {
		return nil, err
	}
	return []graph.Type{tensor.Of(graph.F32, in[2].Sizes()...)}, nil
}

func (dotRows) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: 2 * int64(in[1].Elems()), Bytes: bytes(in[:3], out)}
}

func (dotRows) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, y, inv, rows := n.In[0], n.In[1], n.In[2], n.In[3]
	return []graph.Value{
		CombineRows(y, dout[0], inv, rows),
		apply(spreadRows{}, x, dout[0], rows, inv), {}, {},
	}
}

func dotRowsCPU(_ dotRows, c *kernel.Call) error {
	_, inv, err := routing(c.In[3], c.In[2])
	if err != nil {
		return err
	}
	x, y, out := c.In[0].F32(), c.In[1].F32(), c.Out[0].F32()
	d, choices := c.In[0].Type.Size(1), c.Out[0].Type.Size(1)
	c.Pool.For(len(out), max(1, grain/max(1, d)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out[i] = 0
			if r := int(inv[i]); r >= 0 {
				out[i] = vec.Dot(x[i/choices*d:(i/choices+1)*d], y[r*d:(r+1)*d])
			}
		}
	})
	return nil
}
