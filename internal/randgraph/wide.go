package randgraph

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// wide grows a random graph of every operation that there is. The values it keeps are f32 of
// any shape; whoever wants another shape has it by way of views and copies.
type wide struct {
	g      *graph.Graph
	pick   func(n int) int
	rng    *rand.Rand // fills constants, of which nothing is to shrink
	x      graph.Value
	seed   graph.Value
	lr     graph.Value
	step   graph.Value
	joint  bool // workers exchange values
	values []graph.Value
	vars   []graph.Value
	made   int            // draws so far
	more   []graph.NodeID // updates beside those of variables
	// of operations, those that can be nodes here; nil until they are asked for
	samples [][]ops.Sample
}

// Wide builds a training step from up to size draws of all operations: what Random draws, and
// convolutions, pooling, norms, tables, recurrences, experts, losses, conversions, what comes
// of gradients, and uses of operations that package ops samples. Updates are an optimizer's, gated,
// clipped and composed of several operations. The inputs are Random's.
func Wide(pick func(n int) int, size int) *Model {
	return newWide(pick).build(size, draws())
}

// WideExchanging is Wide, with values that workers exchange: gradients, and in collectives.
func WideExchanging(pick func(n int) int, size int) *Model {
	b := newWide(pick)
	b.joint = true
	return b.build(size, append(draws(), draw{"exchanged", exchanged}))
}

// Any is Random or Wide.
func Any(pick func(n int) int, size int) *Model {
	if pick(2) == 0 {
		return Random(pick, size)
	}
	return Wide(pick, (size+1)/2)
}

// newWide begins a graph.
func newWide(pick func(n int) int) *wide {
	return &wide{g: graph.New(), pick: pick, rng: rand.New(rand.NewPCG(uint64(pick(1<<12)), 1))}
}

// build makes a step by up to size draws out of all.
func (b *wide) build(size int, all []draw) *Model {
	pick := b.pick
	b.x = b.g.Input("x", tensor.Of(graph.F32, 2*(1+pick(4)), 1+pick(9)))
	b.seed = b.g.Input("seed", tensor.Of(graph.I32, 2))
	b.lr, b.step = b.g.Input("lr", tensor.Of(graph.F32)), b.g.Input("step", tensor.Of(graph.F32))
	b.values = []graph.Value{b.x}
	b.add(ops.Scale(b.variable(4, 4), 0.5))
	for range 1 + pick(size) {
		b.draw(all[pick(len(all))])
	}
	return b.finish()
}

// draw makes what a draw makes, in a scope of its own.
func (b *wide) draw(d draw) {
	defer b.g.Scope(fmt.Sprintf("%s%d", d.name, b.made))()
	b.made++
	b.add(d.make(b)...)
}

// add keeps values, all as f32 and of a size that stays small.
func (b *wide) add(values ...graph.Value) {
	for _, v := range values {
		if !v.Valid() {
			continue
		}
		if v = ops.Cast(v, graph.F32); v.Type().Elems() > 512 {
			v = ops.Slice(ops.ReshapeSizes(v, v.Type().Elems()), 0, 1, 257)
		}
		if b.pick(2) == 0 {
			v = ops.Tanh(v)
		}
		b.values = append(b.values, v)
	}
}

// any is one of the values so far, the recent ones more often.
func (b *wide) any() graph.Value {
	n := len(b.values)
	if b.pick(2) == 0 {
		return b.values[n-1-b.pick(min(n, 3))]
	}
	return b.values[b.pick(n)]
}

// size is a number from 1 to n.
func (b *wide) size(n int) int { return 1 + b.pick(n) }

// sizes are up to n axes, at least least, of up to most elements each.
func (b *wide) sizes(least, n, most int) []int {
	out := make([]int, least+b.pick(n-least+1))
	for i := range out {
		out[i] = b.size(most)
	}
	return out
}

// variable is a new variable that is trained.
func (b *wide) variable(sizes ...int) graph.Value {
	w := b.g.Variable(fmt.Sprint("w", len(b.vars)), tensor.Of(graph.F32, sizes...),
		graph.Init{Dist: graph.Normal, Scale: 0.5})
	b.vars = append(b.vars, w)
	return w
}

