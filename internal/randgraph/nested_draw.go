package randgraph

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// nesting is how deep bodies are within one another.
const nesting = 3

// rows and columns of a nested program's values.
const nestedRows, nestedCols = 2, 3

// nester draws a program.
type nester struct {
	pick  func(n int) int
	types []graph.DType
}

// matrix is the type of a program's values.
func matrix(d graph.DType) graph.Type { return tensor.Of(d, nestedRows, nestedCols) }

// DrawNested draws a program of up to so many statements a body, of element types out of a list.
// It has three operands of the first type, and gives up to three values.
func DrawNested(pick func(n int) int, size int, types []graph.DType) *Nested {
	n := &nester{pick, types}
	t := matrix(types[0])
	top := n.block([]graph.Type{t, t, t}, 0, 2+pick(size))
	return &Nested{*top.block.results(top, nil, 1+pick(3))}
}

// drawing is a block that is being drawn, with the types of its values.
type drawing struct {
	*nester
	block  *block
	values []graph.DType
	depth  int
}

// block draws statements of a body of operands.
func (n *nester) block(in []graph.Type, depth, size int) *drawing {
	d := &drawing{nester: n, block: &block{in: in}, depth: depth}
	for _, t := range in {
		d.values = append(d.values, t.DType)
	}
	for range size {
		d.grow()
	}
	return d
}

// results chooses a block's: one of each of some types, and so many more of any.
func (b *block) results(d *drawing, types []graph.DType, more int) *block {
	for _, t := range types {
		b.out = append(b.out, d.of(t))
	}
	for range more {
		b.out = append(b.out, d.any())
	}
	return b
}

// any is one of the values so far, the recent ones more often.
func (d *drawing) any() int {
	n := len(d.values)
	if d.pick(2) == 0 {
		return n - 1 - d.pick(min(n, 3))
	}
	return d.pick(n)
}

// of is one of a type: converted if need be.
func (d *drawing) of(t graph.DType) int {
	v := d.any()
	if d.values[v] == t {
		return v
	}
	return d.add([]int{v}, []graph.DType{t}, func(_ way, in []graph.Value) []graph.Value {
		return one(ops.Cast(in[0], t))
	})
}

// some are up to n values, and their types.
func (d *drawing) some(least, n int) (list []int, types []graph.DType) {
	for range least + d.pick(n-least+1) {
		v := d.any()
		list, types = append(list, v), append(types, d.values[v])
	}
	return list, types
}

// add is a statement, of which the first value is returned.
func (d *drawing) add(in []int, types []graph.DType,
	make func(w way, in []graph.Value) []graph.Value) int {
	d.block.steps = append(d.block.steps, statement{in, make})
	d.values = append(d.values, types...)
	return len(d.values) - len(types)
}

// grow adds a statement.
func (d *drawing) grow() {
	if d.depth < nesting {
		switch d.pick(3 + 2*d.depth) {
		case 0:
			d.scan()
			return
		case 1:
			d.while()
			return
		case 2:
			d.branch()
			return
		}
	}
	d.plain()
}

// plain adds an operation without a body.
func (d *drawing) plain() {
	v := d.any()
	t := d.values[v]
	if d.pick(4) == 0 {
		t = d.types[d.pick(len(d.types))]
		v = d.of(t)
	}
	w, kind, weight := d.of(t), d.pick(5), 1+d.pick(5)
	d.add([]int{v, w}, []graph.DType{t}, func(_ way, in []graph.Value) []graph.Value {
		a, b := in[0], in[1]
		switch {
		case t == graph.Bool:
			return one([]func(a, b graph.Value) graph.Value{ops.And, ops.Or, ops.Xor, ops.Xor,
				ops.And}[kind](a, ops.Not(b)))
		case !t.Floating():
			return one([]func(a, b graph.Value) graph.Value{ops.Add, ops.Sub, ops.Mul,
				ops.Maximum, ops.Minimum}[kind](a, b))
		}
		return one(smoothly(kind, weight, a, b))
	})
}

// smoothly computes with floating-point numbers, of which the results stay small.
func smoothly(kind, weight int, a, b graph.Value) graph.Value {
	switch kind {
	case 0:
		return ops.Tanh(ops.Add(a, b))
	case 1:
		return ops.Mul(ops.Sin(a), ops.Sigmoid(b))
	case 2:
		return ops.Sub(ops.Scale(a, 0.5), ops.Tanh(b))
	case 3: // with constants, and scratch
		if t := a.Type().DType; t == graph.F32 || t == graph.F64 {
			m := make([]float32, nestedCols*nestedCols)
			for i := range m {
				m[i] = float32(float32((i*weight)%7)/8) - 0.25
			}
			w := a.Graph().Constant("weights", tensor.FromF32(m, nestedCols, nestedCols))
			return ops.Tanh(ops.MatMul(a, ops.Cast(w, t)))
		}
	}
	return ops.Cos(ops.Add(a, ops.Scale(b, float32(weight)/4)))
}

