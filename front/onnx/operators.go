package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomem/gomem/internal/onnx"
)

// operator says how a node of it is built.
type operator struct {
	build  func(n *node)
	random bool // its results are not those of its operands alone
	bodies bool // it has graphs of its own
}

// operators are those that are known, by name and, where it is not ONNX's own, domain.
var operators map[string]operator

func init() {
	operators = map[string]operator{}
	for _, family := range []map[string]operator{elementwise, shapes, indexing, products, images,
		norms, attentions, signals, boxes, scatters, randoms, integers,
		reductions, controls, sequences, recurrent, quantised, losses} {
		maps.Copy(operators, family)
	}
}

// each makes operators of functions.
func each(family map[string]func(n *node)) map[string]operator {
	out := map[string]operator{}
	for name, build := range family {
		out[name] = operator{build: build}
	}
	return out
}

// UnknownError names the operators of a file that are not known, each with a node that has it.
type UnknownError struct {
	Operators []string // sorted
	Nodes     []string // of every operator the first
}

// Error is one line.
func (e *UnknownError) Error() string {
	var list []string
	for i, op := range e.Operators {
		list = append(list, fmt.Sprintf("%s (%s)", op, e.Nodes[i]))
	}
	return "these operators are not known: " + strings.Join(list, ", ")
}

// known refuses operators that are not known, all at once, and finds the weights of norms and the
// names that are read.
func (n *Net) known() error {
	first := map[string]string{}
	n.visit(n.file.Graph, first)
	for _, f := range n.file.Functions {
		n.reads(nil, f.Out...)
		n.visitNodes(f.Nodes, first)
	}
	if len(first) == 0 {
		return nil
	}
	e := new(UnknownError)
	for _, op := range slices.Sorted(maps.Keys(first)) {
		e.Operators, e.Nodes = append(e.Operators, op), append(e.Nodes, first[op])
	}
	return e
}

// reads says that a node reads names, or, if it is nil, that a graph has them as outputs: a result
// that is not read need not be computed, for some exporters name all that an operator has.
func (n *Net) reads(by *onnx.Node, names ...string) {
	for _, name := range names {
		if name != "" {
			n.readers[name] = append(n.readers[name], by)
		}
	}
}

func (n *Net) visit(g *onnx.Graph, first map[string]string) {
	for _, v := range g.Outputs {
		n.reads(nil, v.Name)
	}
	n.visitNodes(g.Nodes, first)
}

func (n *Net) visitNodes(list []*onnx.Node, first map[string]string) {
	for _, x := range list {
		n.reads(x, x.In...)
		name := operatorName(x)
		if _, ok := operators[name]; !ok && first[name] == "" &&
			n.functions[functionName{x.Domain, x.Op, x.Overload}] == nil {
			first[name] = x.String()
		}
		if name == "BatchNormalization" && len(x.In) == 5 {
			n.averages[x.In[3]], n.averages[x.In[4]] = true, true
		}
		for _, a := range x.Attributes {
			if a.Graph != nil {
				n.visit(a.Graph, first)
			}
		}
	}
}
