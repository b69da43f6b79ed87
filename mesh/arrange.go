package mesh

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// arrange makes what a node that only arranges values makes of pieces along axis m of the
// mesh: nothing is moved between them.
func (l *lowerer) arrange(n *graph.Node, a arrangement, m int, along []int8) {
	l.res.Divided++
	r := l.rules[n.ID]
	in := make([]*form, len(n.In))
	for i, v := range n.In {
		want := spread{axis: wants(axesOf(r.In, i), v.Type().Rank(), along),
			place: l.processes(l.at[n.ID])}
		want.place[m] = 0
		if a.kind == joining {
			want.place[m] = l.owner(m, i, len(in))
		} else {
			want.axis[a.axis] = int8(m + 1)
		}
		in[i] = l.convert(v, want)
	}
	for i, t := range n.Out {
		f := &form{spread: spread{axis: wants(axesOf(r.Out, i), t.Rank(), along),
			place: l.processes(l.at[n.ID])}}
		f.place[m] = 0
		switch a.kind {
		case joining:
			f.axis[a.axis] = int8(m + 1)
		case splitting:
			f.place[m] = l.owner(m, i, len(n.Out))
		case slicing:
			block, _ := a.block(n.In[0].Type().Size(a.axis), l.spec.Mesh.Size(m))
			f.place[m] = l.owner(m, block, l.spec.Mesh.Size(m))
		}
		axes := used(f.axis)
		l.each(axes, func(k coords) {
			if !l.here(f.place) {
				return
			}
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

// owner is 1 + the process along an axis of the mesh that has part i of so many; 0 if there
// is one process.
func (l *lowerer) owner(m, i, parts int) int32 {
	if l.spec.Mesh.Cluster[m] < 2 {
		return 0
	}
	return int32(i/(parts/l.spec.Mesh.Cluster[m])) + 1
}

// typeOf is the type of a piece of a value that is divided.
func (p *Propagation) typeOf(t graph.Type, axis []int8) graph.Type {
	piece := Piece{Cut: make([]graph.Part, len(axis))}
	for j, a := range axis {
		if a > 0 {
			piece.Cut[j].N = p.spec.Mesh.Size(int(a - 1))
		}
	}
	return piece.Type(t)
}

// joined is the values that are joined for a coordinate along m.
func (l *lowerer) joined(n *graph.Node, in []*form, m int, k coords) graph.Value {
	per := len(in) / l.spec.Mesh.Size(m)
	first := l.global(m, k[m]) * per
	var pieces []graph.Value
	for _, f := range in[first : first+per] {
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
	per := len(n.Out) / l.spec.Mesh.Size(m)
	k[m] = i / per % l.spec.Mesh.Device[m]
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
	size, parts := n.In[0].Type().Size(a.axis), l.spec.Mesh.Size(m)
	block, _ := a.block(size, parts)
	k[m] = block % l.spec.Mesh.Device[m]
	x, first := in.at(l, k), block*(size/parts)
	if a.hi-a.lo == size/parts {
		return x
	}
	return l.make(name, n.Phase, ops.Sliced(a.axis, a.lo-first, a.hi-first), x)
}
