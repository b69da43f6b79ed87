package graph

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan/space"
)

// Graph is a dataflow graph under construction. It is not safe for concurrent
// use.
type Graph struct {
	nodes   []*Node
	names   Names
	streams map[stream]bool
	writers map[NodeID][]*Node // by variable, in order of creation
	scope   string
	phase   Phase
	pos     string // overrides the caller's position
	err     error
	network bool                   // workers exchange values of it
	sum     atomic.Pointer[digest] // of the nodes there were when it was asked for
	device  *Device                // that plans are for; nil is the reference
}

// New makes an empty graph.
func New() *Graph {
	return &Graph{names: Names{}, streams: map[stream]bool{},
		writers: map[NodeID][]*Node{}}
}

// SetDevice says for what device the graph's plans are. Graphs that are copied from this one have
// it too.
func (g *Graph) SetDevice(d Device) { g.device = &d }

// Align is what values' addresses are multiples of in plans.
func (g *Graph) Align() space.Align {
	if g.device == nil {
		return space.Line
	}
	return cmp.Or(g.device.Align, space.Line)
}

// Nodes are all nodes in order of creation, which is a topological order.
func (g *Graph) Nodes() []*Node { return g.nodes }

// Node is the node with the given ID.
func (g *Graph) Node(id NodeID) *Node { return g.nodes[id] }

// Len is the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) }

// Err is the first error of building the graph.
func (g *Graph) Err() error { return g.err }

// Variables are the variables in order of creation.
func (g *Graph) Variables() []*Node { return g.ofKind(KindVariable) }

// Inputs are the inputs in order of creation.
func (g *Graph) Inputs() []*Node { return g.ofKind(KindInput) }

// Updates are the update nodes in order of creation.
func (g *Graph) Updates() []*Node { return g.ofKind(KindUpdate) }

// Exchanges reports whether workers exchange values of the graph, or share variables.
func (g *Graph) Exchanges() bool { return g.network }

func (g *Graph) ofKind(k Kind) []*Node {
	var out []*Node
	for _, n := range g.nodes {
		if n.Kind == k {
			out = append(out, n)
		}
	}
	return out
}

// Parameters is the number of elements of all variables that are not optimizer
// state.
func (g *Graph) Parameters() int64 {
	var total int64
	for _, n := range g.nodes {
		if n.Kind == KindVariable && !n.State {
			total += int64(n.Out[0].Elems())
		}
	}
	return total
}

// Scope prefixes the names of the nodes made until the returned function is
// called: `defer g.Scope("layer3")()`.
func (g *Graph) Scope(name string) (leave func()) {
	outer := g.scope
	if err := checkName(name); err != nil {
		g.Fail(err)
	}
	g.scope += name + "/"
	return func() { g.scope = outer }
}

// Within makes the nodes that are made until the returned function is called have
// the given scope, "enc/3/" or "" for none, instead of the current one. Every
// part of it was checked by [Graph.Scope].
func (g *Graph) Within(scope string) (leave func()) {
	outer := g.scope
	g.scope = scope
	return func() { g.scope = outer }
}

// InPhase makes the nodes that build creates belong to a phase.
func (g *Graph) InPhase(p Phase, build func()) {
	outer := g.phase
	g.phase = p
	build()
	g.phase = outer
}

// On makes the nodes that build creates carry the position and the scope of n:
// a gradient is reported where its model line is.
func (g *Graph) On(n *Node, build func()) {
	pos, scope := g.pos, g.scope
	g.pos = n.Pos
	g.scope = ""
	if i := strings.LastIndexByte(n.Name, '/'); i >= 0 {
		g.scope = n.Name[:i+1]
	}
	build()
	g.pos, g.scope = pos, scope
}

// Input makes a value that is fed at every step. Its name must be free, and may
// have no control characters nor " : ".
func (g *Graph) Input(name string, t Type) Value {
	return g.leaf(&Node{Kind: KindInput}, name, t)
}

// Variable makes a parameter: state that lives between steps, starts as init
// says and is written by update nodes only. Its name, by which it is saved, must
// be free, and may have no control characters nor " : ".
func (g *Graph) Variable(name string, t Type, init Init) Value {
	return g.leaf(&Node{Kind: KindVariable, Init: init}, name, t)
}

// State makes a [Graph.Variable] that belongs to an optimizer and is not counted
// as a parameter.
func (g *Graph) State(name string, t Type, init Init) Value {
	return g.leaf(&Node{Kind: KindVariable, Init: init, State: true}, name, t)
}

// Place says of a variable that it is element i of n of an axis: where the axis is divided
// over a mesh, the variable is at one place of it. It changes nothing else, and no digest.
func (g *Graph) Place(v Value, axis string, i, n int) {
	switch {
	case !v.Valid():
	case v.Graph() != g || v.Node.Kind != KindVariable || axis == "" || i < 0 || i >= n:
		g.Fail(fmt.Errorf("%s cannot be element %d of %d of axis %q", v, i, n, axis))
	default:
		v.Node.Member = Member{axis, i, n}
	}
}

