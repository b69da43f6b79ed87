package control

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/internal/kernel"
)

// Cond is what one of two bodies gives, of the same operands: then where a condition, bool[],
// holds, and otherwise the other. Both give as many values of the same types. Only one is executed.
func Cond(condition graph.Value, operands []graph.Value,
	then, otherwise func(in []graph.Value) []graph.Value) []graph.Value {
	g := graphOf([]graph.Value{condition}, operands)
	if g == nil {
		return nil
	}
	a, lifted := newBody(g, types(operands), 0, 0, then)
	if a == nil {
		return nil
	}
	b, more := newBody(g, types(operands), 0, 0, otherwise)
	if b == nil {
		return make([]graph.Value, len(a.out))
	}
	n := graph.Apply(cond{a, b, len(operands), len(lifted), len(more)},
		slices.Concat([]graph.Value{condition}, operands, lifted, more)...)
	if n == nil {
		return make([]graph.Value, len(a.out))
	}
	return results(n)
}

// cond has operands: the condition, Operands for both bodies, and the constants of either.
type cond struct {
	Then, Else             *Body
	Operands, Lifted, More int
}

func (cond) Name() string { return "cond" }

// split are the operands of the two bodies.
func split[T any](c cond, in []T) (then, otherwise []T) {
	both, rest := in[1:1+c.Operands], in[1+c.Operands:]
	return slices.Concat(both, rest[:c.Lifted]), slices.Concat(both, rest[c.Lifted:])
}

// Infer compares operands with the bodies', and the bodies' results.
func (c cond) Infer(in []graph.Type) ([]graph.Type, error) {
	if want := 1 + c.Operands + c.Lifted + c.More; len(in) != want || c.Then == nil ||
		c.Else == nil {
		return nil, fmt.Errorf("want %d operands, have %d", want, len(in))
	}
	if !same(in[0], graph.Of(graph.Bool)) {
		return nil, fmt.Errorf("its condition is %s, want bool[]", in[0])
	}
	then, otherwise := split(c, in)
	if err := c.Then.matches(then); err != nil {
		return nil, err
	}
	if err := c.Else.matches(otherwise); err != nil {
		return nil, err
	}
	if len(c.Then.out) != len(c.Else.out) {
		return nil, fmt.Errorf("one branch gives %d values, the other %d", len(c.Then.out),
			len(c.Else.out))
	}
	out := types(c.Then.out)
	for i, v := range c.Else.out {
		if !same(out[i], v.Type()) {
			return nil, fmt.Errorf("value %d is %s of one branch, and %s of the other", i, out[i],
				v.Type())
		}
	}
	return out, nil
}

// Cost is that of the dearer branch. The branches share their memory.
func (c cond) Cost(in, out []graph.Type) graph.Cost {
	a, b := c.Then.work(), c.Else.work()
	return graph.Cost{FLOPs: max(a.FLOPs, b.FLOPs), Bytes: max(a.Bytes, b.Bytes) + moved(nil, out),
		Scratch: c.scratch()}
}

// scratch is the larger frame.
func (c cond) scratch() int64 { return max(c.Then.frame.bytes, c.Else.frame.bytes) }

// VJP is a branch, too: each side computes its body once more, and then its gradient. An operand
// has one if it has on either side; on the other side it is zero then.
func (c cond) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	out := make([]graph.Value, len(n.In))
	operands := n.In[1 : 1+c.Operands]
	var given []graph.Value
	var of []int
	for i, d := range dout {
		if d.Valid() {
			given, of = append(given, d), append(of, i)
		}
	}
	then, otherwise := split(c, n.In)
	sides := [][]bool{touches(c.Then, c.Operands, of), touches(c.Else, c.Operands, of)}
	var list []int
	for i := range operands {
		if sides[0][i] || sides[1][i] {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return out
	}
	// Operands of the gradient: those of both, each side's constants, and the gradients.
	all := slices.Concat(operands, then[c.Operands:], otherwise[c.Operands:], given)
	side := func(b *Body, lo, hi int) func(in []graph.Value) []graph.Value {
		return func(in []graph.Value) (d []graph.Value) {
			own := slices.Concat(in[:c.Operands], in[lo:hi])
			grads := gradients(b, own, in[len(all)-len(given):], of)
			for _, i := range list {
				d = append(d, orZeros(grads[i], own[i]))
			}
			return d
		}
	}
	middle := c.Operands + c.Lifted
	made := Cond(n.In[0], all, side(c.Then, c.Operands, middle),
		side(c.Else, middle, middle+c.More))
	for k, i := range list {
		if k < len(made) {
			out[1+i] = made[k]
		}
	}
	return out
}

// gradients are those of a body's operands, given those of some of its results.
func gradients(b *Body, in, given []graph.Value, of []int) []graph.Value {
	made, err := b.again(in)
	if err != nil {
		return make([]graph.Value, len(in))
	}
	dys := make([]graph.Value, len(made))
	for k, i := range of {
		dys[i] = given[k]
	}
	return autodiff.VJP(made, dys, in, nil)
}

// touches says which of a body's operands have a gradient.
func touches(b *Body, operands int, of []int) []bool {
	g := graph.New()
	in, given := inputs(g, types(b.in)), []graph.Value(nil)
	for _, i := range of {
		given = append(given, zeros(g, b.out[i].Type()))
	}
	out := make([]bool, operands)
	for i, d := range gradients(b, in, given, of)[:operands] {
		out[i] = d.Valid()
	}
	return out
}

func condCPU(c cond, k *kernel.Call) error {
	in, otherwise := split(c, k.In)
	b := c.Then
	if k.In[0].U8()[0] == 0 {
		b, in = c.Else, otherwise
	}
	m, err := b.machine(k.Scratch, in, k.Pool)
	if err != nil {
		return err
	}
	if err := m.run(); err != nil {
		return err
	}
	for i := range k.Out {
		copy(k.Out[i].Data, m.result(i))
	}
	return nil
}

func init() { kernel.Register(kernel.CPU, condCPU) }
