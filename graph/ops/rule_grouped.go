package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Split is along experts, of which a part has the rows of some and zeros elsewhere, along
// the width of the result, and along that of the rows, over which products are sums.
func (o groupedMatMul) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	experts, n := oneAxis(&r, in[1].Size(0)), oneAxis(&r, out[0].Size(1))
	k := oneAxis(&r, in[0].Size(1))
	exactly(&r, experts)
	sums(&r, k)
	weights := [][]int{experts, k, n}
	if o.Trans {
		weights = [][]int{experts, n, k}
	}
	r.In = [][][]int{{nil, k}, weights, entire(in[2])}
	r.Out = [][][]int{{nil, n}}
	r.Local = func(at []graph.Part) graph.Op {
		if !divided(at, experts, n) {
			return o
		}
		_, first := shareOf(in[1].Size(0), experts, at)
		return groupedMatMulPart{o, first, in[1].Size(0), out[0].Size(1)}
	}
	return r, true
}

// groupedMatMulPart is a product with the weights of some experts, from First on, and some
// of their Columns. Rows of the other Experts are zero.
type groupedMatMulPart struct {
	Of                      groupedMatMul
	First, Experts, Columns int
}

func (o groupedMatMulPart) Name() string { return o.Of.Name() }

func (o groupedMatMulPart) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 3); err != nil {
		return nil, err
	}
	if want := tensor.Of(graph.I32, o.Experts+1); !in[2].Equal(want) {
		return nil, fmt.Errorf("offsets are %s, want %s%s", in[2], want,
			convertible(in[2], graph.I32))
	}
	own := in[1].Rank() == 3 && o.First >= 0 && in[1].Size(0) <= o.Experts-o.First
	if !own {
		return nil, fmt.Errorf("weights %s of experts from %d on, of %d", in[1], o.First, o.Experts)
	}
	out, err := o.Of.Infer([]graph.Type{in[0], in[1], tensor.Of(graph.I32, in[1].Size(0)+1)})
	if err == nil && out[0].Size(1) > o.Columns {
		err = fmt.Errorf("%d columns of %d", out[0].Size(1), o.Columns)
	}
	return out, err
}

func (o groupedMatMulPart) Cost(in, out []graph.Type) graph.Cost { return o.Of.Cost(in, out) }

// VJP is that of the experts that there are.
func (o groupedMatMulPart) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x, w, offsets, d := n.In[0], n.In[1], n.In[2], dout[0]
	back := o
	back.Of.Trans, back.Columns = !o.Of.Trans, x.Type().Size(1)
	outer := groupedOuterPart{First: o.First, Count: w.Type().Size(0), Experts: o.Experts,
		Rows: w.Type().Size(1), Columns: w.Type().Size(2)}
	if o.Of.Trans {
		return []graph.Value{apply(back, d, w, offsets), apply(outer, d, x, offsets), {}}
	}
	return []graph.Value{apply(back, d, w, offsets), apply(outer, x, d, offsets), {}}
}

func groupedMatMulPartCPU(o groupedMatMulPart, c *kernel.Call) error {
	return o.Of.compute(c, o.First, o.Columns)
}

// Split is along experts and along both widths.
func (o groupedOuter) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, out[0])
	experts, k, n := axes[0], axes[1], axes[2]
	r.In, r.Out = [][][]int{{nil, k}, {nil, n}, entire(in[2])}, [][][]int{axes}
	r.Local = func(at []graph.Part) graph.Op {
		if !divided(at, axes...) {
			return o
		}
		count, first := shareOf(out[0].Size(0), experts, at)
		return groupedOuterPart{first, count, out[0].Size(0), out[0].Size(1), out[0].Size(2)}
	}
	return r, true
}

// groupedOuterPart is the gradient of the weights of Count experts, from First on, of
// Experts: some of their Rows and Columns.
type groupedOuterPart struct{ First, Count, Experts, Rows, Columns int }

func (groupedOuterPart) Name() string { return groupedOuter{}.Name() }

func (o groupedOuterPart) Infer(in []graph.Type) ([]graph.Type, error) {
	out, err := groupedOuter{}.Infer(in)
	if err != nil {
		return nil, err
	}
	t := out[0]
	if t.Size(0) != o.Experts || o.First < 0 || o.Count < 0 || o.Count > o.Experts-o.First ||
		t.Size(1) > o.Rows || t.Size(2) > o.Columns {
		return nil, fmt.Errorf("%s: want weights of %d experts from %d on, some of %d×%d", t,
			o.Count, o.First, o.Rows, o.Columns)
	}
	return []graph.Type{resized(t, 0, o.Count)}, nil
}

func (groupedOuterPart) Cost(in, out []graph.Type) graph.Cost {
	return groupedOuter{}.Cost(in, out)
}

// VJP is that of the experts that there are.
func (o groupedOuterPart) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	a, b, offsets := n.In[0], n.In[1], n.In[2]
	of := func(trans bool, columns int) graph.Op {
		return groupedMatMulPart{groupedMatMul{trans}, o.First, o.Experts, columns}
	}
	return []graph.Value{
		apply(of(true, a.Type().Size(1)), b, dout[0], offsets),
		apply(of(false, b.Type().Size(1)), a, dout[0], offsets), {},
	}
}

func groupedOuterPartCPU(o groupedOuterPart, c *kernel.Call) error {
	return outers(c, o.First, o.Rows, o.Columns)
}

func init() {
	kernel.Register(kernel.CPU, groupedMatMulPartCPU)
	kernel.Register(kernel.CPU, groupedOuterPartCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	offsets := tensor.Of(graph.I32, 5)
	shares := fills{2: fill32(0, 3, 5, 5, 11)}
	register(
		Sample{Op: groupedMatMulPart{groupedMatMul{}, 1, 4, 14}, Fill: shares, NoGrad: []int{2},
			In: []graph.Type{f(13, 5), f(2, 5, 7), offsets}, Second: true},
		Sample{Op: groupedMatMulPart{groupedMatMul{true}, 2, 4, 7}, Fill: shares, NoGrad: []int{2},
			In: []graph.Type{f(13, 5), f(2, 7, 5), offsets}, Second: true},
		Sample{Op: groupedOuterPart{1, 2, 4, 10, 14}, Fill: shares, NoGrad: []int{2},
			In: []graph.Type{f(13, 5), f(13, 7), offsets}, Second: true},
	)
}
