package mesh

import (
	"fmt"

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
	case m < 0:
		l.compute(n, along)
	default:
		for f, x := range along {
			if int(x) == m+1 {
				along[f] = 0
			}
		}
		l.arrange(n, a, m, along)
	}
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
	size := l.spec.Mesh.Device[m]
	if a.kind == slicing {
		if _, ok := a.block(v.Type().Size(a.axis), size); !ok {
			return -1
		}
	} else if parts%size != 0 {
		return -1
	}
	return m
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

// operands are the operands of a node, divided as its factors are.
func (l *lowerer) operands(n *graph.Node, along []int8) []*form {
	in := make([]*form, len(n.In))
	for i, v := range n.In {
		in[i] = l.convert(v, wants(axesOf(l.rules[n.ID].In, i), v.Type().Rank(), along))
	}
	return in
}

// compute makes a node in pieces, and adds up what are parts of a sum.
func (l *lowerer) compute(n *graph.Node, along []int8) {
	r, axes := l.rules[n.ID], used(along)
	in := l.operands(n, along)
	out := make([]*sum, len(n.Out))
	for i, t := range n.Out {
		out[i] = l.newSum(n.Value(i), wants(axesOf(r.Out, i), t.Rank(), along), axes)
	}
	if axes == [maxAxes]bool{} {
		l.res.Whole++
	} else {
		l.res.Divided++
	}
	l.each(axes, func(k coords) {
		pieces := make([]graph.Value, len(in))
		for i, f := range in {
			pieces[i] = f.at(l, k)
		}
		name := n.Name
		if suffix := l.suffix(axes, k); suffix != "" {
			name = l.name(name + suffix)
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
	})
	for i, s := range out {
		l.enter(n.Value(i), s.form)
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
			parts[f] = graph.Part{N: l.spec.Mesh.Device[a-1], I: k[a-1]}
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
	s := &sum{form: &form{axis: axis}, of: v, terms: 1}
	mine := used(axis)
	for m, size := range l.spec.Mesh.Device {
		if axes[m] && !mine[m] {
			s.terms *= size
			l.note(v, Sum, m, v.Type().Bytes()*int64(size-1))
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
	name := l.name(n.Name + "/sum" + l.suffix(used(s.axis), k))
	if s.added[i] == s.terms && len(n.Out) == 1 && used(s.axis) == [maxAxes]bool{} {
		name = n.Name
	}
	c := l.copy(&graph.Node{Op: ops.Added(), Pos: n.Pos, Phase: n.Phase}, name, ops.Added(),
		s.pieces[i], v)
	if c != nil {
		s.put(l, k, c.Value(0))
	}
}

// arrange makes what a node that only arranges values makes of pieces along axis m of the
// mesh: nothing is moved between them.
func (l *lowerer) arrange(n *graph.Node, a arrangement, m int, along []int8) {
	l.res.Divided++
	r := l.rules[n.ID]
	in := make([]*form, len(n.In))
	for i, v := range n.In {
		want := wants(axesOf(r.In, i), v.Type().Rank(), along)
		if a.kind != joining {
			want[a.axis] = int8(m + 1)
		}
		in[i] = l.convert(v, want)
	}
	for i, t := range n.Out {
		f := &form{axis: wants(axesOf(r.Out, i), t.Rank(), along)}
		if a.kind == joining {
			f.axis[a.axis] = int8(m + 1)
		}
		axes := used(f.axis)
		l.each(axes, func(k coords) {
			name := n.Name + l.suffix(axes, k)
			if len(n.Out) > 1 {
				name = fmt.Sprintf("%s/%d%s", n.Name, i, l.suffix(axes, k))
			}
			switch a.kind {
			case joining:
				f.put(l, k, l.joined(n, in, m, k))
			case splitting:
				f.put(l, k, l.partOf(n, i, in[0], m, k, name, l.typeOf(t, f.axis)))
			case slicing:
				f.put(l, k, l.sliceOf(n, a, in[0], m, k, name))
			}
		})
		l.enter(n.Value(i), f)
	}
}

// typeOf is the type of a piece of a value that is divided.
func (l *lowerer) typeOf(t graph.Type, axis []int8) graph.Type {
	p := Piece{Cut: make([]graph.Part, len(axis))}
	for j, a := range axis {
		if a > 0 {
			p.Cut[j].N = l.spec.Mesh.Device[a-1]
		}
	}
	return p.Type(t)
}

// joined is the values that are joined for a coordinate along m.
func (l *lowerer) joined(n *graph.Node, in []*form, m int, k coords) graph.Value {
	per := len(in) / l.spec.Mesh.Device[m]
	var pieces []graph.Value
	for _, f := range in[k[m]*per : (k[m]+1)*per] {
		pieces = append(pieces, f.at(l, k))
	}
	if len(pieces) == 1 {
		return pieces[0]
	}
	return l.make(n.Name+l.suffix(used([]int8{int8(m + 1)}), k), n.Phase, n.Op, pieces...)
}

// partOf is part i of what a node takes apart along the first axis, which m divides.
func (l *lowerer) partOf(n *graph.Node, i int, in *form, m int, k coords, name string,
	t graph.Type) graph.Value {
	per := len(n.Out) / l.spec.Mesh.Device[m]
	k[m] = i / per
	x := in.at(l, k)
	rows := x.Type().Size(0) / per
	if per > 1 {
		x = l.make(name, n.Phase, ops.Sliced(0, i%per*rows, (i%per+1)*rows), x)
	}
	if l.err != nil || x.Type().Equal(t) {
		return x
	}
	return l.make(name, n.Phase, ops.Shaped(t), x)
}

// sliceOf is the slice of the piece along m that has it.
func (l *lowerer) sliceOf(n *graph.Node, a arrangement, in *form, m int, k coords,
	name string) graph.Value {
	size, parts := n.In[0].Type().Size(a.axis), l.spec.Mesh.Device[m]
	k[m], _ = a.block(size, parts)
	x, first := in.at(l, k), k[m]*(size/parts)
	if a.hi-a.lo == size/parts {
		return x
	}
	return l.make(name, n.Phase, ops.Sliced(a.axis, a.lo-first, a.hi-first), x)
}
