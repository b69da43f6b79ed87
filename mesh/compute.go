package mesh

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// node makes what stands for a node with an operation: one for every coordinate along the
// axes of the mesh that divide it.
func (l *lowerer) node(n *graph.Node) {
	r, along := l.rules[n.ID], l.factors(n, true)
	if along == nil {
		along = make([]int8, len(r.Factors))
	}
	a := r.arrangementOf(n)
	switch m := l.arranges(n, a); {
	case l.renames(n):
		l.forms[l.number(n.Value(0))] = l.forms[l.number(n.In[0])]
	case m >= 0:
		for f, x := range along {
			if int(x) == m+1 {
				along[f] = 0
			}
		}
		l.arrange(n, a, m, along)
	case l.fills(n):
	default:
		l.compute(n, along, l.late(n, along))
	}
}

// renames reports whether a node is another name of its first operand. Where there is one
// process the node stays.
func (p *Propagation) renames(n *graph.Node) bool {
	return p.spec.Mesh.Processes() > 1 && ops.Names(n.Op)
}

// arranges is the axis of the mesh that divides what a node arranges along the axis of the
// arrangement, such that its parts are in pieces of their own; -1 if there is none.
func (l *lowerer) arranges(n *graph.Node, a arrangement) int {
	v, parts := graph.Value{}, 0
	switch a.kind {
	case notArranging:
		return -1
	case joining:
		v, parts = n.Value(0), len(n.In)
	case splitting:
		v, parts = n.In[0], len(n.Out)
	case slicing:
		v = n.In[0]
	}
	m := int(l.Of(v).Axis[a.axis]) - 1
	if m < 0 || l.at[n.ID][m] > 0 && a.kind != slicing {
		return -1
	}
	if a.kind != joining && l.spec.Mesh.Cluster[m] > 1 && l.everywhere(v, m) {
		return -1 // taken apart by every process, nobody has to ask another
	}
	size := l.spec.Mesh.Size(m)
	if a.kind == slicing {
		if _, ok := a.block(v.Type().Size(a.axis), size); !ok {
			return -1
		}
	} else if parts%size != 0 {
		return -1
	}
	return m
}

// everywhere reports whether there is a form of a value that all processes along an axis of
// the mesh have.
func (l *lowerer) everywhere(v graph.Value, m int) bool {
	return slices.ContainsFunc(l.forms[l.number(v)], func(f *form) bool {
		return !f.part[m] && f.place[m] == 0 && !slices.Contains(f.axis, int8(m+1))
	})
}

// wants is how the axes of an operand or result are divided if factors are.
func wants(axes [][]int, rank int, along []int8) []int8 {
	want := make([]int8, rank)
	for j, list := range axes {
		if len(list) > 0 {
			want[j] = along[list[0]]
		}
	}
	return want
}

// axesOf are those of operand or result i in a rule's list, if it has one.
func axesOf(list [][][]int, i int) [][]int {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// operands are the operands of a node, divided as its factors are, where it is computed;
// those that stay in terms are.
func (l *lowerer) operands(n *graph.Node, along []int8, t terms) []*form {
	in := make([]*form, len(n.In))
	for i, v := range n.In {
		want := spread{axis: wants(axesOf(l.rules[n.ID].In, i), v.Type().Rank(), along),
			place: l.processes(l.at[n.ID])}
		if slices.Contains(t.operands, i) {
			want.part = l.natural(v).part
		}
		if in[i] = t.instead[i]; in[i] == nil {
			in[i] = l.convert(v, want)
		}
	}
	return in
}

// compute makes a node in pieces, and adds up what are parts of a sum.
func (l *lowerer) compute(n *graph.Node, along []int8, t terms) {
	r, axes, place := l.rules[n.ID], used(along), l.processes(l.at[n.ID])
	in := l.operands(n, along, t)
	out := make([]*sum, len(n.Out))
	for i, t2 := range n.Out {
		out[i] = l.newSum(n.Value(i), wants(axesOf(r.Out, i), t2.Rank(), along), axes)
		out[i].place, out[i].rows, out[i].routed = place, t.rows, t.routed
		for m := range out[i].part {
			out[i].part[m] = out[i].part[m] || t.part[m]
		}
	}
	if axes == [maxAxes]bool{} {
		l.res.Whole++
	} else {
		l.res.Divided++
	}
	l.each(axes, func(k coords) {
		if l.here(place) {
			l.computeAt(n, along, k, in, out)
		}
	})
	for i, s := range out {
		l.enter(n.Value(i), s.form)
	}
}

// computeAt makes a node at some coordinates.
func (l *lowerer) computeAt(n *graph.Node, along []int8, k coords, in []*form, out []*sum) {
	pieces, axes := make([]graph.Value, len(in)), used(along)
	for i, f := range in {
		pieces[i] = f.at(l, k)
	}
	name := n.Name
	if suffix := l.suffix(axes, k); suffix != "" {
		name = l.names.Take(name + suffix)
	}
	c := l.copy(n, name, l.local(n, along, k), pieces...)
	if c == nil {
		return
	}
	if axes == [maxAxes]bool{} {
		l.res.nodes[n.ID] = c
	}
	if n.Kind == graph.KindUpdate {
		l.res.updates[n.ID] = append(l.res.updates[n.ID], c)
	}
	for i, s := range out {
		s.add(l, k, c.Value(i))
	}
}

// local is the operation of a node at some coordinates.
func (l *lowerer) local(n *graph.Node, along []int8, k coords) graph.Op {
	r := l.rules[n.ID]
	if r.Local == nil || used(along) == [maxAxes]bool{} {
		return n.Op
	}
	parts := make([]graph.Part, len(along))
	for f, a := range along {
		if a > 0 {
			m := int(a - 1)
			parts[f] = graph.Part{N: l.spec.Mesh.Size(m), I: l.global(m, k[m])}
		}
	}
	return r.Local(parts)
}

// sum is a result that is being made: pieces along the axes of the mesh that divide it,
// each of which is a sum over the other axes that its node is divided along.
type sum struct {
	*form
	of    graph.Value
	terms int   // of a piece
	added []int // by index of a piece
}

func (l *lowerer) newSum(v graph.Value, axis []int8, axes [maxAxes]bool) *sum {
	s := &sum{form: &form{spread: spread{axis: axis}}, of: v, terms: 1}
	mine := used(axis)
	for m, size := range l.spec.Mesh.Device {
		if !axes[m] || mine[m] {
			continue
		}
		s.part[m] = l.spec.Mesh.Cluster[m] > 1
		if s.terms *= size; size > 1 || !s.part[m] {
			l.note(v, Sum, m, v.Type().Bytes()*int64(size-1), 0)
		}
	}
	return s
}

// add adds a term to the piece at some coordinates. Terms come in order.
func (s *sum) add(l *lowerer, k coords, v graph.Value) {
	i := s.index(l, k)
	for len(s.added) <= i {
		s.added = append(s.added, 0)
	}
	if s.added[i]++; s.added[i] == 1 {
		s.put(l, k, v)
		return
	}
	n := s.of.Node
	name := l.names.Take(n.Name + "/sum" + l.suffix(used(s.axis), k))
	if s.added[i] == s.terms && len(n.Out) == 1 && used(s.axis) == [maxAxes]bool{} {
		name = n.Name
	}
	c := l.copy(&graph.Node{Op: ops.Added(), Pos: n.Pos, Phase: n.Phase}, name, ops.Added(),
		s.pieces[i], v)
	if c != nil {
		s.put(l, k, c.Value(0))
	}
}
