package mesh

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// place finds out which node and value is at one coordinate: what reads something there is
// there, and so are its results. What only arranges values translates: what is taken apart
// into values at several places, or made of such, is divided. The other way around nothing
// follows: a part of what is divided may be read anywhere.
func (p *Propagation) place(n *graph.Node) (changed bool) {
	if n.Leaf() {
		return n.Kind == graph.KindVariable && p.placeAt(n.Value(0), p.readAt(n, graph.Forward))
	}
	a := p.rules[n.ID].arrangementOf(n)
	if a.kind != joining {
		for _, v := range p.placing(n) {
			changed = p.placeNode(n, p.Of(v).At) || changed
		}
	}
	if _, view := n.Op.(graph.Viewer); view && len(n.Out) == 1 {
		changed = p.placeNode(n, p.readAt(n, graph.Forward)) || changed
	} else if p.spec.Mesh.Processes() > 1 && n.Phase == graph.Backward && !p.links(n) &&
		!slices.ContainsFunc(p.readers[n.ID], p.links) {
		changed = p.placeNode(n, p.readAt(n, graph.Update)) || changed // a gradient
	}
	for i := range n.Out {
		if !p.links(n) {
			changed = p.placeAt(n.Value(i), p.at[n.ID]) || changed
		}
	}
	switch a.kind {
	case splitting:
		return p.gather(n.In[0], a.axis, results(n), p.readersAt) || changed
	case joining:
		return p.gather(n.Value(0), a.axis, n.In, p.valueAt) || changed
	case slicing:
		return p.gatherSlice(n, a) || changed
	}
	return changed
}

// placing are the operands by which a node is placed: of an update the variables that it
// writes, of another name what it names, of a link in a chain of experts all but the link
// before and the rows.
func (p *Propagation) placing(n *graph.Node) []graph.Value {
	switch {
	case n.Mutates > 0:
		return n.In[:n.Mutates]
	case p.renames(n):
		return n.In[:1]
	case !p.links(n):
		return n.In
	}
	r, _ := ops.RowsOf(n.Op)
	var list []graph.Value
	for i, v := range n.In[1:] {
		if !slices.Contains(r.Rows, i+1) {
			list = append(list, v)
		}
	}
	return list
}

// links reports whether a node is a link of a chain, in which every expert fills its rows:
// among processes it is computed where the expert is, and its result is at no one place.
func (p *Propagation) links(n *graph.Node) bool {
	r, ok := ops.RowsOf(n.Op)
	return ok && r.Fills && p.spec.Mesh.Processes() > 1
}

func results(n *graph.Node) []graph.Value {
	out := make([]graph.Value, len(n.Out))
	for i := range out {
		out[i] = n.Value(i)
	}
	return out
}

// placeNode places a node where something of it is.
func (p *Propagation) placeNode(n *graph.Node, at [maxAxes]int32) (changed bool) {
	for m, c := range at {
		if c > 0 && p.at[n.ID][m] == 0 {
			p.at[n.ID][m], changed = c, true
		}
	}
	return changed
}

// placeAt places a value, along axes of the mesh by which it is not divided.
func (p *Propagation) placeAt(v graph.Value, at [maxAxes]int32) (changed bool) {
	if at == [maxAxes]int32{} || p.pinned[v.Node.ID] {
		return false
	}
	s := p.Of(v)
	for m, c := range at {
		if c > 0 && !s.uses(m) {
			s.At[m], changed = c, true
		}
	}
	return changed
}

// readAt is where all readers of a node are, those of a phase if there are such.
func (p *Propagation) readAt(n *graph.Node, phase graph.Phase) (at [maxAxes]int32) {
	list := p.readers[n.ID]
	inPhase := false
	for _, r := range list {
		inPhase = inPhase || r.Phase == phase
	}
	seen := false
	for _, r := range list {
		if inPhase && r.Phase != phase {
			continue
		}
		if !seen {
			at, seen = p.at[r.ID], true
			continue
		}
		for m := range at {
			if p.at[r.ID][m] != at[m] {
				at[m] = 0
			}
		}
	}
	return at
}

// valueAt is where a value is.
func (p *Propagation) valueAt(v graph.Value) [maxAxes]int32 { return p.Of(v).At }

// readersAt is where a value is, or where all that reads it is.
func (p *Propagation) readersAt(v graph.Value) [maxAxes]int32 {
	if at := p.Of(v).At; at != [maxAxes]int32{} {
		return at
	}
	at, seen := [maxAxes]int32{}, false
	for _, r := range p.readers[v.Node.ID] {
		for _, x := range r.In {
			if x != v {
				continue
			}
			if seen && at != p.at[r.ID] {
				return [maxAxes]int32{}
			}
			at, seen = p.at[r.ID], true
		}
	}
	return at
}

// gather divides a value whose parts, that it is made of or taken apart into, are in blocks
// along an axis of the mesh.
func (p *Propagation) gather(whole graph.Value, axis int, parts []graph.Value,
	where func(graph.Value) [maxAxes]int32) (changed bool) {
	s := p.Of(whole)
	for m := range p.spec.Mesh.Axes {
		size := p.spec.Mesh.Size(m)
		if size < 2 || len(parts)%size != 0 || s.uses(m) || s.Axis[axis] != 0 ||
			p.pinned[whole.Node.ID] {
			continue
		}
		per, all := len(parts)/size, true
		for i, v := range parts {
			all = all && where(v)[m] == int32(i/per)+1
		}
		if all {
			s.Axis[axis], changed = int8(m+1), true
		}
	}
	return changed
}

// gatherSlice divides a value of which a slice is read at the place that would have it.
func (p *Propagation) gatherSlice(n *graph.Node, a arrangement) (changed bool) {
	s, size := p.Of(n.In[0]), n.In[0].Type().Size(a.axis)
	for m, c := range p.at[n.ID] {
		if c == 0 || s.uses(m) || s.Axis[a.axis] != 0 || p.pinned[n.In[0].Node.ID] {
			continue
		}
		parts := p.spec.Mesh.Size(m)
		if k, ok := a.block(size, parts); ok && k == int(c)-1 {
			s.Axis[a.axis], changed = int8(m+1), true
		}
	}
	return changed
}

// block is which of so many equal parts of an axis a slice is of.
func (a arrangement) block(size, parts int) (k int, ok bool) {
	if size%parts != 0 || a.lo >= a.hi {
		return 0, false
	}
	per := size / parts
	return a.lo / per, a.lo/per == (a.hi-1)/per
}
