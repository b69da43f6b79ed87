package onnx

import (
	"slices"

	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/onnx"
)

// controls are operators with graphs of their own. What decides them has to be known while the
// network is built; a loop is as many copies of its body as it has iterations.
var controls = map[string]operator{
	"If":   {build: branch, bodies: true},
	"Loop": {build: loop, bodies: true},
	"Scan": {build: scan, bodies: true},
}

// inline builds a function.
func (n *node) inline(f *onnx.Function) {
	inner := *n.b
	inner.opsets, inner.call = f.Opsets, &call{attributes: map[string]*onnx.Attribute{}}
	for _, a := range f.Defaults {
		inner.call.attributes[a.Name] = a
	}
	for _, name := range f.Attributes {
		inner.call.attributes[name] = nil
	}
	for name := range inner.call.attributes {
		i := slices.IndexFunc(n.Attributes, func(a *onnx.Attribute) bool { return a.Name == name })
		if i < 0 {
			continue
		}
		if a := n.attribute(name, n.Attributes[i].Kind); a != nil {
			inner.call.attributes[name] = a
		}
	}
	names := scope{names: map[string]operand{}}
	for i, name := range f.In {
		if i < len(n.in) {
			names.names[name] = n.in[i]
		} else {
			names.names[name] = operand{}
		}
	}
	if inner.depth++; inner.depth > onnx.MaxDepth {
		fail("graphs and functions are more than %d deep", onnx.MaxDepth)
	}
	if err := inner.nodes(f.Nodes, &names); err != nil {
		fail("%w", err)
	}
	for _, name := range f.Out {
		o, ok := names.find(name)
		if !ok {
			fail("its function does not compute %q", name)
		}
		n.out = append(n.out, o)
	}
}

// body builds a graph of the node, of operands.
func (n *node) body(name string, in ...operand) []operand {
	a := n.attribute(name, onnx.GraphKind)
	if a == nil {
		fail("it has no %s", name)
	}
	names := scope{outer: n.names, names: map[string]operand{}}
	if len(in) != len(a.Graph.Inputs) {
		fail("%s takes %d operands, not %d", name, len(a.Graph.Inputs), len(in))
	}
	for i, v := range a.Graph.Inputs {
		names.names[v.Name] = in[i]
	}
	out, err := n.b.graph(a.Graph, &names)
	if err != nil {
		fail("%s: %w", name, err)
	}
	return out
}

// branch is one of two graphs: by a condition that is known, or by both as operations of a step.
func branch(n *node) {
	n.asked["then_branch"], n.asked["else_branch"] = true, true
	switch c := n.in[0]; {
	case c.known == nil:
		branches(n)
	case n.scalar(0, 0) != 0:
		n.out = n.body("then_branch")
	default:
		n.out = n.body("else_branch")
	}
}

// branches has both graphs as bodies, of what either of them reads.
func branches(n *node) {
	condition := ops.ReshapeSizes(n.x(0))
	then, otherwise := n.bodyOf("then_branch"), n.bodyOf("else_branch")
	a, results := then.draft(nil, nil)
	b, others := otherwise.draft(nil, nil)
	if len(results) != len(others) {
		fail("its branches give %d and %d values", len(results), len(others))
	}
	for i, o := range results {
		if t, u := typeOf(o), typeOf(others[i]); t.DType != u.DType || !t.SameShape(u) {
			fail("result %d is %s of one branch and %s of the other, and shapes have to be known "+
				"when the network is built", i, t, u)
		}
	}
	both := slices.Concat(a, b)
	side := func(f bodyOf, lo, hi int) func(in []value) []value {
		return func(in []value) []value {
			return f.in(in[0].Graph(), both[lo:hi], in[1+lo:1+hi], nil)
		}
	}
	n.give(control.Cond(condition, append([]value{condition}, both...),
		side(then, 0, len(a)), side(otherwise, len(a), len(both)))...)
}
