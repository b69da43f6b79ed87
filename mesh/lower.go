package mesh

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gomem/gomem/graph"
)

// Lower builds the graph that computes the fetches and applies the updates of g in slices,
// all by one process, in the order of the first graph. It has all leaves of g, of which
// variables may be in pieces, each a variable of its own; the fetched values, whole; and of
// the rest what those and the updates need. The error is g's own, that of a layout that is
// not of g, or of a mesh of several processes.
func Lower(g *graph.Graph, s Spec, fetches []graph.Value, updates []graph.NodeID) (*Result,
	error) {
	if err := s.CheckLocal(); err != nil {
		return nil, err
	}
	p, err := Propagate(g, s, fetches, updates)
	if err != nil {
		return nil, err
	}
	return p.Lower(fetches)
}

// Lower is [Lower] of what was propagated for these fetches.
func (p *Propagation) Lower(fetches []graph.Value) (*Result, error) {
	l := &lowerer{Propagation: p, forms: make([][]*form, len(p.values)), names: map[string]bool{},
		res: &Result{Graph: graph.New(), Propagation: p, Pieces: Pieces{},
			nodes:   make([]*graph.Node, p.graph.Len()),
			updates: map[graph.NodeID][]*graph.Node{}, fetched: map[graph.Value]graph.Value{}}}
	for m, step := len(p.spec.Mesh.Axes)-1, 1; m >= 0; m-- {
		l.strides[m] = step
		step *= p.spec.Mesh.Device[m]
	}
	l.lower(fetches)
	if l.err != nil {
		return nil, fmt.Errorf("mesh: %w", l.err)
	}
	return l.res, l.res.verify(p)
}

// coords are coordinates of a slice, by axis of the mesh.
type coords [maxAxes]int

// form is a value of the first graph in pieces: divided along some axes of the mesh, and
// the same at all coordinates of the others.
type form struct {
	axis   []int8        // as Sharding.Axis
	pieces []graph.Value // by index of the coordinates along axes that divide it
}

// lowerer builds the graph of slices.
type lowerer struct {
	*Propagation
	strides coords
	forms   [][]*form // by value of the first graph, that in which it is computed first
	names   map[string]bool
	res     *Result
	now     *graph.Node // of the first graph: what is being made, or wants something
	err     error
}

func (l *lowerer) lower(fetches []graph.Value) {
	for _, n := range l.graph.Nodes() {
		l.names[n.Name] = true
	}
	for _, leaves := range []bool{true, false} {
		for _, n := range l.graph.Nodes() {
			if n.Leaf() != leaves || !leaves && !l.live[n.ID] || l.err != nil {
				continue
			}
			if l.now = n; leaves {
				l.leaf(n)
			} else {
				l.node(n)
			}
		}
	}
	for _, v := range fetches {
		if l.now = v.Node; l.err == nil {
			l.res.fetched[v] = l.convert(v, make([]int8, v.Type().Rank())).at(l, coords{})
		}
	}
}

// index is where the piece at some coordinates is.
func (f *form) index(l *lowerer, k coords) int {
	i := 0
	for _, a := range f.axis {
		if a > 0 {
			i += k[a-1] * l.strides[a-1]
		}
	}
	return i
}

// at is the piece at some coordinates.
func (f *form) at(l *lowerer, k coords) graph.Value {
	if f == nil {
		return graph.Value{}
	}
	return f.pieces[f.index(l, k)]
}

// put enters the piece at some coordinates.
func (f *form) put(l *lowerer, k coords, v graph.Value) {
	i := f.index(l, k)
	for len(f.pieces) <= i {
		f.pieces = append(f.pieces, graph.Value{})
	}
	f.pieces[i] = v
}

// used are the axes of the mesh in a list of 1 + such axes, of which 0 is none.
func used(lists ...[]int8) (set [maxAxes]bool) {
	for _, list := range lists {
		for _, a := range list {
			if a > 0 {
				set[a-1] = true
			}
		}
	}
	return set
}

// each visits the coordinates along some axes of the mesh, the first one the slowest; they
// are 0 along the others.
func (l *lowerer) each(axes [maxAxes]bool, visit func(k coords)) {
	var k coords
	var walk func(m int)
	walk = func(m int) {
		if m == len(l.spec.Mesh.Axes) {
			if l.err == nil {
				visit(k)
			}
			return
		}
		if !axes[m] {
			walk(m + 1)
			return
		}
		for k[m] = range l.spec.Mesh.Device[m] {
			walk(m + 1)
		}
		k[m] = 0
	}
	walk(0)
}

// suffix is what names have at some coordinates: "@1", "@0.1".
func (l *lowerer) suffix(axes [maxAxes]bool, k coords) string {
	var list []string
	for m, in := range axes {
		if in {
			list = append(list, strconv.Itoa(k[m]))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "@" + strings.Join(list, ".")
}

// name is a name that no node has, like a name.
func (l *lowerer) name(like string) string {
	name := like
	for k := 2; l.names[name]; k++ {
		name = like + "_" + strconv.Itoa(k)
	}
	l.names[name] = true
	return name
}

// leaf makes a leaf, or the pieces of a variable.
func (l *lowerer) leaf(n *graph.Node) {
	s := l.Of(n.Value(0))
	if n.Kind != graph.KindVariable || !l.live[n.ID] || used(s.Axis) == [maxAxes]bool{} {
		c := l.copy(n, n.Name, nil)
		l.res.nodes[n.ID] = c
		if l.err == nil {
			l.enter(n.Value(0), &form{axis: make([]int8, n.Out[0].Rank()),
				pieces: []graph.Value{c.Value(0)}})
		}
		return
	}
	f, axes := &form{axis: s.Axis}, used(s.Axis)
	l.each(axes, func(k coords) {
		piece := Piece{Name: l.name(n.Name + l.suffix(axes, k)),
			Cut: make([]graph.Part, len(s.Axis))}
		for j, a := range s.Axis {
			if a > 0 {
				piece.Cut[j] = graph.Part{N: l.spec.Mesh.Device[a-1], I: k[a-1]}
			}
		}
		c := *n
		c.Out = []graph.Type{piece.Type(n.Out[0])}
		if m := l.copy(&c, piece.Name, nil); m != nil {
			f.put(l, k, m.Value(0))
			l.res.Pieces[n.Name] = append(l.res.Pieces[n.Name], piece)
		}
	})
	l.enter(n.Value(0), f)
}

// enter notes a form of a value.
func (l *lowerer) enter(v graph.Value, f *form) {
	i := int(l.first[v.Node.ID]) + v.Index
	l.forms[i] = append(l.forms[i], f)
}

// copy appends a node like n, or fails.
func (l *lowerer) copy(n *graph.Node, name string, op graph.Op, in ...graph.Value) *graph.Node {
	if l.err != nil {
		return nil
	}
	named := *n
	named.Name = name
	c, err := l.res.Graph.Copy(&named, op, in...)
	if err != nil {
		l.err = err
		return nil
	}
	return c
}

// make appends an operation that the first graph does not have, named after what it is for.
func (l *lowerer) make(name string, phase graph.Phase, op graph.Op,
	in ...graph.Value) graph.Value {
	c := l.copy(&graph.Node{Op: op, Pos: l.now.Pos, Phase: phase}, l.name(name), op, in...)
	if c == nil {
		return graph.Value{}
	}
	return c.Value(0)
}
