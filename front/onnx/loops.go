package onnx

import (
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// mostIterations of a loop are unrolled.
const mostIterations = 1 << 12

// fewIterations of a loop are unrolled, so that their operations are planned one by one.
const fewIterations = 8

// loop is a loop: unrolled where it is short or changes shapes, otherwise one operation.
func loop(n *node) {
	n.asked["body"] = true
	known := !n.has(0) || n.in[0].known != nil
	if !known || n.has(1) && n.in[1].known == nil {
		while(n)
		return
	}
	trips := n.scalar(0, math.Inf(1))
	if trips > fewIterations && !math.IsInf(trips, 1) &&
		n.attempt(func() { counted(n, int(trips)) }) == nil {
		return
	}
	if err := n.attempt(func() { unrolled(n, trips) }); err != nil {
		if n.b.net.bound < 1 {
			fail("%w", err)
		}
		while(n)
	}
}

// attempt builds the node in some way, of which nothing is left if it cannot be.
func (n *node) attempt(build func()) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			n.out, err = nil, f.error
		default:
			panic(f)
		}
	}()
	build()
	return nil
}

// unrolled is a copy of the body for each iteration.
func unrolled(n *node, trips float64) {
	condition := operand{known: ptr(truth(true))}
	if n.has(1) {
		condition = n.in[1]
	}
	states := slices.Clone(n.in[min(2, len(n.in)):])
	var rows [][]operand
	for i := 0; float64(i) < trips; i++ {
		if condition.known == nil {
			fail("its condition depends on what is fed, and there is no bound")
		}
		if condition.known.U8()[0] == 0 {
			break
		}
		if i == mostIterations {
			fail("it runs more than %d times", mostIterations)
		}
		out := n.body("body", append([]operand{{known: ptr(longs(nil, i))}, condition},
			states...)...)
		condition = out[0]
		rows = append(rows, out[1+len(states):])
		states = out[1 : 1+len(states)]
	}
	n.out = states
	n.stacked(rows, len(n.Out)-len(states))
}

// stacked adds results that have a row of each iteration.
func (n *node) stacked(rows [][]operand, count int) {
	for k := range count {
		if len(rows) == 0 {
			fail("it does not run, and result %d is of as many rows", k)
		}
		var list []value
		for _, r := range rows {
			list = append(list, n.b.onGraph(r[k]))
		}
		n.give(ops.Stack(list...))
	}
}

// carried are the operands that a loop carries from one iteration to the next.
func carried(n *node) (list []value, types []graph.Type) {
	for i := 2; i < len(n.in); i++ {
		list = append(list, n.x(i))
		types = append(types, list[i-2].Type())
	}
	return list, types
}

var long = tensor.Of(tensor.I64)

// counted is one operation for so many iterations, of a loop whose condition always holds.
func counted(n *node, trips int) {
	body := n.bodyOf("body")
	states, types := carried(n)
	holds := operand{known: ptr(truth(true))}
	// The number of the iteration comes first: so the condition is put behind it.
	outer, results := body.draft([]operand{{known: ptr(longs(nil, 0))}, holds}, types)
	if c := results[0]; c.known == nil || c.known.U8()[0] == 0 {
		fail("its condition depends on what is fed, or on the iteration")
	}
	count := make([]int, few("iterations", trips))
	for i := range count {
		count[i] = i
	}
	xs := []value{n.b.g.Constant("iterations", longs([]int{trips}, count...))}
	last, ys := control.Scan(outer, states, xs, func(same, states, xs []value) (next, ys []value) {
		in := append([]operand{{value: xs[0]}, holds}, operands(states)...)
		out := body.in(xs[0].Graph(), outer, same, in)
		return out[1 : 1+len(states)], out[1+len(states):]
	}, control.Options{Forward: !n.b.ctx.Training()})
	n.give(append(last, ys...)...)
}

// while is one operation for a loop whose end depends on data, with a bound.
func while(n *node) {
	bound := n.b.net.bound
	if bound < 1 {
		fail("how often it runs depends on what is fed: say how often at most (Options.Bound)")
	}
	body := n.bodyOf("body")
	states, types := carried(n)
	outer, results := body.draft(nil, append([]graph.Type{long, tensor.Of(tensor.Bool)}, types...))
	if len(results) != 1+len(states) {
		fail("how often it runs depends on what is fed, and so would the rows of its result %d",
			len(states))
	}
	holds := n.b.g.Constant("condition", truth(true))
	if n.has(1) {
		holds = ops.ReshapeSizes(n.x(1))
	}
	limit := n.b.g.Constant("limit", longs(nil, math.MaxInt64))
	if n.has(0) {
		limit = ops.ReshapeSizes(n.x(0))
	}
	all := append([]value{n.b.g.Constant("iteration", longs(nil, 0)), holds}, states...)
	last, _ := control.While(append([]value{limit}, outer...), all, bound,
		func(same, s []value) value { return ops.And(s[1], ops.Less(s[0], same[0])) },
		func(same, s []value) []value {
			out := body.in(s[0].Graph(), outer, same[1:], operands(s))
			next := ops.Add(s[0], scalarOf(s[0].Graph(), graph.I64, 1))
			return append([]value{next, ops.ReshapeSizes(out[0])}, out[1:]...)
		}, control.Options{Forward: !n.b.ctx.Training()})
	n.give(last[2:]...)
}

func ptr[T any](v T) *T { return &v }
