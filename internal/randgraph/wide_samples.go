package randgraph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// small says whether a sample can be a node of a step on its own, with values of 4 KiB at most:
// halves of exchanges cannot.
func small(s ops.Sample) bool {
	out, err := s.Op.Infer(s.In)
	for _, t := range slices.Concat(s.In, out) {
		if t.Bytes() > 4<<10 {
			return false
		}
	}
	name := s.Op.Name()
	return err == nil && !strings.HasPrefix(name, "send") && name != "await" && name != "arrive"
}

// byName are the samples that are small, those of one operation together.
func byName() [][]ops.Sample {
	var out [][]ops.Sample
	at := map[string]int{}
	for _, s := range ops.Samples() {
		if !small(s) {
			continue
		}
		i, ok := at[s.Op.Name()]
		if !ok {
			i, out = len(out), append(out, nil)
			at[s.Op.Name()] = i
		}
		out[i] = append(out[i], s)
	}
	return out
}

// sample is a use of an operation as package ops samples it: of every operation that there is,
// also of those that rewritings and gradients make.
func sample(b *wide) []graph.Value {
	if b.samples == nil {
		b.samples = byName()
	}
	of := b.samples[b.pick(len(b.samples))]
	s := of[b.pick(len(of))]
	in := b.operands(s)
	if s.Update > 0 || len(in) > 0 && s.Op == ops.Kept() {
		b.more = append(b.more, b.g.Update(s.Op, in[:s.Update], in[s.Update:]...).ID)
		return in[:s.Update]
	}
	n := b.g.Apply(s.Op, in...)
	out := make([]graph.Value, len(n.Out))
	for i := range out {
		out[i] = n.Value(i)
	}
	return out
}

// operands are a sample's: variables that are written, constants where it says what they are, and
// values, whose gradient stops where the operation has none.
func (b *wide) operands(s ops.Sample) []graph.Value {
	in := make([]graph.Value, len(s.In))
	through := s.Update > 0 || smooth(s)
	for i, t := range s.In {
		fill := s.Fill[i]
		switch {
		case i < s.Update:
			in[i] = b.g.State(fmt.Sprint("state", i), t, graph.Init{})
		case t.DType.Floating() && fill == nil:
			if in[i] = ops.Cast(b.of(t.Sizes()...), t.DType); !through {
				in[i] = ops.StopGradient(in[i])
			}
		default:
			in[i] = b.g.Constant(fmt.Sprint("operand", i), b.filled(t, fill))
		}
	}
	return in
}

// filled is a value as a sample's operand has it.
func (b *wide) filled(t graph.Type, fill func(rng *rand.Rand, x any)) tensor.View {
	x, size := tensor.New(t), int(t.DType.Size())
	switch d := t.DType; {
	case fill != nil && d == graph.F32:
		fill(b.rng, x.F32())
	case fill != nil && (d == graph.U8 || d == graph.Bool):
		fill(b.rng, x.U8())
	case fill != nil && d == graph.I32:
		fill(b.rng, x.I32())
	case d == graph.I32:
		for i := range x.I32() {
			x.I32()[i] = b.rng.Int32N(3)
		}
	case d == graph.U8 || d == graph.Bool:
		for i := range x.Data {
			x.Data[i] = byte(b.rng.IntN(2))
		}
	default: // integers that may divide
		for i := 0; i < len(x.Data); i += size {
			x.Data[i] = byte(1 + b.rng.IntN(100))
		}
	}
	return x
}

// smooth says whether each result of a sample has gradients by all operands.
func smooth(s ops.Sample) bool {
	g := graph.New()
	var in []graph.Value
	for i, t := range s.In {
		in = append(in, g.Input(fmt.Sprint("x", i), t))
	}
	n := g.Apply(s.Op, in...)
	for i := range n.Out {
		autodiff.Grad(ops.Sum(ops.Cast(n.Value(i), graph.F32)), in...)
	}
	return g.Err() == nil
}
