package collective

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/distrib"
)

// Mesh is nodes in a grid: Shape[i] of them along the axis Names[i]. The last axis varies
// fastest, so of a mesh of 2 x 3, nodes 0 to 2 are the first row.
type Mesh struct {
	Shape []int
	Names []string
}

// Size is how many nodes the mesh has.
func (m Mesh) Size() int {
	n := 1
	for _, s := range m.Shape {
		n *= s
	}
	return n
}

// Coord is where a place of the mesh is, by axis.
func (m Mesh) Coord(place int) []int {
	at := make([]int, len(m.Shape))
	for i := len(at) - 1; i >= 0; i-- {
		at[i] = place % m.Shape[i]
		place /= m.Shape[i]
	}
	return at
}

// Along are the places that differ from one along an axis alone, in their order, and it.
func (m Mesh) Along(axis, place int) []int {
	stride := 1
	for _, s := range m.Shape[axis+1:] {
		stride *= s
	}
	first := place - m.Coord(place)[axis]*stride
	var places []int
	for i := range m.Shape[axis] {
		places = append(places, first+i*stride)
	}
	return places
}

func (m Mesh) check(members int) error {
	if len(m.Shape) != len(m.Names) || len(m.Shape) == 0 {
		return fmt.Errorf("collective: a mesh of %d sizes and %d names", len(m.Shape),
			len(m.Names))
	}
	for i, s := range m.Shape {
		if s < 1 || m.Names[i] == "" || slices.Contains(m.Names[:i], m.Names[i]) {
			return fmt.Errorf("collective: axis %q of %d in a mesh of %v (%q)", m.Names[i], s,
				m.Shape, m.Names)
		}
	}
	if m.Size() != members {
		return fmt.Errorf("collective: a mesh of %v has %d places for %d nodes", m.Shape,
			m.Size(), members)
	}
	return nil
}

// Axes are the groups that a node is in along the axes of a mesh.
type Axes struct {
	Mesh   Mesh
	Place  int // of this node
	groups []*Group
}

// Mesh lays nodes out by their order and makes this node's group along every axis. All
// members must call it in the same order as their other calls of Mesh and Group.
func (m *Mux) Mesh(mesh Mesh, members ...distrib.NodeID) (*Axes, error) {
	if err := mesh.check(len(members)); err != nil {
		return nil, err
	}
	a := &Axes{Mesh: mesh, Place: slices.Index(members, m.t.Self())}
	if a.Place < 0 {
		return nil, fmt.Errorf("collective: node %d is no member of a mesh of %v", m.t.Self(),
			members)
	}
	for axis := range mesh.Shape {
		var nodes []distrib.NodeID
		for _, p := range mesh.Along(axis, a.Place) {
			nodes = append(nodes, members[p])
		}
		g, err := m.Group(nodes...)
		if err != nil {
			a.Close()
			return nil, err
		}
		a.groups = append(a.groups, g)
	}
	return a, nil
}

// Axis is this node's group along an axis; nil if the mesh has none of that name.
func (a *Axes) Axis(name string) *Group {
	if i := slices.Index(a.Mesh.Names, name); i >= 0 {
		return a.groups[i]
	}
	return nil
}

// Close closes the groups.
func (a *Axes) Close() error {
	for _, g := range a.groups {
		g.Close()
	}
	return nil
}
