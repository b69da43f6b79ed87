package control

import (
	"fmt"
	"slices"
	"sync"

	"github.com/gomem/gomem/graph"
)

// Body is a graph that is executed within an operation. It does not change, but for its gradients,
// which are made when they are asked for.
type Body struct {
	in, out []graph.Value
	lo, hi  int // the operands that are others in each iteration: those in the frame
	frame   frame
	text    string // tells bodies apart

	mu    sync.Mutex
	backs map[string]*back // of calls, by the results that have gradients
}

// String tells bodies apart, so that graphs with them have a digest.
func (b *Body) String() string { return b.text }

// Operands are the values that stand for what the body reads, those for its constants last. They
// are of a graph of their own, which is not to be changed.
func (b *Body) Operands() []graph.Value { return slices.Clone(b.in) }

// Results are what the body computes, in the graph of its operands.
func (b *Body) Results() []graph.Value { return slices.Clone(b.out) }

// types are those of values.
func types(values []graph.Value) []graph.Type {
	out := make([]graph.Type, len(values))
	for i, v := range values {
		out[i] = v.Type()
	}
	return out
}

// newBody builds a body, as makeBody does, and returns the values of its constants in the outer
// graph, which come after the other operands. An error is recorded there, and the body is nil then.
func newBody(outer *graph.Graph, operands []graph.Type, lo, hi int,
	build func(in []graph.Value) []graph.Value) (*Body, []graph.Value) {
	b, err := makeBody(operands, lo, hi, build)
	if err != nil {
		outer.Fail(err)
		return nil, nil
	}
	return b, b.lifted(outer, len(operands))
}

// lifted are the body's constants, its operands from a number on, in another graph: those that are
// there already.
func (b *Body) lifted(outer *graph.Graph, from int) (list []graph.Value) {
	for _, v := range b.in[from:] {
		var there graph.Value
		for _, n := range outer.Nodes() {
			if n.Kind == graph.KindConstant && same(n.Out[0], v.Type()) &&
				shared(n.Data.Data, v.Node.Data.Data) {
				there = n.Value(0)
			}
		}
		if !there.Valid() {
			there = outer.Constant(v.Node.Name, v.Node.Data)
		}
		list = append(list, there)
	}
	return list
}

// shared says whether two constants are one.
func shared(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// makeBody builds a body of operands of some types, of which the states and elements, from lo to
// hi-1, are others in each iteration. What it has of constants are operands, too, after the others.
func makeBody(operands []graph.Type, lo, hi int,
	build func(in []graph.Value) []graph.Value) (*Body, error) {
	g := graph.New()
	b := &Body{lo: lo, hi: hi}
	for i, t := range operands {
		b.in = append(b.in, g.Input(fmt.Sprintf("operand%d", i), t))
	}
	b.out = build(slices.Clone(b.in))
	if err := b.check(g); err != nil {
		return nil, err
	}
	live := g.Ancestors(nodes(b.out))
	for _, n := range g.Nodes() {
		if live[n.ID] && n.Kind == graph.KindConstant {
			b.in = append(b.in, n.Value(0))
		}
	}
	b.settle(g)
	return b, nil
}

// settle lays the body out.
func (b *Body) settle(g *graph.Graph) {
	b.text = g.Digest()
	for _, v := range slices.Concat(b.in, b.out) {
		b.text += fmt.Sprintf(" %d.%d", v.Node.ID, v.Index)
	}
	b.frame = newFrame(g, b.in, b.out, b.lo, b.hi)
}

// check refuses a body that is no function of its operands.
func (b *Body) check(g *graph.Graph) error {
	if err := g.Err(); err != nil {
		return err
	}
	for _, v := range b.out {
		switch {
		case !v.Valid():
			return fmt.Errorf("a result of a loop's or a branch's body is no value")
		case v.Graph() != g:
			return fmt.Errorf("a body gives %s, which is not of its graph: give it as an operand",
				v)
		}
	}
	for _, n := range g.Nodes() {
		own := n.Kind == graph.KindInput && !slices.Contains(b.in, n.Value(0))
		_, gives := n.Gives()
		if own || n.Kind == graph.KindVariable || n.Kind == graph.KindUpdate || gives {
			return fmt.Errorf("a body has %s %s: what it reads is to be an operand of the loop or "+
				"branch", n.Kind, n.Name)
		}
	}
	return nil
}

func nodes(values []graph.Value) []graph.NodeID {
	var list []graph.NodeID
	for _, v := range values {
		list = append(list, v.Node.ID)
	}
	return list
}

// matches reports operands that the body was not made for.
func (b *Body) matches(in []graph.Type) error {
	if len(in) != len(b.in) {
		return fmt.Errorf("its body has %d operands, not %d", len(b.in), len(in))
	}
	for i, t := range in {
		if want := b.in[i].Type(); !same(t, want) {
			return fmt.Errorf("operand %d of its body is %s, want %s", i, t, want)
		}
	}
	return nil
}

// same reports whether types differ in the names of axes at most.
func same(a, b graph.Type) bool { return a.DType == b.DType && a.SameShape(b) }

// work is what an execution of the body costs, but for its scratch.
func (b *Body) work() (c graph.Cost) {
	for _, n := range b.frame.nodes {
		cost := n.Cost()
		c.FLOPs += cost.FLOPs
		c.Bytes += cost.Bytes
	}
	return c
}

// again builds the body's nodes in another graph, of other operands, and returns its results there.
func (b *Body) again(in []graph.Value) ([]graph.Value, error) {
	at := map[graph.Value]graph.Value{}
	for i, v := range b.in {
		at[v] = in[i]
	}
	g := in[0].Graph()
	for _, n := range b.frame.all {
		operands := make([]graph.Value, len(n.In))
		for i, v := range n.In {
			operands[i] = at[v]
		}
		made := g.Apply(n.Op, operands...)
		if made == nil {
			return nil, g.Err()
		}
		for i := range n.Out {
			at[n.Value(i)] = made.Value(i)
		}
	}
	out := make([]graph.Value, len(b.out))
	for i, v := range b.out {
		out[i] = at[v]
	}
	return out, nil
}
