// Package autodiff turns a graph that computes a scalar into a larger graph
// that also computes its gradients.
//
// Reverse mode: nodes are visited from the last to the first, each asks its
// operation's VJP for the gradients of its operands, and contributions to one
// value are summed in the order in which they are made. The result is ordinary
// nodes of the same graph, in phase Backward and carrying the name scope and the model
// line of the node they belong to. They can be printed, scheduled and
// differentiated again: [Grad] of a function of gradients is a second gradient.
//
// Only nodes between the variables asked for and the scalar are visited. The
// package does not know what an operation's gradient is, and does not simplify
// what the operations give.
package autodiff

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Grad appends the gradients of y, one floating-point number, with respect to each of wrt. A
// value that y does not depend on has the zero Value as its gradient. Mistakes
// are recorded in the graph, as with every operation.
func Grad(y graph.Value, wrt ...graph.Value) []graph.Value {
	out := make([]graph.Value, len(wrt))
	if !y.Valid() {
		return out
	}
	g := y.Graph()
	if err := check(y, wrt); err != nil {
		g.Fail(err)
		return out
	}
	g.InPhase(graph.Backward, func() { gradients(g, y, wrt, out) })
	return out
}

// check reports what there are no gradients of, with the line where it was made, and
// what there are none by.
func check(y graph.Value, wrt []graph.Value) error {
	t := y.Type()
	switch {
	case t.Elems() != 1:
		return fmt.Errorf("gradient of %s, which is %s (made at %s): want one number, such as its "+
			"ops.Sum or ops.Mean", y, t, y.Node.Pos)
	case !t.DType.Floating():
		return fmt.Errorf("gradient of %s, which is %s (made at %s): want f32, as ops.Cast gives",
			y, t, y.Node.Pos)
	}
	for i, v := range wrt {
		if v.Valid() && v.Graph() != y.Graph() {
			return fmt.Errorf("gradient of %s by value %d, %s, of another graph", y, i, v)
		}
	}
	return nil
}

// VJP appends the products of gradients dys of some values ys with the derivatives of these with
// respect to each of wrt: what [Grad] is of one number, whose own gradient is 1. To a gradient that
// start has, of one of wrt, its product is added, contribution by contribution, as if start were
// what later nodes had made of it. A zero Value among dys is of a value that does not matter, and
// among the results of one that none of ys depends on. All values of wrt are leaves.
func VJP(ys, dys, wrt, start []graph.Value) []graph.Value {
	out := make([]graph.Value, len(wrt))
	grad := map[graph.Value]graph.Value{}
	for i, v := range wrt {
		if start != nil && start[i].Valid() {
			grad[v] = start[i]
		}
	}
	var of []graph.Value
	for i, y := range ys {
		if !y.Valid() || !dys[i].Valid() {
			continue
		}
		if sum, ok := grad[y]; ok {
			grad[y] = ops.Add(sum, dys[i])
		} else {
			grad[y] = dys[i]
		}
		of = append(of, y)
	}
	if len(of) > 0 {
		back(of[0].Graph(), of, wrt, grad)
	}
	for i, v := range wrt {
		out[i] = grad[v]
	}
	return out
}

func gradients(g *graph.Graph, y graph.Value, wrt, out []graph.Value) {
	grad := map[graph.Value]graph.Value{}
	g.On(y.Node, func() { grad[y] = ops.Ones(g, y.Type()) })
	back(g, []graph.Value{y}, wrt, grad)
	for i, v := range wrt {
		out[i] = grad[v]
	}
}

// back adds to gradients, those of ys, what nodes before have a part in.
func back(g *graph.Graph, ys, wrt []graph.Value, grad map[graph.Value]graph.Value) {
	var last graph.NodeID
	for _, y := range ys {
		last = max(last, y.Node.ID)
	}
	relevant := between(g, ys, last, wrt)
	for id := last; id >= 0; id-- {
		n := g.Node(id)
		if relevant[id] && !n.Leaf() {
			g.On(n, func() { step(n, grad, relevant) })
		}
	}
}

// between marks the nodes that depend on wrt, by values that have gradients, and that ys depend
// on. An operation that is not marked is not asked for a gradient, which it may not have.
func between(g *graph.Graph, ys []graph.Value, last graph.NodeID, wrt []graph.Value) []bool {
	var roots []graph.NodeID
	for _, y := range ys {
		roots = append(roots, y.Node.ID)
	}
	needed := g.Ancestors(roots)
	depends := make([]bool, len(needed))
	for _, v := range wrt {
		if v.Valid() {
			depends[v.Node.ID] = true
		}
	}
	for id := range last + 1 {
		n := g.Node(id)
		if !n.Leaf() && !ops.Stops(n.Op) {
			for _, v := range n.In {
				depends[id] = depends[id] || depends[v.Node.ID] && v.Type().DType.Floating()
			}
		}
		needed[id] = needed[id] && depends[id]
	}
	return needed
}

// step adds the contributions of n to the gradients of its operands.
func step(n *graph.Node, grad map[graph.Value]graph.Value, relevant []bool) {
	dout := make([]graph.Value, len(n.Out))
	any := false
	for i := range n.Out {
		dout[i] = grad[n.Value(i)]
		any = any || dout[i].Valid()
	}
	if !any {
		return
	}
	din := n.Op.VJP(n, dout)
	for i, v := range n.In {
		if i >= len(din) || !din[i].Valid() || !relevant[v.Node.ID] {
			continue
		}
		if d := din[i].Type(); !d.Equal(v.Type()) {
			n.Graph().Fail(fmt.Errorf("gradient of operand %d of %s is %s, the operand is %s", i,
				n.Name, d, v.Type()))
			continue
		}
		if sum, ok := grad[v]; ok {
			grad[v] = ops.Add(sum, din[i])
		} else {
			grad[v] = din[i]
		}
	}
}