// weight is a variable, new or of this shape already.
func (b *wide) weight(sizes ...int) graph.Value {
	for _, w := range b.vars {
		if slices.Equal(w.Type().Sizes(), sizes) && b.pick(2) == 0 {
			return w
		}
	}
	return b.variable(sizes...)
}

// of is a value of some shape: one of those so far, its elements taken in order, again from the
// start where it has too few; seldom a variable.
func (b *wide) of(sizes ...int) graph.Value {
	v := b.any()
	have, want := v.Type().Elems(), tensor.Of(graph.F32, sizes...).Elems()
	if have == 0 || b.pick(8) == 0 {
		return b.weight(sizes...)
	}
	if slices.Equal(v.Type().Sizes(), sizes) {
		return v
	}
	flat := ops.ReshapeSizes(v, have)
	if have < want {
		flat = ops.Tile(flat, (want+have-1)/have)
		have = flat.Type().Elems()
	}
	from := b.pick(have - want + 1)
	return ops.ReshapeSizes(ops.Slice(flat, 0, from, from+want), sizes...)
}

// positive is a value whose elements are from a half to one and a half.
func (b *wide) positive(sizes ...int) graph.Value {
	return ops.AddScalar(ops.Sigmoid(b.of(sizes...)), 0.5)
}

// ids are numbers below n: constant, or what comes of values.
func (b *wide) ids(n int, sizes ...int) graph.Value {
	if b.pick(2) == 0 {
		x := ops.Scale(ops.Sigmoid(b.of(sizes...)), 0.99*float32(n))
		return ops.Cast(x, graph.I32)
	}
	t := tensor.New(tensor.Of(graph.I32, sizes...))
	for i := range t.I32() {
		t.I32()[i] = b.rng.Int32N(int32(n))
	}
	return b.g.Constant("ids", t)
}

// choice is a truth value, of bytes or of bools.
func (b *wide) choice(sizes ...int) graph.Value {
	v := ops.Less(b.of(sizes...), b.of(sizes...))
	if b.pick(2) == 0 {
		v = ops.Cast(v, graph.U8)
	}
	return v
}

// name is one that no other random operation has.
func (b *wide) name() string { return fmt.Sprint("chance", b.made) }

// finish adds a loss, what is fetched, and updates of all variables.
func (b *wide) finish() *Model {
	loss := ops.Mean(ops.Square(b.values[len(b.values)-1]))
	for range 1 + b.pick(4) {
		loss = ops.Add(loss, ops.Mean(ops.Square(b.any())))
	}
	m := &Model{Graph: b.g, Fetches: []graph.Value{loss},
		Inputs: []graph.Value{b.x, b.seed, b.lr, b.step}}
	for range b.pick(3) {
		if v := b.any(); v.Node.Kind != graph.KindInput {
			m.Fetches = append(m.Fetches, ops.Scale(v, 2))
		}
	}
	grads := autodiff.Grad(loss, b.vars...)
	if b.joint && b.pick(4) == 0 {
		b.exchange(grads)
	}
	if b.pick(2) == 0 {
		b.g.InPhase(graph.Update, func() { b.clip(grads) })
	}
	for i, dw := range grads {
		if dw.Valid() {
			m.Updates = append(m.Updates, b.update(b.vars[i], dw)...)
		}
	}
	m.Updates = append(m.Updates, b.more...)
	return m
}

// clip scales gradients so that their norm is small.
func (b *wide) clip(grads []graph.Value) {
	var squares graph.Value
	for _, dw := range grads {
		if !dw.Valid() {
			continue
		}
		if s := ops.WideSquares(dw); squares.Valid() {
			squares = ops.Add(squares, s)
		} else {
			squares = s
		}
	}
	if !squares.Valid() {
		return
	}
	factor := ops.NormFactor(squares, 0.1)
	for i, dw := range grads {
		if dw.Valid() {
			grads[i] = ops.Mul(dw, factor)
		}
	}
}
