package mesh

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gomem/gomem/graph"
)

// Lower builds the graph by which one process, of a rank, takes part in computing the fetches
// and applying the updates of g: in slices, one after the other, in the order of the first
// graph. It has the inputs and constants of g, of which inputs are fed whole to every process;
// the variables, or pieces of them, that are here: see [Propagation.Owners]; the fetched
// values, whole; and of the rest what those and the updates need. What one process has and
// others need they exchange, in the same order on all of them.
//
// The error is g's own, that of a layout that is not of g, or of a rank that there is not.
func Lower(g *graph.Graph, s Spec, rank int, fetches []graph.Value,
	updates []graph.NodeID) (*Result, error) {
	whole, err := apart(g)
	if err != nil {
		return nil, err
	}
	of, all := whole.roots(fetches, updates)
	p, err := Propagate(whole.graph, s, of, all)
	if err != nil {
		return nil, err
	}
	c, which := whole, p.composable()
	if len(which) > 0 {
		if c, err = compose(whole.graph, which); err != nil {
			return nil, err
		}
		c.after(whole)
	}
	if c.graph == g {
		return p.Lower(rank, fetches)
	}
	return c.lower(s, rank, fetches, updates)
}

// Lower is [Lower] of what was propagated for these fetches.
func (p *Propagation) Lower(rank int, fetches []graph.Value) (*Result, error) {
	mesh := p.spec.Mesh
	if n := mesh.Processes(); rank < 0 || rank >= n {
		return nil, fmt.Errorf("mesh %s: there is no rank %d of %d processes", p.spec, rank, n)
	}
	l := &lowerer{Propagation: p, forms: make([][]*form, len(p.values)), names: graph.Names{},
		labels: graph.Names{}, process: mesh.coords(rank),
		res: &Result{Graph: graph.New(), Propagation: p, Rank: rank, Pieces: Pieces{},
			nodes:   make([]*graph.Node, p.graph.Len()),
			updates: map[graph.NodeID][]*graph.Node{}, fetched: map[graph.Value]graph.Value{}}}
	for m, step := len(mesh.Axes)-1, 1; m >= 0; m-- {
		l.strides[m] = step
		step *= mesh.Device[m]
	}
	l.lower(fetches)
	if l.err != nil {
		return nil, fmt.Errorf("mesh: %w", l.err)
	}
	return l.res, l.res.verify(p)
}

// coords are coordinates of a slice of this process, or those of a process, by axis of the
// mesh.
type coords [maxAxes]int

// lowerer builds the graph of one process.
type lowerer struct {
	*Propagation
	process  coords // this one
	strides  coords
	forms    [][]*form // by value of the first graph, that in which it is computed first
	uses     []int32   // by value: how often it is read or fetched
	names    graph.Names
	labels   graph.Names // of exchanges
	shares   []*shared   // of routes
	gathered []gathered
	res      *Result
	now      *graph.Node // of the first graph: what is being made, or wants something
	fetched  graph.Value // what is, after all nodes
	err      error
}

func (l *lowerer) lower(fetches []graph.Value) {
	for _, n := range l.graph.Nodes() {
		l.names.Add(n.Name)
	}
	l.count(fetches)
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
		if l.now, l.fetched = v.Node, v; l.err == nil {
			l.res.fetched[v] = l.convert(v, newSpread(v.Type().Rank())).at(l, coords{})
		}
	}
}

// count counts who wants values.
func (l *lowerer) count(fetches []graph.Value) {
	l.uses = make([]int32, len(l.values))
	for _, n := range l.graph.Nodes() {
		for i, v := range n.In {
			if l.live[n.ID] && (i == 0 || !l.renames(n)) {
				l.uses[l.number(v)]++
			}
		}
	}
	for _, v := range fetches {
		l.uses[l.number(v)]++
	}
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

// global is which of all blocks along an axis of the mesh a slice of this process has.
func (l *lowerer) global(m, slice int) int { return l.process[m]*l.spec.Mesh.Device[m] + slice }

// suffix is what names have at some coordinates: "@1", "@0.1". It is the same on every
// process.
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

// leaf makes a leaf, or those pieces of a variable that are here.
func (l *lowerer) leaf(n *graph.Node) {
	s := l.Of(n.Value(0))
	f := &form{spread: newSpread(n.Out[0].Rank())}
	if n.Kind == graph.KindVariable && l.live[n.ID] {
		f.axis, f.place = s.Axis, l.processes(s.At)
	}
	l.enter(n.Value(0), f)
	if !l.here(f.place) {
		return
	}
	if used(f.axis) == [maxAxes]bool{} {
		c := l.copy(n, n.Name, nil)
		if l.res.nodes[n.ID] = c; c != nil {
			f.put(l, coords{}, c.Value(0))
		}
		return
	}
	l.each(used(f.axis), func(k coords) {
		for m := range l.spec.Mesh.Axes {
			k[m] = l.global(m, k[m])
		}
		piece := l.piece(n, f.axis, k)
		l.names.Add(piece.Name)
		c := *n
		c.Out = []graph.Type{piece.Type(n.Out[0])}
		if v := l.copy(&c, piece.Name, nil); v != nil {
			for m, d := range l.spec.Mesh.Device {
				k[m] %= d
			}
			f.put(l, k, v.Value(0))
			l.res.Pieces[n.Name] = append(l.res.Pieces[n.Name], piece)
		}
	})
}

// enter notes a form of a value.
func (l *lowerer) enter(v graph.Value, f *form) {
	i := l.number(v)
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
	c := l.copy(&graph.Node{Op: op, Pos: l.now.Pos, Phase: phase}, l.names.Take(name), op, in...)
	if c == nil {
		return graph.Value{}
	}
	return c.Value(0)
}
