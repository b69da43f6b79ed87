package precision

import (
	"fmt"
	"strconv"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Result is a graph in another precision, and where the nodes of the first graph went.
type Result struct {
	Graph   *graph.Graph
	nodes   []*graph.Node // by the ID in the first graph; nil for what is not needed
	fetched map[graph.Value]graph.Value
}

// Node is the node that stands for one of the first graph: it has its name. It is nil if the
// node is not needed.
func (r *Result) Node(id graph.NodeID) *graph.Node { return r.nodes[id] }

// Value is the value that stands for a fetched one of the first graph, of its type.
func (r *Result) Value(v graph.Value) graph.Value { return r.fetched[v] }

// Lower builds the graph that computes the fetches and applies the updates of g in bfloat16. It
// has all leaves of g, as they are, the fetched values, of their types, the updates, and of the
// rest what those need. The error is g's own.
func Lower(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) (*Result, error) {
	if err := g.Verify(); err != nil {
		return nil, err
	}
	l := &lowerer{res: &Result{Graph: graph.New(), nodes: make([]*graph.Node, g.Len()),
		fetched: map[graph.Value]graph.Value{}}, names: graph.Names{},
		casts: map[conversion]graph.Value{}}
	roots := append([]graph.NodeID(nil), updates...)
	for _, v := range fetches {
		roots = append(roots, v.Node.ID)
	}
	live := g.Ancestors(roots)
	for _, n := range g.Nodes() {
		l.names.Add(n.Name)
	}
	l.early = readRounded(g, live, fetches)
	for _, n := range g.Nodes() {
		if n.Leaf() || live[n.ID] {
			l.node(n)
		}
	}
	for _, v := range fetches {
		l.res.fetched[v] = l.as(l.value(v), v.Type().DType, v.Node.Phase)
	}
	if l.err != nil {
		return nil, fmt.Errorf("precision: %w", l.err)
	}
	return l.res, nil
}

// lowerer makes the new graph.
type lowerer struct {
	res   *Result
	names graph.Names // that are taken, or will be
	casts map[conversion]graph.Value
	early map[graph.Value]bool // whose operands are rounded rather than they
	err   error
}

// conversion is a value in another element type, made in a phase.
type conversion struct {
	of    graph.Value
	to    graph.DType
	phase graph.Phase
}

// value is what stands for a value of the first graph.
func (l *lowerer) value(v graph.Value) graph.Value {
	n := l.res.nodes[v.Node.ID]
	if n == nil {
		return graph.Value{} // after an error
	}
	return n.Value(v.Index)
}

// node makes what stands for a node: the node as it is, or in bfloat16. What cannot be in
// bfloat16 gets its operands as they were.
func (l *lowerer) node(n *graph.Node) {
	if l.err != nil {
		return
	}
	in := make([]graph.Value, len(n.In))
	for i, v := range n.In {
		in[i] = l.value(v)
	}
	if canHalve(n) && l.half(n, in) {
		return
	}
	for i, v := range n.In {
		in[i] = l.as(in[i], v.Type().DType, n.Phase)
	}
	l.copy(n, n.Op, in)
}

// half makes a node in bfloat16, if it has to do with that and can.
func (l *lowerer) half(n *graph.Node, in []graph.Value) bool {
	how := ops.HalvingOf(n.Op)
	halves := false
	for i, v := range in {
		if (how.Operands || l.early[n.Value(0)]) && v.Type().DType == graph.F32 {
			in[i] = l.as(v, graph.BF16, n.Phase)
		}
		halves = halves || in[i].Type().DType == graph.BF16
	}
	if !halves {
		return false
	}
	types := make([]graph.Type, len(in))
	for i, v := range in {
		types[i] = v.Type()
	}
	if out, err := n.Op.Infer(types); err == nil && moves(n.Out, out) {
		l.copy(n, n.Op, in)
		return true
	}
	var round uint8
	for i, t := range n.Out {
		if t.DType == graph.F32 && i < 8 {
			round |= how.Results & (1 << i)
		}
	}
	op := ops.InBF16(n.Op, round)
	if _, err := op.Infer(types); err != nil {
		return false
	}
	l.copy(n, op, in)
	return true
}

// moves reports whether an operation makes bfloat16 of bfloat16 by itself, or what is no
// floating-point number as ever.
func moves(was, now []graph.Type) bool {
	for i, t := range now {
		if t.DType != was[i].DType && t.DType != graph.BF16 {
			return false
		}
	}
	return true
}

// as is a value of an element type, converted if it has another, once for each phase: what is
// converted for updates goes to where they are.
func (l *lowerer) as(v graph.Value, d graph.DType, phase graph.Phase) graph.Value {
	if l.err != nil || !v.Valid() || v.Type().DType == d {
		return v
	}
	if n := v.Node; d == graph.BF16 && n.Op == ops.CastTo(graph.F32) &&
		n.In[0].Type().DType == graph.BF16 {
		return n.In[0] // a variable of bfloat16, say: it is no other number when it comes back
	}
	key := conversion{v, d, graph.Forward}
	if phase == graph.Update {
		key.phase = phase
	}
	c, ok := l.casts[key]
	if !ok {
		op := ops.CastTo(d)
		n, err := l.res.Graph.Copy(&graph.Node{Name: l.name(v, d), Kind: graph.KindCompute,
			Op: op, Phase: phase, Pos: v.Node.Pos}, op, v)
		if err != nil {
			l.err = err
			return graph.Value{}
		}
		c = n.Value(0)
		l.casts[key] = c
	}
	return c
}

// name is what a converted value is called: as the value, and the type.
func (l *lowerer) name(v graph.Value, d graph.DType) string {
	name := v.Node.Name
	if v.Index > 0 {
		name += "/" + strconv.Itoa(v.Index)
	}
	return l.names.Take(name + "/" + d.String())
}

func (l *lowerer) copy(n *graph.Node, op graph.Op, in []graph.Value) {
	if l.err == nil {
		l.res.nodes[n.ID], l.err = l.res.Graph.Copy(n, op, in...)
	}
}
