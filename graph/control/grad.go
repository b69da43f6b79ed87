package control

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
)

// loop is what the gradient of a loop needs of it.
type loop struct {
	body             *Body
	same, states, xs int           // operands of the body; the rest are its constants
	in               []graph.Value // operands of the loop, in the body's order
	records          []graph.Value // what the states were at the beginning of each iteration
	reverse          bool
	count            graph.Value
	of               span
}

// backward is how a loop's gradient goes back through an iteration.
type backward struct {
	loop
	drows []graph.Value // gradients of the loop's rows; zero Values of some
	sums  []int         // operands of the body whose gradients are added up over iterations
	backs []int         // states that have gradients
	rows  []int         // rows that have gradients
	along []int         // operands whose gradients are rows
}

// gradient appends the loop in the opposite direction. dstates are the gradients of the states that
// the loop gave, drows those of its rows and of its records, which are rows, too; those of its
// operands are returned, in the body's order.
func (l loop) gradient(dstates, drows []graph.Value) []graph.Value {
	out := make([]graph.Value, len(l.in))
	touched, ok := l.touched(drows)
	if !ok {
		return out
	}
	b := backward{loop: l, drows: drows}
	split := l.same + l.states
	for i, t := range touched {
		switch {
		case i < l.same && t:
			b.sums = append(b.sums, i)
		case i >= l.same && i < split && l.in[i].Type().DType.Floating():
			b.backs = append(b.backs, i)
		case i >= split && i < split+l.xs && t:
			b.along = append(b.along, i)
		}
	}
	for i, d := range drows {
		if d.Valid() {
			b.rows = append(b.rows, i)
		}
	}
	last, ys := b.scan(dstates)
	for k, i := range append(b.sums, b.backs...) {
		out[i] = last[k]
	}
	for k, i := range b.along {
		if k < len(ys) {
			out[i] = ys[k]
		}
	}
	return out
}

// scan appends the loop: its states are the sums and the gradients of the loop's states.
func (b *backward) scan(dstates []graph.Value) (last, ys []graph.Value) {
	g := b.in[0].Graph()
	split := b.same + b.states
	var states []graph.Value
	for _, i := range b.sums {
		states = append(states, nothing(g, b.in[i].Type()))
	}
	for _, i := range b.backs {
		d := dstates[i-b.same]
		if !d.Valid() {
			d = zeros(g, b.in[i].Type())
		}
		states = append(states, d)
	}
	xs := slices.Concat(b.records, b.in[split:split+b.xs])
	for _, i := range b.rows {
		xs = append(xs, b.drows[i])
	}
	return Scan(slices.Concat(b.in[:b.same], b.in[split+b.xs:]), states, xs, b.iteration,
		Options{Reverse: !b.reverse, Count: b.count, Forward: true, of: b.of})
}

// iteration is the loop's body.
func (b *backward) iteration(same, states, xs []graph.Value) (next, ys []graph.Value) {
	all := b.states + b.loop.xs
	in := slices.Concat(same[:b.same], xs[:all], same[b.same:])
	dr := make([]graph.Value, len(b.drows))
	for k, i := range b.rows {
		dr[i] = xs[all+k]
	}
	ds := make([]graph.Value, b.states)
	for k, i := range b.backs {
		ds[i-b.same] = states[len(b.sums)+k]
	}
	start := make([]graph.Value, len(in))
	for k, i := range b.sums {
		start[i] = states[k]
	}
	d := b.pull(in, ds, dr, start)
	for _, i := range b.sums {
		next = append(next, d[i])
	}
	for _, i := range b.backs {
		next = append(next, orZeros(d[i], in[i]))
	}
	for _, i := range b.along {
		ys = append(ys, d[i])
	}
	return next, ys
}

// pull builds the body once more, of operands, and the gradients of these.
func (l loop) pull(in, dstates, drows, start []graph.Value) []graph.Value {
	none := make([]graph.Value, len(in))
	made, err := l.body.again(in)
	if err != nil {
		return none
	}
	ys := slices.Concat(made[l.states:], in[l.same:l.same+l.states], made[:l.states])
	drows = append(slices.Clone(drows), make([]graph.Value, len(made)-len(drows))...)
	return autodiff.VJP(ys, append(append([]graph.Value{}, drows...), dstates...), in, start)
}

// touched says which operands of the body have a gradient, if all states have one, and whether the
// loop has any: without iterations it gives states as they were. It is found out on a graph that is
// thrown away.
func (l loop) touched(drows []graph.Value) ([]bool, bool) {
	g := graph.New()
	in := inputs(g, types(l.body.in))
	ds, dr, any := make([]graph.Value, l.states), make([]graph.Value, len(drows)), false
	for i := range ds {
		if t := in[l.same+i].Type(); t.DType.Floating() {
			ds[i] = zeros(g, t)
			any = any || l.count.Valid()
		}
	}
	for i, d := range drows {
		if d.Valid() {
			dr[i] = zeros(g, element(d.Type()))
		}
	}
	d := l.pull(in, ds, dr, nil)
	out := make([]bool, len(in))
	for i, v := range d {
		out[i] = v.Valid()
		any = any || out[i]
	}
	return out, any
}

// nothing is what a sum begins with: −0, to which adding any number gives that number's bits.
func nothing(g *graph.Graph, t graph.Type) graph.Value {
	return full(g, t, float32(math.Copysign(0, -1)))
}

func zeros(g *graph.Graph, t graph.Type) graph.Value { return full(g, t, 0) }

// full is a value of equal elements of any floating-point type.
func full(g *graph.Graph, t graph.Type, v float32) graph.Value {
	return ops.Cast(ops.Full(g, graph.Type{DType: graph.F32, Shape: t.Shape}, v), t.DType)
}

// inputs are operands in a graph that is thrown away.
func inputs(g *graph.Graph, list []graph.Type) (in []graph.Value) {
	for i, t := range list {
		in = append(in, g.Input(fmt.Sprintf("operand%d", i), t))
	}
	return in
}

func orZeros(d, like graph.Value) graph.Value {
	if d.Valid() {
		return d
	}
	return zeros(like.Graph(), like.Type())
}

// VJP is a scan in the opposite direction.
func (s scan) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	in := n.In
	l := loop{body: s.Body, same: s.Same, states: s.States, xs: s.Xs, reverse: s.Reverse,
		in: in, of: s.span}
	if s.Counted {
		l.in, l.count = in[:len(in)-1], in[len(in)-1]
	}
	if !s.Record {
		twin := s
		twin.Record = true
		if n = graph.Apply(twin, in...); n == nil {
			return make([]graph.Value, len(in))
		}
	}
	l.records = results(n)[len(s.Body.out):]
	d := l.gradient(dout[:s.States], dout[s.States:])
	return append(d, make([]graph.Value, len(in)-len(d))...)
}
