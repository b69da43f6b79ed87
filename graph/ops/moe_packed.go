package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/quant"
)

// ExpertMatMulPacked is [ExpertMatMulT] with weights of experts whose rows are packed as
// [PackedType] says: x f32[R k], offsets i32[experts+1] → f32[R rows]. The weights have no
// gradient.
func ExpertMatMulPacked(x graph.Value, weights []graph.Value, offsets graph.Value,
	format string) graph.Value {
	if !x.Valid() || len(weights) == 0 || !weights[0].Valid() {
		return graph.Value{}
	}
	f, err := quant.Parse(format)
	if err == nil && x.Type().Rank() != 2 {
		err = fmt.Errorf("rows %s: want two axes", x.Type())
	}
	if err != nil {
		x.Graph().Fail(err)
		return graph.Value{}
	}
	o := packedJoin{Experts: len(weights), Of: packedMatMul{Format: f, Width: x.Type().Size(-1)}}
	return o.joined(x, weights, offsets)
}

// joined is a chain of products, and at its end what its gradient is known by.
func (o packedJoin) joined(x graph.Value, weights []graph.Value, offsets graph.Value) graph.Value {
	_, n := o.Of.sides(weights[0].Type())
	acc := Zeros(x.Graph(), tensor.Named(graph.F32, x.Type().Shape[0], graph.Dim{Size: n}))
	for e, w := range weights {
		acc = apply(packedExpert{Expert: e, Experts: o.Experts, Of: o.Of}, acc, x, w, offsets)
	}
	return apply(o, append([]graph.Value{acc, x, offsets}, weights...)...)
}

// packedExpert is acc, f32[R n], with the rows of one expert replaced by the products of those
// rows of x, f32[R k], with a packed matrix.
type packedExpert struct {
	Expert, Experts int
	Of              packedMatMul
}

func (packedExpert) Name() string { return "packed-expert" }

func (o packedExpert) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 4); err != nil {
		return nil, err
	}
	acc, x := in[0], in[1]
	if err := want([]graph.Type{acc, in[3]}, graph.F32, graph.I32); err != nil {
		return nil, err
	}
	if err := expertOperands(x, acc, in[3], o.Expert, o.Experts); err != nil {
		return nil, err
	}
	out, err := o.Of.Infer([]graph.Type{x, in[2]})
	if err == nil && out[0].Size(1) != acc.Size(1) {
		err = fmt.Errorf("packed rows %s take %s to %s, not to %s", in[2], x, out[0], acc)
	}
	if err != nil {
		return nil, err
	}
	return []graph.Type{acc}, nil
}

// Cost is that of an even share of the rows, and of weights read.
func (o packedExpert) Cost(in, _ []graph.Type) graph.Cost {
	whole := o.Of.Cost([]graph.Type{in[1], in[2]}, nil)
	share := (int64(in[1].Size(0)) + int64(o.Experts) - 1) / int64(o.Experts)
	return graph.Cost{
		FLOPs:   2 * share * int64(in[2].Size(0)) * int64(o.Of.Width),
		Bytes:   in[2].Bytes() + 4*share*int64(in[0].Size(1)+in[1].Size(1)),
		Scratch: whole.Scratch,
	}
}

// InPlace: the rows of other experts then need no copy.
func (packedExpert) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP: gradients go around the chain, from its join.
func (packedExpert) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return noSecond(n) }

func packedExpertCPU(o packedExpert, c *kernel.Call) error {
	acc, x, w, out := c.In[0].F32(), c.In[1], c.In[2], c.Out[0]
	lo, hi, err := expertRows(c.In[3].I32(), o.Expert, x.Type.Size(0))
	if err != nil {
		return err
	}
	n := out.Type.Size(1)
	if to := out.F32(); len(to) > 0 && &acc[0] != &to[0] {
		copy(to[:lo*n], acc[:lo*n])
		copy(to[hi*n:], acc[hi*n:])
	}
	if lo == hi {
		return nil
	}
	part := *c
	part.In = []tensor.View{rowsFrom(x, lo, hi), w}
	part.Out = []tensor.View{rowsFrom(out, lo, hi)}
	return packedMatMulCPU(o.Of, &part)
}

// rowsFrom is some rows of a matrix of f32.
func rowsFrom(v tensor.View, lo, hi int) tensor.View {
	n := v.Type.Size(1)
	return tensor.View{Type: tensor.Of(graph.F32, hi-lo, n), Data: v.Data[4*lo*n : 4*hi*n]}
}

// packedJoin is operand 0, the end of a chain of [packedExpert], as expertJoin is.
type packedJoin struct {
	Experts int
	Of      packedMatMul
}

func (packedJoin) Name() string { return "packed-join" }

func (o packedJoin) Infer(in []graph.Type) ([]graph.Type, error) {
	return joinInfer(in, o.Experts, func(e int) graph.Op {
		return packedExpert{e, o.Experts, o.Of}
	})
}

func (packedJoin) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{} }

// View: all of the chain's end.
func (packedJoin) View(_, _ []graph.Type) []int64 { return []int64{0} }

// VJP: the matrices are not trained.
func (o packedJoin) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	din := none(len(n.In))
	o.Of.Back = !o.Of.Back
	din[1] = o.joined(dout[0], n.In[3:], n.In[2])
	return din
}

func packedExpertCUDA(o packedExpert, c *cuda.Call) ([]cuda.Command, error) {
	list := o.Of.launches(c.Out[0], c.In[1], c.In[2], c.Scratch,
		c.In[3].Addr+4*uint64(o.Expert))
	if c.In[0].Addr != c.Out[0].Addr {
		list = append([]cuda.Command{copiedWhole(c.Out[0], c.In[0])}, list...)
	}
	return list, nil
}

func init() {
	kernel.Register(kernel.CPU, packedExpertCPU)
	cuda.Register(packedExpertCUDA, func(o packedExpert, in, out []graph.Type) int64 {
		return o.Cost(in, out).Scratch
	})
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	offsets, shares := tensor.Of(graph.I32, 4), fill32(0, 3, 3, 11)
	of := packedMatMul{Format: quant.Q8_0, Width: 64}
	w, err := packedType(5, of.Width, of.Format)
	if err != nil {
		panic(err)
	}
	for e := range 3 {
		register(Sample{Op: packedExpert{Expert: e, Experts: 3, Of: of},
			In:     []graph.Type{f(13, 5), f(13, 64), w, offsets},
			Fill:   fills{2: packedRows(of.Format, of.Width), 3: shares},
			NoGrad: []int{0, 1, 2, 3}})
	}
	back := of
	back.Back = true
	register(
		Sample{Op: packedExpert{Expert: 2, Experts: 3, Of: back},
			In:     []graph.Type{f(13, 64), f(13, 5), w, offsets},
			Fill:   fills{2: packedRows(of.Format, of.Width), 3: shares},
			NoGrad: []int{0, 1, 2, 3}},
		Sample{Op: packedJoin{Experts: 2, Of: of},
			In: []graph.Type{f(13, 5), f(13, 64), tensor.Of(graph.I32, 3), w, w},
			Fill: fills{2: fill32(0, 4, 11), 3: packedRows(of.Format, of.Width),
				4: packedRows(of.Format, of.Width)},
			NoGrad: []int{0, 1, 2, 3, 4}},
	)
}
