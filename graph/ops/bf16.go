package ops

import (
	"errors"
	"fmt"
	number "math/bits"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// InBF16 is the operation on operands of bfloat16 where it takes f32, all or some of them. It
// computes in f32 what the operation does, and rounds results to bfloat16, to nearest even:
// those whose bit is in round, 1 for the first. What moves elements takes bfloat16 by itself.
func InBF16(op graph.Op, round uint8) graph.Op { return inBF16{op, round} }

type inBF16 struct {
	Op    graph.Op
	Round uint8
}

func (o inBF16) Name() string { return o.Op.Name() + ".bf16" }

// inF32 are types with f32 for bfloat16.
func inF32(types []graph.Type) []graph.Type {
	types = slices.Clone(types)
	for i := range types {
		if types[i].DType == graph.BF16 {
			types[i].DType = graph.F32
		}
	}
	return types
}

// rounds reports whether a result is rounded.
func (o inBF16) rounds(result int) bool { return o.Round>>result&1 == 1 }

func (o inBF16) Infer(in []graph.Type) ([]graph.Type, error) {
	switch o.Op.(type) {
	case nil, graph.Viewer, inBF16:
		return nil, errors.New("no operation that computes")
	}
	out, err := o.Op.Infer(inF32(in))
	if err != nil {
		return nil, err
	}
	if n := number.Len8(o.Round); n > len(out) {
		return nil, fmt.Errorf("result %d of %d is rounded", n-1, len(out))
	}
	out = slices.Clone(out)
	for i := range out {
		if !o.rounds(i) {
			continue
		}
		if out[i].DType != graph.F32 {
			return nil, fmt.Errorf("result %d is %s, and not rounded", i, out[i])
		}
		out[i].DType = graph.BF16
	}
	return out, nil
}

// Cost is the operation's, with scratch for what is converted, and with less traffic by as much as
// operands and results are smaller: of a table only some rows may be read.
func (o inBF16) Cost(in, out []graph.Type) graph.Cost {
	c := o.Op.Cost(inF32(in), inF32(out))
	c.Scratch = o.scratch(in, out)
	if whole := bytes(inF32(in), inF32(out)); whole > 0 {
		hi, lo := number.Mul64(uint64(c.Bytes), uint64(bytes(in, out)))
		part, _ := number.Div64(hi, lo, uint64(whole))
		c.Bytes = int64(part)
	}
	return c
}

// InPlace: of the operation's, those of the result's type. All operands are converted before a
// result is, or those rows of them that a block of the result is of.
func (o inBF16) InPlace(in, out []graph.Type) []int {
	op, ok := o.Op.(graph.InPlacer)
	if !ok {
		return nil
	}
	t := o.tiling(in, out, tileBytes, false)
	return slices.DeleteFunc(slices.Clone(op.InPlace(inF32(in), inF32(out))), func(k int) bool {
		return in[k].DType != out[0].DType || t.tiled() && t.cut.In[k] != t.cut.Out[0]
	})
}

// VJP is the operation's, in f32.
func (o inBF16) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	in := make([]graph.Value, len(n.In))
	for i, v := range n.In {
		if in[i] = v; v.Type().DType == graph.BF16 {
			in[i] = Cast(v, graph.F32)
		}
	}
	whole := graph.Apply(o.Op, in...)
	if whole == nil {
		return none(len(in))
	}
	d := slices.Clone(dout)
	for i := range d {
		if d[i].Valid() && o.rounds(i) {
			d[i] = Cast(d[i], graph.F32)
		}
	}
	grads := slices.Clone(o.Op.VJP(whole, d))
	for i, dx := range grads {
		if dx.Valid() && n.In[i].Type().DType == graph.BF16 {
			grads[i] = Cast(dx, graph.BF16)
		}
	}
	return grads
}

// CheckData is the operation's.
func (o inBF16) CheckData(in []tensor.View) error {
	if op, ok := o.Op.(graph.Checker); ok {
		return op.CheckData(in)
	}
	return nil
}

// Cut is the operation's. Sums over rows are made in f32, and rounded at their end.
func (o inBF16) Cut(in, out []graph.Type) (graph.Cut, bool) {
	op, ok := o.Op.(graph.Cutter)
	if !ok {
		return graph.Cut{}, false
	}
	c, ok := op.Cut(inF32(in), inF32(out))
	if ok && c.Sums() && o.rounds(0) {
		if c.Finish == nil {
			c.Finish, c.Sum = cast{graph.BF16}, inF32(out)[0]
		} else {
			c.Finish = inBF16{c.Finish, o.Round}
		}
	}
	return c, ok
}

// Part is the operation's part.
func (o inBF16) Part(in, out []graph.Type, lo, hi int) graph.Op {
	op := o.Op.(graph.Cutter)
	p := inBF16{op.Part(inF32(in), inF32(out), lo, hi), o.Round}
	if c, _ := op.Cut(inF32(in), inF32(out)); c.Sums() {
		p.Round = 0
	}
	return p
}
