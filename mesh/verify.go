package mesh

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
)

// verify proves that every live value can be divided and placed as was found out, and that
// updates write variables in the pieces that these are in. It looks at nothing but the
// graph and the shardings.
func (p *Propagation) verify() error {
	for _, n := range p.graph.Nodes() {
		if !p.live[n.ID] {
			continue
		}
		for i := range n.Out {
			if err := p.verifyValue(n.Value(i)); err != nil {
				return fmt.Errorf("mesh: %s %s: %w", n.Value(i), n.Out[i], err)
			}
		}
		if n.Kind == graph.KindUpdate && !p.writable(n) {
			return fmt.Errorf("mesh: %s writes variables that are divided in another way", n.Name)
		}
	}
	return nil
}

// verifyValue proves that a value can be divided and placed as it is.
func (p *Propagation) verifyValue(v graph.Value) error {
	s, t := p.Of(v), v.Type()
	if len(s.Axis) != t.Rank() {
		return fmt.Errorf("%d axes are divided or not", len(s.Axis))
	}
	var used [maxAxes]bool
	for k, a := range s.Axis {
		if a == 0 {
			continue
		}
		m := int(a) - 1
		switch {
		case m >= len(p.spec.Mesh.Axes):
			return fmt.Errorf("axis %d is divided along axis %d of the mesh", k, m)
		case used[m]:
			return fmt.Errorf("axis %s of the mesh divides it twice", p.spec.Mesh.Axes[m])
		case s.At[m] > 0:
			return fmt.Errorf("it is divided along axis %s of the mesh, and at one place of it",
				p.spec.Mesh.Axes[m])
		case t.Size(k)%p.spec.Mesh.Size(m) != 0:
			return fmt.Errorf("axis %d cannot be divided by %d", k, p.spec.Mesh.Size(m))
		}
		used[m] = true
	}
	for m, c := range s.At {
		if c < 0 || c > 0 && (m >= len(p.spec.Mesh.Axes) || int(c) > p.spec.Mesh.Size(m)) {
			return fmt.Errorf("it is at %d along axis %d of the mesh", c, m)
		}
	}
	return nil
}

// verify proves that the graph of slices is well formed, that the pieces of variables tile
// the whole, those of this process being its variables, and that fetches have their types.
func (r *Result) verify(p *Propagation) error {
	if err := r.Graph.Verify(); err != nil {
		return fmt.Errorf("mesh: %w", err)
	}
	byName := map[string]*graph.Node{}
	for _, n := range r.Graph.Variables() {
		byName[n.Name] = n
	}
	for _, n := range p.graph.Variables() {
		elems := 0
		seen := map[string]bool{}
		for _, o := range p.owners(n) {
			v, t, at := byName[o.Name], o.Type(n.Out[0]), fmt.Sprint(o.Cut)
			here := slices.Contains(o.Ranks, r.Rank)
			if len(o.Ranks) == 0 || seen[at] || here != (v != nil) || here && !v.Out[0].Equal(t) {
				return fmt.Errorf("mesh: %s is no piece of variable %s", o.Name, n.Name)
			}
			delete(byName, o.Name)
			seen[at] = true
			elems += t.Elems()
		}
		if elems != n.Out[0].Elems() {
			return fmt.Errorf("mesh: the pieces of variable %s do not make it up", n.Name)
		}
	}
	for _, n := range r.Graph.Variables() {
		if byName[n.Name] != nil {
			return fmt.Errorf("mesh: variable %s is a piece of none", n.Name)
		}
	}
	for v, x := range r.fetched {
		if !x.Type().Equal(v.Type()) {
			return fmt.Errorf("mesh: %s %s became %s", v, v.Type(), x.Type())
		}
	}
	return nil
}
