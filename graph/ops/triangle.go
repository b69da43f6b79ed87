package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Tril is x [… m n], of any element type, with zeros above a diagonal of its last two
// axes: element (i, j) is kept where j ≤ i + diagonal. 0 is the main diagonal, which
// is kept.
func Tril(x graph.Value, diagonal int) graph.Value { return apply(triangle{Diagonal: diagonal}, x) }

// Triu is x with zeros below a diagonal: element (i, j) is kept where j ≥ i + diagonal.
func Triu(x graph.Value, diagonal int) graph.Value {
	return apply(triangle{Diagonal: diagonal, Upper: true}, x)
}

type triangle struct {
	Diagonal int
	Upper    bool
}

func (o triangle) Name() string {
	if o.Upper {
		return "triu"
	}
	return "tril"
}

func (o triangle) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	const most = 1 << 40
	if in[0].Rank() < 2 || o.Diagonal > most || o.Diagonal < -most {
		return nil, fmt.Errorf("a triangle from diagonal %d of %s, want two axes or more",
			o.Diagonal, in[0])
	}
	return in[:1:1], nil
}

func (triangle) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

// InPlace: every element depends on its own operand alone.
func (triangle) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (o triangle) VJP(_ *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(o, dout[0])}
}

func triangleCPU(o triangle, c *kernel.Call) error {
	x, out := c.In[0].Data, c.Out[0].Data
	t := c.In[0].Type
	size, m, n := int(t.DType.Size()), t.Size(-2), t.Size(-1)
	rows(c, len(x), max(1, n*size), func(lo, hi int) {
		row := lo / (n * size) % m
		from, to := 0, min(max(row+o.Diagonal+1, 0), n)
		if o.Upper {
			from, to = min(max(row+o.Diagonal, 0), n), n
		}
		from, to = lo+from*size, lo+to*size
		clear(out[lo:from])
		copy(out[from:to], x[from:to])
		clear(out[to:hi])
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, triangleCPU)
	f := func(sizes ...int) []graph.Type { return []graph.Type{tensor.Of(graph.F32, sizes...)} }
	register(
		Sample{Op: triangle{}, In: f(5, 5), Second: true},
		Sample{Op: triangle{Upper: true}, In: f(3, 17), Second: true},
		Sample{Op: triangle{Diagonal: -1}, In: f(2, 4, 3), Second: true},
		Sample{Op: triangle{Diagonal: 2, Upper: true}, In: f(2, 4, 5), Second: true},
		Sample{Op: triangle{Diagonal: 1}, In: []graph.Type{tensor.Of(graph.U8, 5, 7)},
			NoGrad: []int{0}},
	)
}