// Constant makes a value from data, which the graph keeps. A name that is taken
// is numbered, as those of operations are.
func (g *Graph) Constant(name string, data tensor.View) Value {
	return g.leaf(&Node{Kind: KindConstant, Data: data}, name, data.Type)
}

func (g *Graph) leaf(n *Node, name string, t Type) Value {
	if err := checkName(name); err != nil {
		g.Fail(err) // which names the scope: the name itself may not be printable
		return Value{}
	}
	n.Pos, n.Phase, n.Out = g.position(), g.phase, []Type{t}
	n.Name = g.scope + name
	err := checkLeaf(n)
	if err == nil && n.Kind != KindConstant && g.names.Has(n.Name) {
		err = errors.New("the name is taken: every variable and input must have one of its own")
	}
	if err != nil {
		g.fail(&Error{Node: n.Name, Op: n.Kind.String(), Pos: n.Pos, Err: err})
		return Value{}
	}
	n.Name = g.unique(name)
	g.add(n, nil)
	return n.Value(0)
}

// Apply makes a compute node and returns it, or nil after recording an error.
// The graph is that of the first valid operand.
func Apply(op Op, in ...Value) *Node {
	for _, v := range in {
		if v.Valid() {
			return v.Graph().Apply(op, in...)
		}
	}
	return nil
}

// Apply makes a compute node and returns it, or nil after recording an error.
func (g *Graph) Apply(op Op, in ...Value) *Node {
	n := &Node{Kind: KindCompute, Op: op, In: in, Phase: g.phase}
	return g.node(n, op.Name())
}

// Update makes an update node: op reads all operands and writes vars in place.
// A variable may have several, of which a step runs one at most: it is what
// the step's target asks for that must not update a variable twice.
func (g *Graph) Update(op Op, vars []Value, reads ...Value) *Node {
	n := &Node{Kind: KindUpdate, Op: op, In: append(append([]Value{}, vars...), reads...),
		Phase: Update, Mutates: len(vars)}
	if n = g.node(n, op.Name()); n == nil {
		return nil
	}
	g.addWriter(n)
	return n
}

// addWriter notes an update at the variables that it writes.
func (g *Graph) addWriter(n *Node) {
	for _, v := range n.In[:n.Mutates] {
		g.writers[v.Node.ID] = append(g.writers[v.Node.ID], n)
	}
}

func (g *Graph) node(n *Node, name string) *Node {
	n.Pos = g.position()
	n.Name = g.unique(name)
	var types []Type
	err := g.checkOperands(n)
	if err == nil {
		types = n.InTypes()
		n.Out, err = n.Op.Infer(types)
	}
	if err == nil {
		err = checkResults(n)
	}
	if err != nil {
		if !errors.Is(err, errNone) || g.err == nil {
			g.fail(&Error{Node: n.Name, Op: n.Op.Name(), Pos: n.Pos, In: types, Err: err})
		}
		return nil
	}
	g.add(n, types)
	return n
}

// errNone is the error of an operand that is no value, which is almost always
// the consequence of an earlier, recorded error.
var errNone = errors.New("operand is no value")

func (g *Graph) checkOperands(n *Node) error {
	for i, v := range n.In {
		switch {
		case !v.Valid():
			return fmt.Errorf("operand %d: %w", i, errNone)
		case v.Graph() != g:
			return fmt.Errorf("operand %d, %s, belongs to another graph", i, v)
		case !v.exists():
			return fmt.Errorf("operand %d, %s, does not exist: the node has %d results", i, v,
				len(v.Node.Out))
		}
	}
	for i, v := range n.In[:n.Mutates] {
		switch {
		case v.Node.Kind != KindVariable:
			return fmt.Errorf("operand %d, %s, is written but is not a variable", i, v)
		case slices.Contains(n.In[:i], v):
			return fmt.Errorf("operand %d, %s, is written twice", i, v)
		}
	}
	return nil
}

func checkResults(n *Node) error {
	if n.Kind == KindUpdate && len(n.Out) > 0 {
		return errors.New("an update has no results")
	}
	for _, t := range n.Out {
		if err := t.Check(); err != nil {
			return err
		}
	}
	return nil
}

// add appends a node whose operands have these types.
func (g *Graph) add(n *Node, types []Type) {
	n.ID = NodeID(len(g.nodes))
	n.graph = g
	n.settle(types)
	g.nodes = append(g.nodes, n)
	g.network = g.network || n.Exchanges() || n.Shared != nil
}

// unique puts a name into the current scope and numbers repetitions.
func (g *Graph) unique(name string) string { return g.names.Take(g.scope + name) }

func (g *Graph) fail(err error) {
	if g.err == nil {
		g.err = err
	}
}

// Fail records an error of the model itself, such as a size that cannot be.
func (g *Graph) Fail(err error) {
	g.fail(&Error{Node: strings.TrimSuffix(g.scope, "/"), Op: "model", Pos: g.position(), Err: err})
}
