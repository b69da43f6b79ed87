package fold

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

// A constant is unfolded if it has so many bytes at least, and so many times those of what it is
// made of.
const (
	leastLarge = 4 << 10
	leastRatio = 8
)

// Unfold builds the graph that computes the fetches and applies the updates of g in which large
// constants are computed from small ones, where their bytes are of a kind that the package knows.
// runs says which operations the device runs, to the bits of the kernels here, and which of the
// constants are to be looked at. The graph has all inputs and variables of g, in their order, and
// of the rest what is needed. The error is g's own.
func Unfold(runs func(graph.Op) bool, which func(*graph.Node) bool, g *graph.Graph,
	fetches []graph.Value, updates []graph.NodeID) (*Result, error) {
	if err := g.Verify(); err != nil {
		return nil, err
	}
	u := &unfolder{Result: newResult(g), runs: runs, which: which,
		made: map[graph.NodeID]*made{}}
	live := g.Ancestors(roots(fetches, updates))
	for _, v := range fetches {
		live[v.Node.ID] = true
	}
	for _, n := range g.Nodes() {
		if !live[n.ID] && n.Kind != graph.KindInput && n.Kind != graph.KindVariable {
			continue
		}
		if err := u.node(n); err != nil {
			return nil, fmt.Errorf("fold: %w", err)
		}
	}
	for _, v := range fetches {
		if err := u.whole(v); err != nil {
			return nil, fmt.Errorf("fold: %w", err)
		}
	}
	return u.Result, nil
}

// unfolder makes the graph.
type unfolder struct {
	*Result
	runs  func(graph.Op) bool
	which func(*graph.Node) bool
	made  map[graph.NodeID]*made // by the constant's ID
}

// made is what stands for a constant that is made.
type made struct {
	generator
	constant *graph.Node
	core     graph.Value // before it is repeated
}

// node has a node in the new graph.
func (u *unfolder) node(n *graph.Node) error {
	if n.Kind == graph.KindConstant {
		if by, ok := u.generator(n); ok {
			return u.begin(n, by)
		}
	}
	in := u.operands(n)
	for i, v := range n.In {
		m := u.made[v.Node.ID]
		if m == nil {
			continue
		}
		if ops.Repeats(n.Op) && u.same(n, in, i, m.core) {
			in[i] = m.core
			continue
		}
		if err := u.whole(v); err != nil {
			return err
		}
		in[i] = u.Value(v)
	}
	return u.copy(n, in)
}

// same reports whether a node has results of the same types with another operand i. Those before
// it are the new graph's, those after it may not be there yet, so their types are the old graph's.
func (u *unfolder) same(n *graph.Node, in []graph.Value, i int, other graph.Value) bool {
	types := n.InTypes()
	for k := range i {
		types[k] = in[k].Type()
	}
	types[i] = other.Type()
	out, err := n.Op.Infer(types)
	return err == nil && len(out) == 1 && out[0].Equal(n.Out[0])
}

// begin makes a constant as far as it need not be repeated.
func (u *unfolder) begin(n *graph.Node, by generator) error {
	seed, err := u.constant(n, u.names.Take(n.Name+"/seed"), by.seed)
	if err != nil {
		return err
	}
	m := &made{generator: by, constant: n}
	m.core, err = u.graft(n, by.core, seed)
	u.made[n.ID], u.values[n.ID] = m, make([]graph.Value, 1)
	u.Changes = append(u.Changes, Change{n.Name, n.Out[0].Bytes(), by.name})
	return err
}

// whole makes the rest, when somebody reads that.
func (u *unfolder) whole(v graph.Value) (err error) {
	m := u.made[v.Node.ID]
	if m == nil || u.Value(v).Valid() {
		return nil
	}
	u.values[v.Node.ID][0], err = u.graft(m.constant, m.rest, m.core)
	return err
}

// graft appends what a function makes of a value, in the place of a constant.
func (u *unfolder) graft(n *graph.Node, of func(graph.Value) graph.Value,
	x graph.Value) (graph.Value, error) {
	apart := graph.New()
	last := of(apart.Input("x", x.Type()))
	if err := apart.Err(); err != nil {
		return graph.Value{}, err
	}
	to := map[*graph.Node]*graph.Node{apart.Node(0): x.Node}
	for _, a := range apart.Nodes()[1:] {
		a.Name, a.Phase, a.Pos = u.names.Take(n.Name+"/"+a.Op.Name()), n.Phase, n.Pos
		var in []graph.Value
		for _, v := range a.In {
			in = append(in, to[v.Node].Value(v.Index))
		}
		c, err := u.Graph.Copy(a, a.Op, in...)
		if err != nil {
			return graph.Value{}, err
		}
		to[a] = c
	}
	return to[last.Node].Value(last.Index), nil
}

// generator is how a constant is made of a small one.
type generator struct {
	seed       tensor.View
	core, rest func(graph.Value) graph.Value
	name       string // the operations
}

// generator is that of a constant, if it has one and the device runs it.
func (u *unfolder) generator(n *graph.Node) (generator, bool) {
	if n.Out[0].Bytes() < leastLarge || !u.which(n) {
		return generator{}, false
	}
	for _, by := range propose(n.Data) {
		if by.seed.Type.Bytes()*leastRatio <= n.Out[0].Bytes() && u.makes(&by, n) {
			return by, true
		}
	}
	return generator{}, false
}

// makes reports whether a generator makes a constant, and names it.
func (u *unfolder) makes(by *generator, n *graph.Node) bool {
	g := graph.New()
	whole := by.rest(by.core(g.Constant("seed", by.seed)))
	if g.Err() != nil || !whole.Type().Equal(n.Out[0]) {
		return false
	}
	var names []string
	for _, a := range g.Nodes() {
		if !a.Executes() {
			continue
		}
		if !u.runs(a.Op) {
			return false
		}
		names = append(names, a.OpName())
	}
	by.name = strings.Join(names, "+")
	got, err := reference.Values(g, whole)
	return err == nil && bytes.Equal(got[0].Data, n.Data.Data)
}
