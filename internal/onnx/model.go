package onnx

import "fmt"

// Model is a file.
type Model struct {
	IRVersion int64
	Producer  string // the program that wrote it, with its version
	Opsets    []Opset
	Graph     *Graph
	Functions []*Function
}

// Opset says which version of a domain's operators is meant. The domain of ONNX itself is "".
type Opset struct {
	Domain  string
	Version int64
}

// Version is the version of a domain's operators, of several entries the largest; 0: none is said.
func Version(sets []Opset, domain string) (v int64) {
	for _, s := range sets {
		if s.Domain == domain || s.Domain == "ai.onnx" && domain == "" {
			v = max(v, s.Version)
		}
	}
	return v
}

// Graph is a list of nodes, each after those whose results it reads.
type Graph struct {
	Name         string
	Nodes        []*Node
	Initializers []*Tensor
	Inputs       []*Value
	Outputs      []*Value
	Values       []*Value // types of values in between, where the file says them
}

// Node is an operator with its operands. An operand that is left out has the name "".
type Node struct {
	Name, Op, Domain, Overload string
	In, Out                    []string
	Attributes                 []*Attribute
}

// String is the node as errors name it.
func (n *Node) String() string {
	op := n.Op
	if n.Domain != "" {
		op = n.Domain + "." + op
	}
	if n.Name != "" {
		return fmt.Sprintf("%s %q", op, n.Name)
	}
	if len(n.Out) > 0 {
		return fmt.Sprintf("%s of %q", op, n.Out[0])
	}
	return op
}

// AttributeKind is of what type an attribute is.
type AttributeKind int64

// The kinds of attributes.
const (
	FloatKind   AttributeKind = 1
	IntKind     AttributeKind = 2
	StringKind  AttributeKind = 3
	TensorKind  AttributeKind = 4
	GraphKind   AttributeKind = 5
	FloatsKind  AttributeKind = 6
	IntsKind    AttributeKind = 7
	StringsKind AttributeKind = 8
	TensorsKind AttributeKind = 9
	GraphsKind  AttributeKind = 10
)

// Attribute is a constant of a node. One of the fields has the value, as its kind says.
type Attribute struct {
	Name    string
	Kind    AttributeKind
	Ref     string // in a function: the attribute of the caller that it stands for
	Float   float32
	Int     int64
	String  string
	Tensor  *Tensor
	Graph   *Graph
	Floats  []float32
	Ints    []int64
	Strings []string
}

// Value is a name with a type.
type Value struct {
	Name string
	// Kind is "tensor", or what it is else, such as "sequence", of which nothing more is known.
	Kind   string
	Type   DataType
	Ranked bool // Shape is known, if only its rank
	Shape  []Dim
}

// Dim is an axis: a size, a symbol, or neither where Size is -1.
type Dim struct {
	Size   int64
	Symbol string
}

// Function is an operator that is made of others.
type Function struct {
	Name, Domain, Overload string
	In, Out                []string
	Attributes             []string     // that a caller may give
	Defaults               []*Attribute // of those that need not be given
	Nodes                  []*Node
	Opsets                 []Opset
}

// MaxDepth is how deep graphs may be within graphs.
const MaxDepth = 64