// measure is a number from 0 to 1 that depends on a value, as f32[].
func measure(v graph.Value) graph.Value {
	return ops.Sigmoid(ops.Scale(ops.Sum(ops.Tanh(ops.Cast(v, graph.F32))), 2))
}

// below is whether the measure of a value is below a number.
func below(v graph.Value, limit float32) graph.Value {
	return ops.Less(measure(v), ops.Full(v.Graph(), tensor.Of(graph.F32), limit))
}

// upTo is a number of iterations, from 0 to n, that depends on a value.
func upTo(v graph.Value, n int) graph.Value {
	return ops.Cast(ops.Scale(measure(v), float32(n)+0.99), graph.I32)
}

// matrices are types of values.
func matrices(lists ...[]graph.DType) (out []graph.Type) {
	for _, list := range lists {
		for _, d := range list {
			out = append(out, matrix(d))
		}
	}
	return out
}

// body draws what a loop or a branch does: a block of its own.
func (d *drawing) body(in []graph.Type) *drawing {
	return d.nester.block(in, d.depth+1, 1+d.pick(3))
}

// scan adds a loop over elements, with a count or without, and what it made of the rows.
func (d *drawing) scan() {
	same, sames := d.some(0, 2)
	states, kinds := d.some(1, 3)
	t := d.values[d.any()]
	l := &loop{length: 1 + d.pick(3), reverse: d.pick(2) == 0, forward: d.pick(4) == 0}
	rows := make([]int, l.length)
	for i := range rows {
		rows[i] = d.of(t)
	}
	body := d.body(matrices(sames, kinds, []graph.DType{t}))
	l.body = body.block.results(body, kinds, 1)
	made := body.values[l.body.out[len(kinds)]]
	counts, row := d.pick(3) == 0, d.pick(l.length)
	in := append(append(append([]int{}, same...), states...), rows...)
	n, m := len(same), len(same)+len(states)
	d.add(in, append(append([]graph.DType{}, kinds...), made),
		func(w way, in []graph.Value) []graph.Value {
			count := graph.Value{}
			if counts {
				count = upTo(in[m], l.length)
			}
			last, ys := w.scan(l, in[:n], in[n:m], one(ops.Stack(in[m:]...)), count)
			return append(last[:m-n:m-n], ops.Unstack(ys[0])[row])
		})
}

// while adds a loop whose end depends on data.
func (d *drawing) while() {
	same, sames := d.some(0, 2)
	states, kinds := d.some(1, 3)
	l := &loop{length: 1 + d.pick(4), forward: d.pick(4) == 0}
	body := d.body(matrices(sames, kinds))
	l.body = body.block.results(body, kinds, 0)
	going := d.nester.block(matrices(sames, kinds), d.depth+1, d.pick(2))
	v, limit := going.any(), 0.3+float32(d.pick(5))/5
	going.add([]int{v}, []graph.DType{graph.Bool}, func(_ way, in []graph.Value) []graph.Value {
		return one(below(in[0], limit))
	})
	l.going = going.block
	l.going.out = []int{len(going.values) - 1}
	n := len(same)
	d.add(append(append([]int{}, same...), states...), kinds,
		func(w way, in []graph.Value) []graph.Value {
			most := upTo(in[n], l.length)
			zero := ops.Cast(ops.Zeros(most.Graph(), tensor.Of(graph.F32)), graph.I32)
			return w.while(l, append(one(most), in[:n]...), append(one(zero), in[n:]...))[1:]
		})
}

// branch adds one of two ways to go on.
func (d *drawing) branch() {
	in, types := d.some(1, 3)
	then, otherwise := d.body(matrices(types)), d.body(matrices(types))
	then.block.results(then, nil, 1+d.pick(2))
	var made []graph.DType
	for _, v := range then.block.out {
		made = append(made, then.values[v])
	}
	otherwise.block.results(otherwise, made, 0)
	limit := float32(1+d.pick(9)) / 10
	d.add(in, made, func(w way, in []graph.Value) []graph.Value {
		return w.branch(below(in[0], limit), in, then.block, otherwise.block)
	})
}
