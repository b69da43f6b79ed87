package randgraph

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// Nested is a random program with loops and branches within one another, up to three deep. It is
// drawn once and built in two ways: of the operations of package control, and by Go's own loops and
// branches. All values that it computes with are matrices of one shape, of any element type.
type Nested struct{ top block }

// block is what a body does, and the whole program: it has operands, each statement makes values
// of those so far, and some of these are results.
type block struct {
	in    []graph.Type
	steps []statement
	out   []int
}

// statement makes values of others, which are numbered.
type statement struct {
	in   []int
	make func(w way, in []graph.Value) []graph.Value
}

// way is how loops and branches are built.
type way interface {
	scan(l *loop, same, states, xs []graph.Value, count graph.Value) (last, ys []graph.Value)
	while(l *loop, same, states []graph.Value) []graph.Value
	branch(p graph.Value, in []graph.Value, then, otherwise *block) []graph.Value
}

// loop is a scan of so many elements, or a loop of so many iterations at most, which goes on while
// a condition holds and a counter, its first state, is below its first operand.
type loop struct {
	length  int
	reverse bool
	forward bool
	body    *block
	going   *block
}

// build has the statements made, and returns the results.
func (b *block) build(w way, in []graph.Value) []graph.Value {
	values := append([]graph.Value{}, in...)
	pick := func(list []int) []graph.Value {
		out := make([]graph.Value, len(list))
		for i, k := range list {
			out[i] = values[k]
		}
		return out
	}
	for _, s := range b.steps {
		values = append(values, s.make(w, pick(s.in))...)
	}
	return pick(b.out)
}

// In are the types of the program's operands.
func (p *Nested) In() []graph.Type { return p.top.in }

// Build appends the program to the graph of its operands, with loops and branches as operations.
func (p *Nested) Build(in []graph.Value) []graph.Value { return p.top.build(asOperations{}, in) }

// Unroll appends the program with loops and branches that are Go's: what they depend on is looked
// at.
func (p *Nested) Unroll(in []graph.Value, look func(v graph.Value) tensor.View) []graph.Value {
	return p.top.build(unrolled{look}, in)
}

// asOperations builds with package control.
type asOperations struct{}

func (w asOperations) scan(l *loop, same, states, xs []graph.Value,
	count graph.Value) (last, ys []graph.Value) {
	n := len(states)
	return control.Scan(same, states, xs, func(same, states, xs []graph.Value) (next,
		ys []graph.Value) {
		all := l.body.build(w, slices.Concat(same, states, xs))
		return all[:n], all[n:]
	}, control.Options{Reverse: l.reverse, Forward: l.forward, Count: count})
}

func (w asOperations) while(l *loop, same, states []graph.Value) []graph.Value {
	last, _ := control.While(same, states, l.length, func(same, states []graph.Value) graph.Value {
		return ops.And(ops.Less(states[0], same[0]), l.going.build(w, slices.Concat(same[1:],
			states[1:]))[0])
	}, func(same, states []graph.Value) []graph.Value {
		return append([]graph.Value{counted(states[0])}, l.body.build(w, slices.Concat(same[1:],
			states[1:]))...)
	}, control.Options{Forward: l.forward})
	return last
}

// counted is a counter after one more iteration.
func counted(k graph.Value) graph.Value {
	return ops.Add(k, ops.Cast(ops.Ones(k.Graph(), tensor.Of(graph.F32)), graph.I32))
}

func (w asOperations) branch(p graph.Value, in []graph.Value, then,
	otherwise *block) []graph.Value {
	side := func(b *block) func(in []graph.Value) []graph.Value {
		return func(in []graph.Value) []graph.Value { return b.build(w, in) }
	}
	return control.Cond(p, in, side(then), side(otherwise))
}

// unrolled builds with Go's loops and branches.
type unrolled struct {
	look func(v graph.Value) tensor.View
}

