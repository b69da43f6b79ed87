package mesh

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
)

// seed divides and places leaves as the layout says.
func (p *Propagation) seed() error {
	for _, a := range p.spec.Layout {
		m := p.spec.Mesh.Axis(a.Axis)
		found := false
		for _, n := range p.graph.Nodes() {
			if !p.seeded(n) {
				continue
			}
			hit, err := p.seedLeaf(n, a, m)
			if err != nil {
				return err
			}
			found = found || hit
		}
		if !found {
			return p.unknown(a)
		}
	}
	return nil
}

// seeded reports whether a node is one that layouts are for: an input or a variable that
// is needed.
func (p *Propagation) seeded(n *graph.Node) bool {
	return p.live[n.ID] && (n.Kind == graph.KindInput || n.Kind == graph.KindVariable)
}

// seedLeaf divides the axes of a leaf that an assignment is for, and reports whether there
// are such.
func (p *Propagation) seedLeaf(n *graph.Node, a Assign, m int) (found bool, err error) {
	if a.byName() {
		for k, d := range n.Out[0].Shape {
			if d.Name == a.Name {
				return true, p.seedAxis(n, k, m)
			}
		}
		if n.Member.Axis != a.Name {
			return false, nil
		}
		return true, p.seedMember(n, m)
	}
	names, axis, err := a.pattern()
	if err != nil || !match(names, n.Name) {
		return false, err
	}
	if axis >= n.Out[0].Rank() {
		return false, fmt.Errorf("layout %s=%s: %s is %s, which has no axis %d", a.Name, a.Axis,
			n.Name, n.Out[0], axis)
	}
	return true, p.seedAxis(n, axis, m)
}

// seedAxis divides an axis of a leaf.
func (p *Propagation) seedAxis(n *graph.Node, axis, m int) error {
	parts, size := p.spec.Mesh.Size(m), n.Out[0].Size(axis)
	if parts < 2 {
		return nil
	}
	if size < parts || size%parts != 0 {
		what := fmt.Sprintf("axis %d", axis)
		if name := n.Out[0].Shape[axis].Name; name != "" {
			what = "axis " + name
		}
		return p.indivisible(m, fmt.Sprintf("%s of %s %s %s", what, n.Kind, n.Name, n.Out[0]),
			size)
	}
	s := p.Of(n.Value(0))
	if !p.pinned[n.ID] && !s.uses(m) && s.Axis[axis] == 0 {
		s.Axis[axis] = int8(m + 1)
	}
	return nil
}

// seedMember places a variable that is one element of an axis.
func (p *Propagation) seedMember(n *graph.Node, m int) error {
	parts, of := p.spec.Mesh.Size(m), n.Member
	if parts < 2 {
		return nil
	}
	if of.N%parts != 0 {
		return p.indivisible(m, fmt.Sprintf("axis %s, of which %s is an element,", of.Axis,
			n.Name), of.N)
	}
	if s := p.Of(n.Value(0)); !s.uses(m) && !p.pinned[n.ID] {
		s.At[m] = int32(of.I/(of.N/parts)) + 1
	}
	return nil
}

// indivisible is the error of a size that an axis of the mesh does not divide.
func (p *Propagation) indivisible(m int, what string, size int) error {
	return fmt.Errorf("%s has %d elements, which the %d of axis %s of the mesh do not divide: "+
		"%s", what, size, p.spec.Mesh.Size(m), p.spec.Mesh.Axes[m], divisors(size))
}

// unknown is the error of an assignment that is for nothing in the graph.
func (p *Propagation) unknown(a Assign) error {
	var names []string
	for _, n := range p.graph.Nodes() {
		if !p.seeded(n) {
			continue
		}
		for _, d := range n.Out[0].Shape {
			names = append(names, d.Name)
		}
		names = append(names, n.Member.Axis)
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(s string) bool { return s == "" })
	if !a.byName() {
		return fmt.Errorf("layout %s=%s: no input and no variable has such a name", a.Name,
			a.Axis)
	}
	if len(names) == 0 {
		return fmt.Errorf("layout %s=%s: no axis of an input or a variable has a name: give "+
			"names of variables and the number of an axis, as in */w0:1", a.Name, a.Axis)
	}
	return fmt.Errorf("layout %s=%s: no input and no variable has an axis %s: there are %s",
		a.Name, a.Axis, a.Name, strings.Join(names, ", "))
}
