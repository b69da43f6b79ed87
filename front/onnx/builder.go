package onnx

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
	"github.com/gomem/gomem/nn"
)

// operand is what a name stands for: a value of the graph, elements that are known while it is
// built, a weight of the file, what is computed of
// such, or a sequence of operands. The zero operand is one that is left out.
type operand struct {
	value   graph.Value
	known   *tensor.View
	weight  *onnx.Tensor
	derived *derived  // what is computed of weights
	list    []operand // a sequence, not nil
}

func (o operand) absent() bool {
	return !o.value.Valid() && !o.fixed() && o.list == nil
}

// scope has the names of a graph, and of those that it is within.
type scope struct {
	outer *scope
	names map[string]operand
}

func (s *scope) find(name string) (operand, bool) {
	for ; s != nil; s = s.outer {
		if o, ok := s.names[name]; ok {
			return o, true
		}
	}
	return operand{}, false
}

// builder appends a file's nodes to a graph.
type builder struct {
	net    *Net
	ctx    *nn.Ctx
	g      *graph.Graph // the model's, or one that is folded
	opsets []onnx.Opset
	params map[string]operand // parameters that the pass has made, by name
	call   *call              // the function that is being built; nil: none
	// captures are what a body reads of the graph around it; nil: this is none's
	captures *captures
	normed   map[*onnx.Node]bool // norms that what is before them computes
	depth    int                 // of graphs and functions within others
}

// call is a use of a function: what its attributes are.
type call struct{ attributes map[string]*onnx.Attribute }

// graph appends a graph and returns its outputs.
func (b *builder) graph(g *onnx.Graph, names *scope) ([]operand, error) {
	if b.depth++; b.depth > onnx.MaxDepth {
		return nil, fmt.Errorf("graphs and functions are more than %d deep", onnx.MaxDepth)
	}
	defer func() { b.depth-- }()
	for _, t := range g.Initializers {
		if _, ok := names.names[t.Name]; ok {
			continue // a default that is fed instead
		}
		o, err := b.initial(t)
		if err != nil {
			return nil, err
		}
		names.names[t.Name] = o
	}
	if err := b.nodes(g.Nodes, names); err != nil {
		return nil, err
	}
	var outs []operand
	for _, v := range g.Outputs {
		o, ok := names.find(v.Name)
		if !ok {
			return nil, fmt.Errorf("nothing computes output %q", v.Name)
		}
		outs = append(outs, o)
	}
	return outs, nil
}

// initial is what a weight is: a parameter, or known.
func (b *builder) initial(t *onnx.Tensor) (operand, error) {
	d, err := t.Type.DType()
	if err != nil {
		return operand{}, fmt.Errorf("initialiser %q: %w", t.Name, err)
	}
	if d.Floating() && d != graph.F64 && len(t.Dims) > 0 {
		return operand{weight: t}, nil
	}
	v, err := b.net.file.View(t)
	return operand{known: &v}, err
}

func (b *builder) nodes(list []*onnx.Node, names *scope) error {
	for _, n := range list {
		if err := b.node(n, names); err != nil {
			return fmt.Errorf("node %s: %w", n, err)
		}
	}
	return nil
}

// node appends a node.
func (b *builder) node(n *onnx.Node, names *scope) error {
	x := &node{b: b, Node: n, names: names, asked: map[string]bool{}}
	for _, name := range n.In {
		o, ok := operand{}, true
		if name != "" {
			o, ok = names.find(name)
		}
		if !ok {
			return fmt.Errorf("nothing before it computes %q", name)
		}
		x.in = append(x.in, o)
	}
	defer b.g.Scope(scopeOf(n))()
	if err := x.run(); err != nil {
		return err
	}
	for i, name := range n.Out {
		made := i < len(x.out) && !x.out[i].absent()
		if name == "" || !made && !x.wants(i) {
			continue
		}
		if !made {
			return fmt.Errorf("its result %q is not computed", name)
		}
		if _, ok := names.names[name]; ok {
			return fmt.Errorf("it computes %q, which is there already", name)
		}
		names.names[name] = x.out[i]
	}
	return nil
}

// scopeOf is what nodes of a node are called by: its name, as far as that can be one, or its
// operator's. So a variable has its name for itself, whatever nodes are called.
func scopeOf(n *onnx.Node) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r <= ' ' || !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '_'
		}
		return r
	}, n.Name), "/")
	if name == "" {
		return "nodes/" + n.Op
	}
	return "nodes/" + name
}

// onGraph is an operand as a value of the graph.
func (b *builder) onGraph(o operand) graph.Value {
	switch {
	case o.value.Valid():
		return b.here(o.value)
	case o.known != nil:
		return b.g.Constant("known constant", *o.known)
	case o.weight != nil:
		return b.as(b.here(b.parameter(o.weight)), o.weight)
	case o.derived != nil:
		return b.here(b.derivedParameter(o.derived))
	}
	return graph.Value{}
}

// parameter is a weight as a variable: the same for all its uses in a pass. Of 16 bits only those
// are that stay as they are; others are f32 from the beginning, which has all numbers of 16 bits.
func (b *builder) parameter(t *onnx.Tensor) graph.Value {
	if o, ok := b.params[t.Name]; ok {
		return o.value
	}
	kind, err := t.Kind()
	if err != nil {
		fail("%w", err)
	}
	frozen := b.net.frozen(t.Name)
	if !frozen {
		kind.DType = graph.F32
	}
	make := b.ctx.ParamOf
	if b.net.averages[t.Name] || frozen && !b.net.untrained {
		make = b.ctx.AverageOf
	}
	v := make(t.Name, nil, kind)
	if !v.Valid() {
		fail("%w", b.ctx.Graph().Err())
	}
	b.params[t.Name] = operand{value: v}
	b.net.loads[v.Node.Name] = t
	return v
}

// as is a parameter in the type that the file has.
func (b *builder) as(v graph.Value, t *onnx.Tensor) graph.Value {
	d, err := t.Type.DType()
	if err != nil {
		fail("%w", err)
	}
	return ops.Cast(v, d)
}
