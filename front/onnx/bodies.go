package onnx

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/onnx"
)

// captures are the values of an outer graph that a body reads, and what they are in the body's.
type captures struct {
	outer  *builder
	values []graph.Value // of the outer graph
	inner  map[graph.Value]graph.Value
	open   bool // one more may be read: the body is built to find out which
}

// here is a value of an outer graph in this one.
func (b *builder) here(v graph.Value) graph.Value {
	if v.Graph() == b.g || b.captures == nil {
		return v
	}
	c := b.captures
	v = c.outer.here(v)
	in, ok := c.inner[v]
	if !ok {
		if !c.open {
			fail("a body reads %s, which it did not at first", v)
		}
		in = b.g.Input(fmt.Sprintf("captured%d", len(c.values)), v.Type())
		c.inner[v], c.values = in, append(c.values, v)
	}
	return in
}

// within is a builder of a body's graph.
func (b *builder) within(g *graph.Graph, c *captures) *builder {
	inner := *b
	inner.g, inner.captures = g, c
	return &inner
}

// bodyOf is a graph of the node that is built in a graph of its own.
type bodyOf struct {
	n    *node
	name string
	body *onnx.Graph
}

func (n *node) bodyOf(name string) bodyOf {
	a := n.attribute(name, onnx.GraphKind)
	if a == nil {
		fail("it has no %s", name)
	}
	return bodyOf{n, name, a.Graph}
}

// build builds the body of operands of the builder's graph.
func (f bodyOf) build(b *builder, in []operand) []operand {
	if len(in) != len(f.body.Inputs) {
		fail("%s takes %d operands, not %d", f.name, len(f.body.Inputs), len(in))
	}
	names := scope{outer: f.n.names, names: map[string]operand{}}
	for i, v := range f.body.Inputs {
		names.names[v.Name] = in[i]
	}
	outs, err := b.graph(f.body, &names)
	if err != nil {
		fail("%s: %w", f.name, err)
	}
	for _, o := range outs {
		if o.list != nil || o.absent() {
			fail("%s gives a sequence, or nothing", f.name)
		}
	}
	return outs
}

// draft builds the body on a graph that is thrown away, of operands of some types, before which
// come others that are known. It returns the values that the body captures, and its results.
func (f bodyOf) draft(known []operand, types []graph.Type) (captured []graph.Value, out []operand) {
	g := graph.New()
	c := &captures{outer: f.n.b, inner: map[graph.Value]graph.Value{}, open: true}
	in := slices.Clone(known)
	for i, t := range types {
		in = append(in, operand{value: g.Input(fmt.Sprintf("operand%d", i), t)})
	}
	b := f.n.b.within(g, c)
	out = f.build(b, in)
	for i, o := range out {
		if o.known == nil {
			out[i].value = b.onGraph(o)
		}
	}
	if err := g.Err(); err != nil {
		fail("%s: %w", f.name, err)
	}
	return c.values, out
}

// typeOf is the type of a result.
func typeOf(o operand) graph.Type {
	if o.known != nil {
		return o.known.Type
	}
	return o.value.Type()
}

// in builds the body in a graph; captured are what the outer values are there.
func (f bodyOf) in(g *graph.Graph, outer, captured []graph.Value,
	operands []operand) []graph.Value {
	c := &captures{outer: f.n.b, inner: map[graph.Value]graph.Value{}}
	for i, v := range outer {
		c.inner[v] = captured[i]
	}
	b := f.n.b.within(g, c)
	var list []graph.Value
	for _, o := range f.build(b, operands) {
		list = append(list, b.onGraph(o))
	}
	return list
}

// operands of values.
func operands(values []graph.Value) []operand {
	out := make([]operand, len(values))
	for i, v := range values {
		out[i].value = v
	}
	return out
}