func (w unrolled) scan(l *loop, same, states, xs []graph.Value,
	count graph.Value) (last, ys []graph.Value) {
	n := l.length
	if count.Valid() {
		n = int(w.look(count).I32()[0])
	}
	rows := make([][]graph.Value, len(l.body.out)-len(states)) // by result, by element
	for k := range n {
		if l.reverse {
			k = n - 1 - k
		}
		elements := make([]graph.Value, len(xs))
		for i, x := range xs {
			elements[i] = ops.Unstack(x)[k]
		}
		all := l.body.build(w, slices.Concat(same, states, elements))
		for i := range rows {
			if rows[i] == nil {
				rows[i] = make([]graph.Value, l.length)
			}
			rows[i][k] = all[len(states)+i]
		}
		states = all[:len(states)]
	}
	g := xs[0].Graph()
	for i, r := range rows {
		if r == nil {
			r = make([]graph.Value, l.length)
		}
		for k := range r {
			if !r[k].Valid() {
				r[k] = none(g, l.body.types()[len(states)+i])
			}
		}
		ys = append(ys, ops.Stack(r...))
	}
	return states, ys
}

// none is a value of zeros.
func none(g *graph.Graph, t graph.Type) graph.Value {
	return g.Constant("none", tensor.New(t))
}

func (w unrolled) while(l *loop, same, states []graph.Value) []graph.Value {
	limit := w.look(same[0]).I32()[0]
	for k := w.look(states[0]).I32()[0]; k < limit; k++ {
		if w.look(l.going.build(w, slices.Concat(same[1:], states[1:]))[0]).Data[0] == 0 {
			break
		}
		states = append([]graph.Value{counted(states[0])},
			l.body.build(w, slices.Concat(same[1:], states[1:]))...)
	}
	return states
}

func (w unrolled) branch(p graph.Value, in []graph.Value, then,
	otherwise *block) []graph.Value {
	if w.look(p).Data[0] != 0 {
		return then.build(w, in)
	}
	return otherwise.build(w, in)
}

// types are those of the results: values are matrices of the program's shape.
func (b *block) types() []graph.Type {
	g := graph.New()
	var in []graph.Value
	for i, t := range b.in {
		in = append(in, g.Input(fmt.Sprint("x", i), t))
	}
	var out []graph.Type
	for _, v := range b.build(asOperations{}, in) {
		out = append(out, v.Type())
	}
	return out
}

// Nesting builds a training step of a nested program of up to so many statements a body, in f32
// and every other type. The inputs are Random's.
func Nesting(pick func(n int) int, size int) *Model {
	b := &builder{g: graph.New(), pick: pick}
	t := matrix(graph.F32)
	x := b.g.Input("x", t)
	seed := b.g.Input("seed", tensor.Of(graph.I32, 2))
	lr, step := b.g.Input("lr", tensor.Of(graph.F32)), b.g.Input("step", tensor.Of(graph.F32))
	for i := range 2 {
		b.vars = append(b.vars, b.g.Variable(fmt.Sprint("w", i), t,
			graph.Init{Dist: graph.Normal, Scale: 0.5}))
	}
	out := DrawNested(pick, size, NestedTypes()).Build([]graph.Value{x, b.vars[0], b.vars[1]})
	loss := NestedLoss(out)
	m := &Model{Graph: b.g, Fetches: []graph.Value{loss}, Inputs: []graph.Value{x, seed, lr, step}}
	for i, dw := range autodiff.Grad(loss, b.vars...) {
		if dw.Valid() {
			m.Updates = append(m.Updates, b.update(b.vars[i], dw, lr, step).ID)
		}
	}
	return m
}

// NestedTypes are the element types of nested programs, that of operands first.
func NestedTypes() []graph.DType {
	return []graph.DType{graph.F32, graph.F32, graph.F64, graph.BF16, graph.F16, graph.I32,
		graph.I64, graph.I8, graph.I16, graph.U8, graph.U16, graph.U32, graph.U64, graph.Bool}
}

// NestedLoss is a number that depends on all values: f64[] of values in f64, or f32[].
func NestedLoss(values []graph.Value) graph.Value {
	var sum graph.Value
	for _, v := range values {
		if v.Type().DType != graph.F64 || sum.Valid() && sum.Type().DType != graph.F64 {
			v = ops.Cast(v, graph.F32)
		}
		s := ops.Mean(ops.Square(v))
		if sum.Valid() {
			s = ops.Add(sum, ops.Cast(s, sum.Type().DType))
		}
		sum = s
	}
	return sum
}
