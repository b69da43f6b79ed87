package ops

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
)

// The bounds of a chain; its struct is as large as they allow.
const (
	maxInstructions  = 8
	maxChainOperands = 6
)

// chain is several elementwise operations in one: a small program without
// branches, whose intermediate results never reach memory. Each instruction is
// the operation that it stands for; all results have the shape of the last,
// which is the chain's. Chains are made by [Fuse].
type chain struct {
	Code     [maxInstructions]instruction
	N        int8 // instructions
	Operands int8
}

// instruction applies an operation to its first Arity references.
type instruction struct {
	Op    elementwise
	In    [2]reference
	Arity int8
}

// reference names an operand of the chain by its index, or the result of
// instruction i by ^i.
type reference int8

// single is the chain of one operation on so many operands.
func single(op elementwise, operands int) chain {
	c := chain{N: 1, Operands: int8(operands)}
	c.Code[0] = instruction{Op: op, In: [2]reference{0, 1}, Arity: int8(operands)}
	return c
}

// result is the chain's result; a chain without instructions gives operand 0.
func (c chain) result() reference {
	if c.N == 0 {
		return 0
	}
	return ^reference(c.N - 1)
}

// Name joins the names of the operations: "dropout+add".
func (c chain) Name() string {
	names := make([]string, 0, maxInstructions)
	for _, ins := range c.Code[:c.N] {
		names = append(names, ins.Op.Name())
	}
	return strings.Join(names, "+")
}

// String is the program: "{%0=dropout{…}(a b) %1=add{…}(c %0)}".
func (c chain) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, ins := range c.Code[:c.N] {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%%%d=%s%+v(", i, ins.Op.Name(), ins.Op)
		for k, r := range ins.In[:ins.Arity] {
			if k > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(r.String())
		}
		b.WriteByte(')')
	}
	b.WriteByte('}')
	return b.String()
}

func (r reference) String() string {
	if r < 0 {
		return fmt.Sprintf("%%%d", ^r)
	}
	return string(rune('a' + r))
}

// Infer infers every instruction in turn.
func (c chain) Infer(in []graph.Type) ([]graph.Type, error) {
	if c.N < 1 || c.N > maxInstructions || c.Operands < 1 || c.Operands > maxChainOperands {
		return nil, fmt.Errorf("a chain of %d instructions on %d operands", c.N, c.Operands)
	}
	if err := arity(in, int(c.Operands)); err != nil {
		return nil, err
	}
	results := make([]graph.Type, 0, maxInstructions)
	for i, ins := range c.Code[:c.N] {
		var out []graph.Type
		args, err := ins.operands(in, results)
		if err == nil {
			out, err = ins.Op.Infer(args)
		}
		if err != nil {
			return nil, fmt.Errorf("instruction %d: %w", i, err)
		}
		results = append(results, out[0])
	}
	out := results[len(results)-1]
	return []graph.Type{out}, c.check(in, results, out)
}

// operands are the types of an instruction's operands.
func (ins instruction) operands(in, results []graph.Type) ([]graph.Type, error) {
	if _, ok := isElementwise(ins.Op); !ok || ins.Arity < 1 || ins.Arity > 2 {
		return nil, errors.New("no elementwise operation")
	}
	var args []graph.Type
	for _, r := range ins.In[:ins.Arity] {
		switch {
		case r >= 0 && int(r) < len(in):
			args = append(args, in[r])
		case r < 0 && int(^r) < len(results):
			args = append(args, results[^r])
		default:
			return nil, fmt.Errorf("there is no %s", r)
		}
	}
	return args, nil
}

// check demands that all results have one shape, and that every operand is read
// and can be spread to that shape.
func (c chain) check(in, results []graph.Type, out graph.Type) error {
	for i, t := range results {
		if !t.SameShape(out) {
			return fmt.Errorf("instruction %d gives %s, the last %s", i, t, out)
		}
	}
	for i, t := range in {
		if !c.reads(reference(i)) {
			return fmt.Errorf("operand %d is not read", i)
		}
		if t.DType == graph.I32 {
			continue // a seed, as its instruction has checked
		}
		if _, ok := spreadOver(t, out); !ok {
			return fmt.Errorf("operand %d, %s, repeats along %s in more than one way", i, t, out)
		}
	}
	return nil
}

// reads reports whether an instruction reads an operand.
func (c chain) reads(r reference) bool {
	return slices.ContainsFunc(c.Code[:c.N], func(ins instruction) bool {
		return slices.Contains(ins.In[:ins.Arity], r)
	})
}

// Cost: the instructions' arithmetic, and the traffic of operands and result
// alone.
func (c chain) Cost(in, out []graph.Type) graph.Cost {
	cost := graph.Cost{Bytes: bytes(in, out)}
	for _, ins := range c.Code[:c.N] {
		cost.FLOPs += ins.Op.Cost(in, out).FLOPs
	}
	return cost
}

// InPlace: a tile of an operand as large as the result is read before the same
// tile of the result is written.
func (c chain) InPlace(in, out []graph.Type) []int {
	var list []int
	for i, t := range in {
		if t.DType == out[0].DType && t.SameShape(out[0]) {
			list = append(list, i)
		}
	}
	return list
}

// VJP applies the instructions one by one and goes back through them.
func (c chain) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	results := make([]graph.Value, 0, maxInstructions)
	value := func(r reference) graph.Value {
		if r < 0 {
			return results[^r]
		}
		return n.In[r]
	}
	for _, ins := range c.Code[:c.N] {
		var in []graph.Value
		for _, r := range ins.In[:ins.Arity] {
			in = append(in, value(r))
		}
		results = append(results, apply(ins.Op, in...))
	}
	grads := map[reference]graph.Value{c.result(): dout[0]}
	for i := int(c.N) - 1; i >= 0; i-- {
		d, node := grads[^reference(i)], results[i].Node
		if !d.Valid() || node == nil {
			continue
		}
		for k, dx := range node.Op.VJP(node, []graph.Value{d}) {
			if r := c.Code[i].In[k]; dx.Valid() && grads[r].Valid() {
				grads[r] = Add(grads[r], dx)
			} else if dx.Valid() {
				grads[r] = dx
			}
		}
	}
	out := none(len(n.In))
	for i := range out {
		out[i] = grads[reference(i)]
	}
	return out
}

// join is the chain that computes head and then tail, whose operand v is head's
// result, and the chain's operands. ok is false if that is more than a chain
// can hold.
func join(head chain, headIn []graph.Value, tail chain, tailIn []graph.Value,
	v graph.Value) (out chain, in []graph.Value, ok bool) {
	out, in = head, slices.Clone(headIn)
	moved := make([]reference, len(tailIn))
	for k, u := range tailIn {
		at := slices.Index(in, u)
		switch {
		case u == v:
			moved[k] = head.result()
		case at >= 0:
			moved[k] = reference(at)
		default:
			moved[k] = reference(len(in))
			in = append(in, u)
		}
	}
	if int(head.N)+int(tail.N) > maxInstructions || len(in) > maxChainOperands {
		return chain{}, nil, false
	}
	for _, ins := range tail.Code[:tail.N] {
		for k, r := range ins.In[:ins.Arity] {
			if r < 0 {
				ins.In[k] = r - reference(head.N)
			} else {
				ins.In[k] = moved[r]
			}
		}
		out.Code[out.N] = ins
		out.N++
	}
	out.Operands = int8(len(in))
	return out, in, true
}

// Operations counts the instructions.
func (c chain) Operations() int { return int(c.N) }
