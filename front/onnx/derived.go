package onnx

import (
	"fmt"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
	"github.com/gomem/gomem/internal/reference"
)

// derived is a parameter that is computed of weights when these are loaded, since it is the same at
// every step. Only networks that are not trained have such: what is trained is what the file has.
type derived struct {
	name string
	kind graph.Type
	of   []operand // weights, derived ones, what is known, and what is left out
	make func(in []graph.Value) graph.Value
}

// derive has a parameter computed of operands. Its name is that of a weight which nothing else
// reads.
func (n *node) derive(name string, make func(in []graph.Value) graph.Value,
	of ...operand) operand {
	d := &derived{name: name, of: of, make: make}
	y, err := d.on(graph.New(), func(g *graph.Graph, o operand) (graph.Value, error) {
		t, err := o.kind()
		return g.Input(fmt.Sprint("operand", g.Len()), t), err
	})
	if err != nil {
		fail("%w", err)
	}
	d.kind = y.Type()
	return operand{derived: d}
}

// on computes the parameter on a graph that has its operands.
func (d *derived) on(g *graph.Graph,
	leaf func(*graph.Graph, operand) (graph.Value, error)) (y graph.Value, err error) {
	in := make([]graph.Value, len(d.of))
	for i, o := range d.of {
		if o.absent() {
			continue
		}
		if in[i], err = leaf(g, o); err != nil {
			return y, err
		}
	}
	y = d.make(in)
	return y, g.Err()
}

// value computes the parameter.
func (d *derived) value(file *onnx.File) (v tensor.View, err error) {
	y, err := d.on(graph.New(), func(g *graph.Graph, o operand) (graph.Value, error) {
		v, err := o.elements(file)
		return g.Constant("weight", v), err
	})
	if err != nil {
		return v, fmt.Errorf("%q, of weights: %w", d.name, err)
	}
	views, err := reference.Values(y.Graph(), y)
	if err != nil {
		return v, fmt.Errorf("%q, of weights: %w", d.name, err)
	}
	return views[0], nil
}

// fixed reports whether an operand is the same at every step of a network that is not trained.
func (o operand) fixed() bool { return o.known != nil || o.weight != nil || o.derived != nil }

// kind is the type of an operand that is fixed.
func (o operand) kind() (graph.Type, error) {
	switch {
	case o.known != nil:
		return o.known.Type, nil
	case o.derived != nil:
		return o.derived.kind, nil
	}
	return o.weight.Kind()
}

// elements are those of an operand that is fixed.
func (o operand) elements(file *onnx.File) (tensor.View, error) {
	switch {
	case o.known != nil:
		return *o.known, nil
	case o.derived != nil:
		return o.derived.value(file)
	}
	return file.View(o.weight)
}

// own is the name of the weight that operand i is, or is computed of, if the network is not trained
// and nothing but this node reads it; "" else.
func (n *node) own(i int) string {
	if !n.b.net.untrained || n.b.call != nil || !n.has(i) || len(n.b.net.readers[n.In[i]]) != 1 {
		return ""
	}
	switch o := n.in[i]; {
	case o.weight != nil:
		return o.weight.Name
	case o.derived != nil:
		return o.derived.name
	}
	return ""
}

// derivedParameter is a derived parameter as a variable.
func (b *builder) derivedParameter(d *derived) graph.Value {
	if o, ok := b.params[d.name]; ok {
		return o.value
	}
	v := b.ctx.ParamOf(d.name, nil, d.kind)
	if !v.Valid() {
		fail("%w", b.ctx.Graph().Err())
	}
	b.params[d.name] = operand{value: v}
	b.net.derived[v.Node.Name] = d
	return v
}

// scaled has the norm that alone reads this node's result, and uses averages, computed by the
// node's own filters, operand 1, whose channels of the result are along an axis, and its bias,
// operand 2: filters times what the norm multiplies by, and a bias. It returns false, and the
// operands as they are, where there is no such norm, or the network is trained.
func (n *node) scaled(axis int) (filters, bias value, ok bool) {
	name := n.own(1)
	if name == "" || n.has(2) && !n.in[2].fixed() || !n.isF32(1) {
		return filters, bias, false
	}
	norm := n.normAfter(axis)
	if norm == nil {
		return filters, bias, false
	}
	shift, eps := norm.own(2), norm.float("epsilon", 1e-5)
	var before operand
	if n.has(2) {
		before = n.in[2]
	}
	scale, beta, mean, variance := norm.in[1], norm.in[2], norm.in[3], norm.in[4]
	factor := func(scale, variance value) value {
		return ops.Mul(scale, ops.Rsqrt(ops.AddScalar(variance, eps)))
	}
	n.b.normed[norm.Node] = true
	filters = n.b.onGraph(n.derive(name, func(in []value) value {
		return ops.Mul(in[0], channels(factor(in[1], in[2]), in[0].Type().Rank()-axis+1))
	}, n.in[1], scale, variance))
	bias = n.b.onGraph(n.derive(shift, func(in []value) value {
		mean := in[2]
		if in[4].Valid() {
			mean = ops.Sub(mean, in[4])
		}
		return ops.Sub(in[1], ops.Mul(mean, factor(in[0], in[3])))
	}, scale, beta, mean, variance, before))
	return filters, bias, true
}

// isF32 reports whether operand i has elements of 32 bits, and is fixed.
func (n *node) isF32(i int) bool {
	if !n.in[i].fixed() {
		return false
	}
	t, err := n.in[i].kind()
	return err == nil && t.DType == graph.F32
}

// normAfter is the norm that alone reads the node's result, if all else that it reads is fixed, a
// number of each of the filters' channels along an axis, and it uses averages and gives nothing
// else. What is no such norm is computed, or refused, by itself.
func (n *node) normAfter(axis int) *node {
	readers := n.b.net.readers[n.Out[0]]
	if n.b.call != nil || n.b.ctx.Training() || len(readers) != 1 || readers[0] == nil ||
		operatorName(readers[0]) != "BatchNormalization" || len(readers[0].In) != 5 ||
		readers[0].In[0] != n.Out[0] || strings.Join(readers[0].Out[1:], "") != "" {
		return nil
	}
	filters, err := n.in[1].kind()
	if err != nil || axis >= filters.Rank() {
		return nil
	}
	channels := tensor.Of(graph.F32, filters.Size(axis))
	norm := &node{b: n.b, Node: readers[0], names: n.names, asked: map[string]bool{},
		in: make([]operand, 5)}
	for i, name := range norm.In[1:] {
		norm.in[i+1], _ = n.names.find(name)
		if !norm.in[i+1].fixed() {
			return nil
		}
		if kind, err := norm.in[i+1].kind(); err != nil || !kind.Equal(channels) {
			return nil
		}
	}
	if norm.own(2) == "" {
		return nil
	}
	return norm
}
